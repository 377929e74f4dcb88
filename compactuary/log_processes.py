"""Processes of this machine that read logs side by side, where there is much to read."""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from ledger.readers.discovery import log_files

__all__ = ["LogProcesses", "log_processes"]

#: Of less, dividing and adding up takes as long as a second core saves.
_LEAST_BYTES = 48_000_000
#: By how much agents' logs grow when they are decompressed, roughly.
_UNPACKED = 5
#: What the first process does by itself leaves no work for more.
_MOST = 4
_ItemT = TypeVar("_ItemT")
_FoundT = TypeVar("_FoundT")


@dataclass(frozen=True, slots=True)
class LogProcesses:
    """Copies of this process, made for one call of `map` and gone behind it.

    Parameters
    ----------
    count : int
        How many there are.
    """

    count: int
    local: bool = True

    def map(
        self,
        function: Callable[[_ItemT], _FoundT],
        items: Sequence[_ItemT],
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> Iterator[_FoundT]:
        """Yield what a function returns for each item, in the items' order.

        What a process was at when it was killed is done here; what a call raises is raised.

        Parameters
        ----------
        function : callable
        items : sequence
            Values that can be sent.
        progress : callable
            Called with how many are done, of how many.
        """
        # A fork has all modules at once; to start an interpreter takes longer than a part.
        pool = ProcessPoolExecutor(min(self.count, len(items) or 1), get_context("fork"))
        try:
            futures = [pool.submit(function, item) for item in items]
            for done, (future, item) in enumerate(zip(futures, items, strict=True), start=1):
                try:
                    found = future.result()
                except BrokenProcessPool:
                    found = function(item)
                progress(done, len(items))
                yield found
        finally:
            pool.shutdown(cancel_futures=True)


def log_processes(paths: Sequence[Path]) -> LogProcesses | None:
    """Return processes to read logs with, or None where this one reads them as fast alone.

    Parameters
    ----------
    paths : sequence of Path
        Files, or folders to search.

    Raises
    ------
    SourceError
        If a path does not exist or a folder holds no log.
    """
    # Elsewhere forks are not safe, and nowhere beside threads.
    if sys.platform != "linux" or threading.active_count() > 1:
        return None
    count = min(len(os.sched_getaffinity(0)), _MOST)
    if count < 2:
        return None
    size = sum(map(_size, log_files([path.expanduser() for path in paths])))
    return LogProcesses(count) if size >= _LEAST_BYTES else None


def _size(path: Path) -> int:
    try:
        size = path.stat().st_size
    except OSError:
        return 0  # gone by now; reading it says so
    return size * _UNPACKED if path.suffix == ".gz" else size
