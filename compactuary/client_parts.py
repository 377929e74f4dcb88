"""What both clients are made of and what they do alike: records, counters, settings, the end."""

import os
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compactuary.client_wiring import Wiring

__all__ = ["ClientParts"]


class ClientParts:
    """The base of `Client` and `AsyncClient`: everything that never waits.

    Parameters
    ----------
    url : str, optional
        The service. Default: ``COMPACTUARY_URL``, else ``http://127.0.0.1:8338``.
    key : str, optional
        Sent as a bearer token, never logged. Default: ``COMPACTUARY_KEY``, else none.
    budget_seconds : float
        How long `should_compact` may take in all, connecting included.
    cache : bool or path
        Folder in which thresholds are kept for the next process; True is the platform's cache
        folder, False keeps them in memory only.
    refresh_seconds : float
        How often thresholds are compared with the server's, in the background.
    queue_capacity : int
        Records that may wait to be delivered; the oldest goes when there are more.
    exit_seconds : float
        How long the end of the process may wait for them.
    breaker_seconds : float
        After three failures in a row the server is asked only once in so many seconds.

    Raises
    ------
    InputError
        A setting is wrong. Nothing else here raises.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        budget_seconds: float = 0.05,
        cache: bool | str | os.PathLike[str] = True,
        refresh_seconds: float = 30.0,
        queue_capacity: int = 10_000,
        exit_seconds: float = 2.0,
        breaker_seconds: float = 5.0,
    ) -> None:
        from compactuary.client_wiring import wire  # noqa: PLC0415 - sockets and logging, at set-up

        self._wired: Wiring = wire(
            url,
            key,
            cache,
            budget_seconds=budget_seconds,
            refresh_seconds=refresh_seconds,
            queue_capacity=queue_capacity,
            exit_seconds=exit_seconds,
            breaker_seconds=breaker_seconds,
        )
        self._finish = weakref.finalize(self, self._wired.let_go)
        # At the end of the process delivery has its own, bounded wait.
        self._finish.atexit = False
        _ALL.add(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._wired.settings.endpoint.url!r})"

    @property
    def counters(self) -> dict[str, int]:
        """What happened so far, by the names of docs/client.md, and the records still waiting."""
        return self._wired.counters.snapshot() | {"records_waiting": self._wired.delivery.pending}

    def start_turn(self, turn_id: str, role: str, session_id: str, **more: Any) -> None:
        """Record a turn that begins.

        Parameters
        ----------
        more
            ``model``, ``provider``, ``entry_calls``, ``parent_turn_id``, ``started_at``.
        """
        self._wired.record("turn", turn_id, role, session_id, **more)

    def record_request(
        self, turn_id: str, request_id: str, usage: Any, tool_calls: Any = (), **more: Any
    ) -> None:
        """Record a request of a turn.

        Parameters
        ----------
        request_id : str
            Unique in the ledger, such as the provider's message id.
        usage : mapping or object
            The provider's usage object as it came.
        tool_calls : int, or list of mappings or pairs
            How many the answer asked for, or each one's id and name.
        more
            ``model``, ``kind``, ``convention``, ``at``.
        """
        self._wired.record("request", turn_id, request_id, usage, tool_calls, **more)

    def end_turn(self, turn_id: str, status: str = "ended", **more: Any) -> None:
        """Record that a turn ended, or was cut.

        Parameters
        ----------
        status : {'ended', 'cut'}
        more
            ``reason``, ``tool_calls`` in all, ``at``.
        """
        self._wired.record("end", turn_id, status, **more)

    def record_compaction(self, session_id: str, context_before: int, **more: Any) -> None:
        """Record that a context was compacted.

        Parameters
        ----------
        context_before : int
            In tokens.
        more
            ``context_after``, ``turn_id``, ``compaction_id``, ``trigger``, ``strategy``,
            ``calls_before``, ``requests_before``, ``at``.
        """
        self._wired.record("compaction", session_id, context_before, **more)

    def _renew(self) -> None:
        self._wired.renew()


_ALL: weakref.WeakSet[ClientParts] = weakref.WeakSet()


def _renew_all() -> None:
    for client in list(_ALL):
        client._renew()  # noqa: SLF001 - of the same class


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
