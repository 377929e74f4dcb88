"""The client: what an agent loop asks, within a budget, and what it records, without waiting."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from compactuary.advice import Advice, Unanswered
from compactuary.client_parts import ClientParts
from compactuary.wondering import Wondering

if TYPE_CHECKING:
    from compactuary.turn import Turn

__all__ = ["Client"]

#: What is left of the budget for looking up thresholds once the server has not answered.
RESERVED_SECONDS = 0.002


class Client(ClientParts):
    """A client that can't break an agent loop. Threads may share one, forked processes inherit it.

    Only the constructor raises, with the settings of `ClientParts`; whatever happens later is an
    answer, or a count in `counters`.
    """

    def should_compact(
        self,
        role: str = "",
        calls: int = 0,
        context_tokens: int | None = None,
        model: str | None = None,
        **fields: Any,
    ) -> Advice:
        """Return whether to compact before the next request; within the budget, never raising.

        The server is asked once. Where it does not answer, its last good thresholds decide; where
        there are none, the advice is to wait, except past the window's hard limit.

        Parameters
        ----------
        role : str
            The agent's role, as the ledger knows it.
        calls : int
            Tool calls made so far in this turn.
        context_tokens : int
            Context now.
        model : str
            Whose prices to use.
        fields
            Whatever else ``POST /should-compact`` takes, such as ``window_tokens``.
        """
        deadline = time.monotonic() + self._wired.settings.budget_seconds - RESERVED_SECONDS
        adviser = self._wired.adviser
        try:
            asked = Wondering(role, calls, context_tokens, model, fields)
            request = adviser.prepare(asked)
            if isinstance(request, Unanswered):
                return adviser.conclude(asked, request)
            said = self._wired.connections.exchange(request, deadline)
            return adviser.conclude(asked, said)
        except Exception as error:  # noqa: BLE001 - advice must never break the loop that asks
            return adviser.broken(error)

    def turn(
        self,
        role: str,
        session_id: str | None = None,
        *,
        turn_id: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        entry_calls: int | None = None,
        parent_turn_id: str | None = None,
        **question: Any,
    ) -> "Turn":
        """Return a turn as a context manager, which counts and records for itself.

        Parameters
        ----------
        role : str
        session_id : str, optional
            Default: the turn's own id, a session of one turn.
        turn_id : str, optional
            A new name unless given.
        model, provider, entry_calls, parent_turn_id
            As in ``PUT /turns/{turn_id}``.
        question
            What each of its questions says, such as ``window_tokens`` or ``ttl``.
        """
        from compactuary.turn import Turn  # noqa: PLC0415 - as the wiring, loaded when needed

        started = {
            "model": model,
            "provider": provider,
            "entry_calls": entry_calls,
            "parent_turn_id": parent_turn_id,
        }
        return Turn(self, role, session_id, turn_id, started, question)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until every record is delivered; return whether they were, in time."""
        return self._wired.delivery.flush(timeout_seconds)

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Flush, drop what could not be delivered, and let go of threads and connections.

        Parameters
        ----------
        timeout_seconds : float, optional
            Default: the ``exit_seconds`` of the client.
        """
        seconds = self._wired.settings.exit_seconds if timeout_seconds is None else timeout_seconds
        done = self.flush(seconds)
        self._wired.delivery.give_up()
        self._finish()
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
