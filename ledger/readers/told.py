"""What the ledger is told of a thread: its requests, its compaction, how its turn stands."""

from collections.abc import Iterator

from ledger.events import CompactionMade, Event, RequestMade, TurnReached, TurnStarted
from ledger.readers.thread import Thread

__all__ = ["HARNESS", "compaction_told", "request_told", "standing_told"]

HARNESS = "claude-code"


def request_told(thread: Thread) -> Iterator[Event]:
    """Yield the request whose lines have come in so far, behind the turn that it begins."""
    request = thread.request
    if request is None:
        return
    if thread.started is not None and thread.started["turn_id"] == request.turn_id:
        yield TurnStarted(
            session_id=thread.session_id,
            thread_id=thread.thread_id,
            source=HARNESS,
            provider="anthropic",
            on_request=True,
            **thread.started,
        )
        thread.started = None
    yield RequestMade(
        request_id=request.request_id,
        session_id=thread.session_id,
        turn_id=request.turn_id,
        position=request.position,
        at_ms=request.at_ms,
        model=request.model,
        usage=request.usage,
        tool_calls=tuple(request.tools),
        kind="compaction" if thread.compacting else "agent",
    )


def compaction_told(thread: Thread) -> Iterator[Event]:
    """Yield the compaction that waits for the size after it, as far as it is known."""
    boundary = thread.boundary
    if boundary is not None:
        yield CompactionMade(
            compaction_id=boundary.compaction_id,
            session_id=thread.session_id,
            turn_id=boundary.turn_id,
            at_ms=boundary.at_ms,
            trigger=boundary.trigger,
            strategy=boundary.strategy,
            context_before=boundary.context_before,
            context_after=boundary.context_after,
            calls_before=boundary.calls_before,
            requests_before=boundary.requests_before,
        )


def standing_told(thread: Thread) -> Iterator[Event]:
    """Yield how the current turn stands, if there is one."""
    if thread.turn_id:
        status, reason = thread.standing
        yield TurnReached(thread.turn_id, thread.session_id, status, reason, thread.last_ms)
