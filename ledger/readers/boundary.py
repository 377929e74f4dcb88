"""Compaction boundaries of a transcript, and the first request after one that tells its size."""

from collections.abc import Mapping
from typing import Any

from ledger.readers.fields import count, text, text_or_none
from ledger.readers.thread import Boundary, OpenRequest, Thread

__all__ = ["boundary_of", "settle"]


def boundary_of(
    thread: Thread, line: Mapping[str, Any], at_ms: int | None, metadata: str, strategy: str
) -> Boundary:
    """Return the compaction of a boundary line, where the thread stands when it comes.

    Parameters
    ----------
    metadata : str
        Key under which the line tells trigger and size.
    strategy : str
        ``summary`` or ``clear``.
    """
    told = line.get(metadata) or {}
    own = line.get("uuid") or f"{thread.thread_id}/{line.get('timestamp')}"
    waiting = thread.prompt_id is not None
    inside = not waiting and thread.standing[0] == "open"
    return Boundary(
        compaction_id=text(own, "uuid"),
        turn_id=thread.turn_id if inside else None,
        at_ms=at_ms,
        trigger=text_or_none(told.get("trigger"), f"{metadata}.trigger"),
        strategy=strategy,
        context_before=count(told.get("preTokens"), f"{metadata}.preTokens"),
        calls_before=0 if waiting else thread.calls,
        requests_before=0 if waiting else thread.requests,
        prompt_id=thread.prompt_id,
    )


def settle(thread: Thread, request: OpenRequest) -> bool:
    """Give the waiting compaction the size and turn of the first request after it, if it waits."""
    boundary = thread.boundary
    if boundary is None or boundary.settled or thread.compacting:
        return False
    at_ms, made_ms = request.at_ms, boundary.at_ms
    if at_ms is not None and made_ms is not None and at_ms < made_ms:
        # Messages that the compaction preserved are copied behind it.
        return False
    boundary.context_after = request.usage.context_tokens
    new_turn = thread.requests == 1
    if not new_turn or boundary.prompt_id is not None:
        boundary.turn_id = thread.turn_id
    else:
        boundary.turn_id, boundary.calls_before, boundary.requests_before = None, 0, 0
    boundary.settled = True
    return True
