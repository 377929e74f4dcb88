"""A turn while a reader goes through it, and what the ledger is told of it.

For the logs whose requests come whole: one line or one message each. All of it is plain data, so
that it can be stored where a file ends in the middle of a turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.readers.thread import Boundary
from ledger.usage import Usage

__all__ = ["MAIN", "Turn", "boundary_in", "compaction_made", "project_role"]

MAIN = "main"


@dataclass(slots=True)
class Turn:
    """Where a turn stands.

    Parameters
    ----------
    turn_id, session_id, thread_id, source, role, at_ms, model, provider, parent_turn_id, trigger
        As in `TurnStarted`.
    from_its_start : bool
        False where the log begins inside the turn, so that nobody knows what came before.
    calls, requests : int
        Tool calls and requests so far.
    status, reason, last_ms
        As in `TurnReached`; ``last_ms`` never goes back, whatever the clock does.
    told : bool
        Whether the ledger has been told that the turn began.
    """

    turn_id: str
    session_id: str
    thread_id: str
    source: str
    role: str
    at_ms: int | None = None
    model: str | None = None
    provider: str | None = None
    parent_turn_id: str | None = None
    trigger: str = "prompt"
    from_its_start: bool = True
    calls: int = 0
    requests: int = 0
    status: str = "open"
    reason: str = "in_flight"
    last_ms: int | None = None
    told: bool = False

    @classmethod
    def restored(cls, state: Mapping[str, Any] | None) -> "Turn | None":
        """Rebuild a turn from its JSON."""
        return cls(**state) if state else None

    def reach(self, status: str, reason: str, at_ms: int | None) -> None:
        """Take how the turn stands at a time."""
        self.status, self.reason = status, reason
        if at_ms is not None and (self.last_ms is None or at_ms > self.last_ms):
            self.last_ms = at_ms

    def started(self, *, on_request: bool = False) -> TurnStarted:
        """Return the fact that the turn began."""
        self.told = True
        entry = 0 if self.from_its_start else None
        return TurnStarted(
            turn_id=self.turn_id,
            session_id=self.session_id,
            thread_id=self.thread_id,
            source=self.source,
            role=self.role,
            at_ms=self.at_ms,
            model=self.model,
            provider=self.provider,
            parent_turn_id=self.parent_turn_id,
            trigger=self.trigger,
            entry_calls=entry,
            entry_requests=entry,
            on_request=on_request,
        )

    def request(
        self,
        request_id: str,
        at_ms: int | None,
        usage: Usage,
        tools: tuple[tuple[str, str], ...] = (),
        unnamed_tools: int = 0,
    ) -> RequestMade:
        """Return the turn's next request, made by its model."""
        position = self.requests
        self.requests += 1
        return RequestMade(
            request_id=request_id,
            session_id=self.session_id,
            turn_id=self.turn_id,
            position=position,
            at_ms=at_ms,
            model=self.model,
            usage=usage,
            tool_calls=tools,
            unnamed_tool_calls=unnamed_tools,
        )

    def reached(self, tool_calls: int | None = None, requests: int | None = None) -> TurnReached:
        """Return how the turn stands, with totals where not every request is told."""
        return TurnReached(
            self.turn_id,
            self.session_id,
            self.status,
            self.reason,
            self.last_ms,
            tool_calls=tool_calls,
            requests=requests,
        )


def boundary_in(
    turn: Turn | None,
    compaction_id: str,
    at_ms: int | None,
    *,
    trigger: str | None,
    context_before: int | None,
) -> Boundary:
    """Return a compaction whose size after it is not known yet, in a turn or between turns."""
    return Boundary(
        compaction_id=compaction_id,
        turn_id=turn.turn_id if turn else None,
        at_ms=at_ms,
        trigger=trigger,
        strategy="summary",
        context_before=context_before,
        calls_before=turn.calls if turn else 0,
        requests_before=turn.requests if turn else 0,
        prompt_id=None,
    )


def compaction_made(boundary: Boundary, session_id: str) -> CompactionMade:
    """Return the compaction as far as it is known."""
    return CompactionMade(
        compaction_id=boundary.compaction_id,
        session_id=session_id,
        turn_id=boundary.turn_id,
        at_ms=boundary.at_ms,
        trigger=boundary.trigger,
        strategy=boundary.strategy,
        context_before=boundary.context_before,
        context_after=boundary.context_after,
        calls_before=boundary.calls_before,
        requests_before=boundary.requests_before,
    )


def project_role(role: str, folder: object, *, by_project: bool) -> str:
    """Return the role, behind the name of the folder the agent worked in if that is asked for."""
    if not by_project:
        return role
    named = folder if isinstance(folder, str) and folder else "unknown-project"
    return f"{PurePath(named).name or named}/{role}"
