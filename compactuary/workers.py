"""Workers: other processes, here or on other machines, that the same functions run on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol, TypeVar

from compactuary.errors import InputError, MissingExtraError

__all__ = ["HERE", "PROCESSES", "FoundT", "ItemT", "PartReaders", "Workers", "workers"]

PROCESSES = "processes"
"""Names processes of this machine, one a core."""

_PATIENCE = "10s"
ItemT = TypeVar("ItemT")
"""What a function is given."""
FoundT = TypeVar("FoundT")
"""What it returns."""


class PartReaders(Protocol):
    """Whoever reads parts of logs: `Workers`, or `compactuary.log_processes.LogProcesses`."""

    @property
    def count(self) -> int:
        """How many there are."""
        ...

    @property
    def local(self) -> bool:
        """Whether they are known to see this machine's files."""
        ...

    def map(
        self,
        function: Callable[[ItemT], FoundT],
        items: Sequence[ItemT],
        progress: Callable[[int, int], None] = ...,
    ) -> Iterator[FoundT]:
        """Yield what a function returns for each item, in the items' order.

        A call whose process is gone is made again; what a call raises is raised.

        Parameters
        ----------
        function : callable
            Of a module that the others have, or one that can be sent to them.
        items : sequence
            Values that can be sent.
        progress : callable
            Called with how many are done, of how many; by default nobody is told.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Workers:
    """Where functions run.

    Parameters
    ----------
    client : distributed.Client, optional
        Without one they run here, one call after the other.
    count : int, default 1
        How many workers there are.
    local : bool, default False
        Whether they are known to see this machine's files.
    """

    client: Any = None
    count: int = 1
    local: bool = False

    def map(
        self,
        function: Callable[[ItemT], FoundT],
        items: Sequence[ItemT],
        progress: Callable[[int, int], None] = lambda _done, _of: None,
    ) -> Iterator[FoundT]:
        """Do as `PartReaders.map` says; what a lost worker was at is done by another one."""
        if self.client is None:
            for done, item in enumerate(items, start=1):
                yield function(item)
                progress(done, len(items))
            return
        futures = [self.client.submit(function, item, pure=False) for item in items]
        for done, future in enumerate(futures, start=1):
            found: FoundT = future.result()
            future.release()
            progress(done, len(items))
            yield found


HERE = Workers()
"""This process alone."""


@contextmanager
def workers(scheduler: str | None) -> Iterator[Workers]:
    """Start workers, or find those of a scheduler.

    Parameters
    ----------
    scheduler : str or None
        None for this process, 'processes' for one a core, else the address of a Dask scheduler
        such as ``tcp://10.0.0.1:8786``. Its workers need this package, of the same version.

    Raises
    ------
    InputError
        No scheduler answers there, or it has no worker.
    MissingExtraError
        Dask is not installed.
    """
    if scheduler is None:
        yield HERE
        return
    if scheduler != PROCESSES and ":" not in scheduler:
        raise _nobody(scheduler)
    try:
        # Half a second, and an extra.
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "workers need the packages that the extra 'cluster' brings",
            where="scheduler",
            value=scheduler,
            remedy='Install them with: pip install "compactuary[cluster]"',
        ) from error
    if scheduler == PROCESSES:
        local: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None}
        with (
            distributed.LocalCluster(processes=True, **local) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield replace(_counted(client, scheduler), local=True)
        return
    try:
        client = distributed.Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise _nobody(scheduler) from error
    with client:
        yield _counted(client, scheduler)


def _counted(client: Any, scheduler: str) -> Workers:
    count = len(client.scheduler_info(n_workers=-1)["workers"])
    if not count:
        raise InputError(
            "the scheduler has no worker",
            where="scheduler",
            value=scheduler,
            remedy="Start one: dask worker ADDRESS",
        )
    return Workers(client, count)


def _nobody(scheduler: str) -> InputError:
    return InputError(
        "no scheduler answers here",
        where="--scheduler",
        value=scheduler,
        remedy="Give 'processes', or an address such as tcp://10.0.0.1:8786",
    )
