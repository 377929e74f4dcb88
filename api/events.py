"""Bodies → events of the ledger, and what in them contradicts what is known; no database here."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.problems import ConflictError, NotFoundError
from api.schemas import CompactionBody, EndBody, FinishedTurn, RequestBody, TurnBody
from compactuary.errors import InputError
from ledger.clock import iso, milliseconds
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.usage import BilledIteration, Usage, billed_iterations, usage_from

__all__ = [
    "RequestFacts",
    "Row",
    "compaction_event",
    "end_event",
    "finished_events",
    "no_such_turn",
    "refuse_other",
    "refuse_other_compaction",
    "refuse_other_owner",
    "refuse_pruned",
    "request_events",
    "request_facts",
    "turn_event",
]

#: A row of the ledger as far as a body has to be held against it.
Row = Mapping[str, Any]

SOURCE = "api"


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """A request's own tokens, the compactions billed beside it, and when it was made."""

    usage: Usage
    inner: Sequence[BilledIteration]
    at_ms: int


def turn_event(turn_id: str, body: TurnBody) -> TurnStarted:
    """Return what the body tells: a turn began."""
    return TurnStarted(
        turn_id=turn_id,
        session_id=body.session_id,
        thread_id=body.session_id,
        source=SOURCE,
        role=body.role,
        at_ms=_time(body.started_at, "started_at"),
        model=body.model,
        provider=body.provider,
        parent_turn_id=body.parent_turn_id,
        entry_calls=body.entry_calls,
        # Requests made before observation are known only where there were none.
        entry_requests=None if body.entry_calls else 0,
    )


def request_facts(body: RequestBody) -> RequestFacts:
    """Work out what of a request needs no ledger.

    Raises
    ------
    InputError
        If its usage or its time can't be read.
    """
    usage, inner = _usages(body)
    at_ms = _time(body.at, "at")
    return RequestFacts(usage, inner, at_ms if at_ms is not None else _now_ms())


def request_events(
    turn_id: str, body: RequestBody, facts: RequestFacts, known: Row
) -> list[RequestMade]:
    """Return a request, behind the compactions that its usage bills.

    Parameters
    ----------
    turn_id : str
        Whose request it is; a compaction's belongs to no turn.
    facts : RequestFacts
        The body's.
    known : mapping
        The turn: ``session_id, model``.
    """
    told = body.tool_calls
    event = RequestMade(
        body.request_id,
        known["session_id"],
        None if body.kind == "compaction" else turn_id,
        None,
        facts.at_ms,
        body.model or known["model"],
        facts.usage,
        () if isinstance(told, int) else tuple((call.id, call.name) for call in told),
        told if isinstance(told, int) else 0,
        body.kind,
    )
    return [*_compactions_inside(event, facts.inner), event]


def end_event(turn_id: str, body: EndBody, known: Row) -> TurnReached | None:
    """Return what the body tells of a turn's end, or None where it was told before.

    Parameters
    ----------
    known : mapping
        The turn: ``session_id, status, last_ms, declared_tool_calls``.
    """
    at_ms = _time(body.at, "at")
    again = known["status"] == body.status and at_ms is None
    if again and body.tool_calls in (None, known["declared_tool_calls"]):
        return None
    # A clock behind the last request's must not turn the end into old news.
    at_ms = max(at_ms if at_ms is not None else _now_ms(), known["last_ms"] or 0)
    return TurnReached(
        turn_id,
        known["session_id"],
        body.status,
        body.reason,
        at_ms,
        tool_calls=body.tool_calls,
    )


def compaction_event(body: CompactionBody, made: Row | None) -> CompactionMade:
    """Return what the body tells of a compaction.

    Parameters
    ----------
    made : mapping, optional
        The compaction as it was told before, else its turn: what had been made before it, where
        the body leaves that out.
    """
    at_ms = _time(body.at, "at")
    calls, requests_made = body.calls_before, body.requests_before
    calls_made, requested = _made(made)
    return CompactionMade(
        compaction_id=body.compaction_id,
        session_id=body.session_id,
        turn_id=body.turn_id,
        at_ms=at_ms if at_ms is not None else _now_ms(),
        trigger=body.trigger,
        strategy=body.strategy,
        context_before=body.context_before,
        context_after=body.context_after,
        calls_before=calls_made if calls is None else calls,
        requests_before=requested if requests_made is None else requests_made,
    )


