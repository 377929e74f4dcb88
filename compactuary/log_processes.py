"""Processes of this machine that read logs side by side, where there is much to read."""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path

from compactuary.workers import FoundT, ItemT
from ledger.readers.discovery import log_files

__all__ = ["LogProcesses", "log_processes"]

#: Of less, two free cores save half a second at best, and busy ones lose it.
_LEAST_BYTES = 200_000_000
#: By how much agents' logs grow when they are decompressed, roughly.
_UNPACKED = 5
#: What the first process does by itself leaves no work for more.
_MOST = 4


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
        function: Callable[[ItemT], FoundT],
        items: Sequence[ItemT],
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> Iterator[FoundT]:
        """Do as `PartReaders.map` says; what a killed process was at is done here."""
        with _forks(min(self.count, len(items)), function, items) as idle:
            at: dict[Connection, int] = {}
            found: dict[int, FoundT] = {}
            left = deque(range(len(items)))
            for place, item in enumerate(items):
                while place in left or place in at.values():
                    _hand_out(left, idle, at)
                    if not at:  # no process is left
                        left.clear()
                    for pipe, number in _answering(at):
                        with suppress(EOFError, OSError):  # killed, or it raised
                            found[number] = pipe.recv()
                            idle.append(pipe)
                result = found.pop(place) if place in found else function(item)
                progress(place + 1, len(items))
                yield result


def _hand_out(left: deque[int], idle: list[Connection], at: dict[Connection, int]) -> None:
    """Give each idle process an item of those left."""
    while idle and left:
        pipe = idle.pop()
        at[pipe] = left.popleft()
        with suppress(OSError):  # dead, which its silence will tell
            pipe.send(at[pipe])


def _answering(at: dict[Connection, int]) -> list[tuple[Connection, int]]:
    """Wait for processes that are done or dead; return them with what they were at."""
    ready = wait(at) if at else []
    return [(pipe, at.pop(pipe)) for pipe in list(at) if pipe in ready]


@contextmanager
def _forks(
    count: int, function: Callable[[ItemT], FoundT], items: Sequence[ItemT]
) -> Iterator[list[Connection]]:
    """Yield pipes to copies of this process, which end with the block or with this process.

    A pool of `concurrent.futures` is lost with the first process that is killed, and waits for
    ever where that one was in the middle of an answer, or where items are still handed in.
    """
    # A fork has all modules at once; to start an interpreter takes longer than a part.
    forks = get_context("fork")
    processes = []
    pipes: list[Connection] = []
    try:
        with suppress(OSError):  # fewer, where no more are allowed
            for _ in range(count):
                here, there = forks.Pipe()
                with there:
                    told = (function, items, there, [*pipes, here])
                    process = forks.Process(target=_serve, args=told, daemon=True)
                    process.start()
                processes.append(process)
                pipes.append(here)
        yield list(pipes)
    finally:
        # Whoever interrupts would else wait until each is done with its part.
        for process in processes:
            process.kill()
        for process in processes:
            process.join()
        for pipe in pipes:
            pipe.close()


def _serve(
    function: Callable[[ItemT], FoundT],
    items: Sequence[ItemT],
    pipe: Connection,
    others: Sequence[Connection],
) -> None:
    """Do items by their numbers; what raises is done again by the first process, to raise there."""
    # A terminal sends Ctrl-C to all; the first process ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        other.close()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(Exception):
        while True:
            pipe.send(function(items[pipe.recv()]))


def _end_with_parent() -> None:
    """End this process as soon as the first one is gone, however it went."""
    if (parent := parent_process()) is not None:
        parent.join()
        # Not sys.exit, which ends this thread alone.
        os._exit(1)


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
