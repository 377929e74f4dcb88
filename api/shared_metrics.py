"""How the workers of one host show each other their metrics: a folder with a file for each.

A scrape reaches one worker, whichever accepts it, and has to tell of all of them.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
from prometheus_client import Metric

__all__ = ["SHARE_SECONDS", "SharedMetrics"]

#: How old what a worker tells of the others may be.
SHARE_SECONDS = 1.0

_LOGGER = logging.getLogger(__name__)


class SharedMetrics:
    """Writes a worker's metrics into the folder, in a thread of its own, and reads the others'.

    Parameters
    ----------
    folder : str
        The same for every worker of the service, and for no other service.
    families : callable
        Returns the worker's metrics.
    """

    def __init__(
        self, folder: str, families: Callable[[], Iterable[Metric]] = lambda: iter(())
    ) -> None:
        self.families = families
        self._folder = Path(folder)
        self._own = self._folder / f"{os.getpid()}.json"
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shared-metrics", daemon=True)

    def start(self) -> None:
        """Begin to write in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and take the worker's file away."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        self._own.unlink(missing_ok=True)

    def with_others(self, families: Sequence[Metric]) -> list[Metric]:
        """Return a worker's metrics with the samples of the other live workers put in."""
        merged = {family.name: family for family in families}
        for told in self._others():
            for name, text, kind, samples in told:
                family = merged.setdefault(name, Metric(name, text, kind))
                for sample, labels, value in samples:
                    # JSON has no NaN.
                    family.add_sample(sample, labels, float("nan") if value is None else value)
        return list(merged.values())

    def _others(self) -> Iterable[list[Any]]:
        for file in sorted(self._folder.glob("[0-9]*.json")):
            if file == self._own:
                continue
            if not _lives(int(file.stem)):
                file.unlink(missing_ok=True)
                continue
            try:
                yield orjson.loads(file.read_bytes())
            except FileNotFoundError:  # it stopped this moment
                continue

    def _run(self) -> None:
        while True:
            try:
                self._write()
            except OSError as error:
                _LOGGER.warning("metrics can't be shared: %s", error)
            if self._stopped.wait(SHARE_SECONDS):
                return

    def _write(self) -> None:
        told = [
            (
                family.name,
                family.documentation,
                family.type,
                [(one.name, one.labels, one.value) for one in family.samples],
            )
            for family in self.families()
        ]
        self._folder.mkdir(parents=True, exist_ok=True)
        # Put in place as a whole, so that nobody reads half of it.
        half = self._own.with_suffix(".new")
        half.write_bytes(orjson.dumps(told))
        half.replace(self._own)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