def finished_events(
    row: FinishedTurn, session_id: str, where: str = ""
) -> tuple[TurnStarted, TurnReached]:
    """Return the beginning and the end of a turn that came as one row.

    Parameters
    ----------
    session_id : str
        The turn's as the ledger has it, else the row's own.
    where : str
        Put before the name of a field that is wrong.

    Raises
    ------
    InputError
        If it made fewer calls in all than before observation began, or a time can't be read.
    """
    if row.tool_calls < row.entry_calls:
        raise InputError(
            f"fewer calls in all than the {row.entry_calls} before observation began",
            where=f"{where}tool_calls",
            value=row.tool_calls,
            remedy="tool_calls counts the whole turn, entry_calls its unseen beginning.",
        )
    started_ms = _time(row.started_at, f"{where}started_at")
    ended_ms = _time(row.ended_at, f"{where}ended_at")
    started = TurnStarted(
        turn_id=row.turn_id,
        session_id=session_id,
        thread_id=session_id,
        source=SOURCE,
        role=row.role,
        at_ms=started_ms,
        model=row.model,
        provider=row.provider,
        parent_turn_id=row.parent_turn_id,
        entry_calls=row.entry_calls,
        entry_requests=None if row.entry_calls else 0,
    )
    reached = TurnReached(
        row.turn_id,
        session_id,
        row.status,
        row.reason,
        ended_ms if ended_ms is not None else started_ms,
        tool_calls=row.tool_calls,
        requests=row.requests,
    )
    return started, reached


def no_such_turn(turn_id: str) -> NotFoundError:
    """Return the error of a turn that the ledger does not have."""
    return NotFoundError(
        "no such turn", where="turn_id", value=turn_id, remedy="PUT /turns/{turn_id} first."
    )


def refuse_other(known: Row, name: str, value: str, where: str = "", *, what: str = "turn") -> None:
    """Refuse a body that gives what is known another role or session.

    Raises
    ------
    ConflictError
        Naming the field, behind ``where``.
    """
    if known[name] != value:
        raise ConflictError(
            f"the {what} is recorded with {known[name]!r}",
            where=f"{where}{name}",
            value=value,
            remedy=f"A {what} keeps its role and session; give another {what} another id.",
        )


def refuse_other_owner(owner: str | None, turn_id: str, body: RequestBody) -> None:
    """Refuse a request that is recorded for another turn.

    Parameters
    ----------
    owner : str or None
        The turn it is recorded for; None for the call of a compaction.

    Raises
    ------
    ConflictError
    """
    if owner != (None if body.kind == "compaction" else turn_id):
        raise ConflictError(
            f"the request is recorded already, for the turn {owner!r}",
            where="request_id",
            value=body.request_id,
            remedy="Request ids are unique in the ledger; send the provider's message id.",
        )


def refuse_other_compaction(body: CompactionBody, turn: Row | None, told: Row | None) -> None:
    """Refuse a compaction of another session than its turn's, or than was told before.

    Raises
    ------
    ConflictError
    """
    if turn is not None:
        refuse_other(turn, "session_id", body.session_id)
    if told is not None:
        refuse_other(told, "session_id", body.session_id, what="compaction")


def refuse_pruned(before_ms: int | None, *times: tuple[str, int | None]) -> None:
    """Refuse a turn that the ledger does not have and that may be one of those pruned.

    Parameters
    ----------
    before_ms : int or None
        Up to when the ledger was pruned.
    times : tuple of (str, int or None)
        The turn's, with the fields that tell them.

    Raises
    ------
    InputError
        Naming the field.
    """
    for where, at_ms in times:
        if before_ms is not None and at_ms is not None and at_ms < before_ms:
            raise InputError(
                f"the ledger was pruned up to {iso(before_ms)}",
                where=where,
                value=iso(at_ms),
                remedy="A turn from before is counted already, or comes too late.",
            )


def _usages(body: RequestBody) -> tuple[Usage, Sequence[BilledIteration]]:
    """Return the request's own tokens, and the compactions its usage object bills beside it."""
    usage = usage_from(body.usage, body.convention)
    inner = [one for one in billed_iterations(body.usage) if one.kind == "compaction"]
    if body.kind == "compaction" and inner and usage == Usage():
        # A compaction on demand counts nothing at the top, only in its iteration.
        return inner[0].usage, inner[1:]
    return usage, inner


def _compactions_inside(
    event: RequestMade, inner: Sequence[BilledIteration]
) -> Iterator[RequestMade]:
    for number, one in enumerate(inner, start=1):
        yield replace(
            event,
            request_id=f"{event.request_id}/compaction-{number}",
            turn_id=None,
            model=one.model or event.model,
            usage=one.usage,
            tool_calls=(),
            unnamed_tool_calls=0,
            kind="compaction",
        )


def _made(known: Row | None) -> tuple[int, int]:
    """Return calls and requests made; nothing where the compaction lies between turns."""
    if known is None:
        return 0, 0
    if "calls_before" in known:
        return known["calls_before"], known["requests_before"]
    return known["tool_calls"], known["requests"] or 0


def _time(stamp: str | None, where: str) -> int | None:
    try:
        return milliseconds(stamp)
    except InputError as error:
        raise InputError(
            error.problem, where=where, value=error.value, remedy=error.remedy
        ) from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
