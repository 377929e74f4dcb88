"""Writes: turns, their requests and ends, compactions. Every one may be sent twice."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request
from sqlalchemy import Connection, select

from api.problems import (
    CONFLICT,
    NOT_FOUND,
    PROBLEM_RESPONSES,
    ConflictError,
    NotFoundError,
)
from api.schemas import (
    CompactionBody,
    EndBody,
    FinishedTurn,
    FinishedTurns,
    Known,
    ManyTurns,
    Name,
    Recorded,
    RequestBody,
    ToolCall,
    TurnBody,
)
from api.service import service_of
from compactuary.errors import InputError
from ledger.among import among
from ledger.clock import milliseconds
from ledger.database import writing
from ledger.events import CompactionMade, Event, RequestMade, TurnReached, TurnStarted
from ledger.recording import record
from ledger.schema import compactions, requests, turns
from ledger.usage import BilledIteration, Usage, billed_iterations, usage_from

__all__ = ["router"]

router = APIRouter(tags=["turns"], responses=PROBLEM_RESPONSES | CONFLICT)

SOURCE = "api"
#: Events recorded in one go when many finished turns come in.
_BATCH_EVENTS = 4000

TurnId = Annotated[Name, Path()]


@router.put("/turns/{turn_id:path}", summary="A turn begins")
def put_turn(turn_id: TurnId, body: TurnBody, request: Request) -> Known:
    """Record a turn, or fill what an earlier telling left out."""
    service = service_of(request)
    event = TurnStarted(
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
    with writing(service.engine) as connection:
        known = _turn(connection, turn_id)
        if known is not None:
            _refuse_other(known, "session_id", body.session_id)
            _refuse_other(known, "role", body.role)
        record(connection, [event])
        answer = _known(connection, turn_id)
    service.refresher.wake()
    return answer


@router.post("/turns/{turn_id:path}/requests", responses=NOT_FOUND, summary="A turn made a request")
def post_request(turn_id: TurnId, body: RequestBody, request: Request) -> Known:
    """Record a request with its tokens by class and the tool calls its answer asked for."""
    service = service_of(request)
    usage, inner = _usages(body)
    at_ms = _time(body.at, "at")
    with writing(service.engine) as connection:
        known = _needed(connection, turn_id)
        owner = connection.execute(
            select(requests.c.turn_id, requests.c.kind).where(
                requests.c.request_id == body.request_id
            )
        ).one_or_none()
        compacting = body.kind == "compaction"
        if owner is not None and owner.turn_id != (None if compacting else turn_id):
            raise ConflictError(
                f"the request is recorded already, for the turn {owner.turn_id!r}",
                where="request_id",
                value=body.request_id,
                remedy="Request ids are unique in the ledger; send the provider's message id.",
            )
        event = RequestMade(
            request_id=body.request_id,
            session_id=known["session_id"],
            turn_id=None if compacting else turn_id,
            position=None,
            at_ms=at_ms if at_ms is not None else _now_ms(),
            model=body.model or known["model"],
            usage=usage,
            kind=body.kind,
            **_calls(body.tool_calls),
        )
        record(connection, [*_compactions_inside(event, inner), event])
        answer = _known(connection, turn_id)
    service.refresher.wake()
    return answer


@router.post("/turns/{turn_id:path}/end", responses=NOT_FOUND, summary="A turn ended or was cut")
def post_end(turn_id: TurnId, body: EndBody, request: Request) -> Known:
    """Close a turn: `ended` if it came to its own end, `cut` if it was interrupted or failed."""
    service = service_of(request)
    at_ms = _time(body.at, "at")
    with writing(service.engine) as connection:
        known = _needed(connection, turn_id)
        again = known["status"] == body.status and at_ms is None
        if not again or body.tool_calls not in (None, known["declared_tool_calls"]):
            # A clock behind the last request's must not turn the end into old news.
            at_ms = max(at_ms if at_ms is not None else _now_ms(), known["last_ms"] or 0)
            record(
                connection,
                [
                    TurnReached(
                        turn_id,
                        known["session_id"],
                        body.status,
                        body.reason,
                        at_ms,
                        tool_calls=body.tool_calls,
                    )
                ],
            )
        answer = _known(connection, turn_id)
    service.refresher.wake()
    return answer


@router.post("/turns", summary="Many finished turns")
def post_turns(body: Annotated[ManyTurns, Body()], request: Request) -> Recorded:
    """Record finished turns, one row each; all of them, or none if one is wrong."""
    service = service_of(request)
    rows = body.turns if isinstance(body, FinishedTurns) else body
    added = 0
    with writing(service.engine) as connection:
        events = _finished_turns(connection, rows)
        for start in range(0, len(events), _BATCH_EVENTS):
            added += record(connection, events[start : start + _BATCH_EVENTS]).turns
    service.refresher.wake()
    return Recorded(turns=added, requests=0, compactions=0)


@router.post("/compactions", responses=NOT_FOUND, summary="A context was compacted")
def post_compaction(body: CompactionBody, request: Request) -> Recorded:
    """Record a compaction; the size after it may be sent later, under the same id."""
    service = service_of(request)
    at_ms = _time(body.at, "at")
    with writing(service.engine) as connection:
        known = _needed(connection, body.turn_id) if body.turn_id else None
        if known is not None:
            _refuse_other(known, "session_id", body.session_id)
        told = _compaction(connection, body.compaction_id)
        if told is not None:
            _refuse_other(told, "session_id", body.session_id, what="compaction")
        # The turn goes on after its compaction, so a second telling must not count anew.
        made = told or _made(known)
        calls, requests_made = body.calls_before, body.requests_before
        event = CompactionMade(
            compaction_id=body.compaction_id,
            session_id=body.session_id,
            turn_id=body.turn_id,
            at_ms=at_ms if at_ms is not None else _now_ms(),
            trigger=body.trigger,
            strategy=body.strategy,
            context_before=body.context_before,
            context_after=body.context_after,
            calls_before=made["calls_before"] if calls is None else calls,
            requests_before=made["requests_before"] if requests_made is None else requests_made,
        )
        done = record(connection, [event])
    return Recorded(turns=0, requests=0, compactions=done.compactions)


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


def _calls(told: Sequence[ToolCall] | int) -> dict[str, Any]:
    if isinstance(told, int):
        return {"unnamed_tool_calls": told}
    return {"tool_calls": tuple((call.id, call.name) for call in told)}


def _finished_turns(connection: Connection, rows: Sequence[FinishedTurn]) -> list[Event]:
    """Return the events of finished turns; none may contradict the ledger or another row."""
    kept = _identities(connection, [row.turn_id for row in rows])
    events: list[Event] = []
    for index, row in enumerate(rows):
        where = f"turns.{index}."
        mine = {"role": row.role, "session_id": row.session_id or row.turn_id}
        known = kept.setdefault(row.turn_id, mine)
        _refuse_other(known, "role", row.role, where)
        if row.session_id is not None:
            _refuse_other(known, "session_id", row.session_id, where)
        events += _finished(row, known["session_id"], where)
    return events


def _finished(row: FinishedTurn, session_id: str, where: str) -> list[Event]:
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
    return [started, reached]


def _identities(connection: Connection, turn_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the role and session of those of the turns that the ledger has."""
    named = select(turns.c.turn_id, turns.c.role, turns.c.session_id)
    found = connection.execute(named.where(among(connection, turns.c.turn_id, turn_ids)))
    return {row["turn_id"]: dict(row) for row in found.mappings()}


def _compaction(connection: Connection, compaction_id: str) -> dict[str, Any] | None:
    known = select(compactions).where(compactions.c.compaction_id == compaction_id)
    found = connection.execute(known).one_or_none()
    return None if found is None else found._asdict()


def _made(turn: dict[str, Any] | None) -> dict[str, int]:
    """Return what a turn has made so far; nothing where the compaction lies between turns."""
    if turn is None:
        return {"calls_before": 0, "requests_before": 0}
    return {"calls_before": turn["tool_calls"], "requests_before": turn["requests"] or 0}


def _turn(connection: Connection, turn_id: str) -> dict[str, Any] | None:
    found = connection.execute(select(turns).where(turns.c.turn_id == turn_id)).one_or_none()
    return None if found is None else found._asdict()


def _needed(connection: Connection, turn_id: str) -> dict[str, Any]:
    known = _turn(connection, turn_id)
    if known is None:
        raise NotFoundError(
            "no such turn", where="turn_id", value=turn_id, remedy="PUT /turns/{turn_id} first."
        )
    return known


def _known(connection: Connection, turn_id: str) -> Known:
    row = _needed(connection, turn_id)
    return Known(
        turn_id=turn_id,
        status=row["status"],
        tool_calls=row["tool_calls"],
        requests=row["requests"],
    )


def _refuse_other(
    known: Mapping[str, Any], name: str, value: str, where: str = "", *, what: str = "turn"
) -> None:
    if known[name] != value:
        raise ConflictError(
            f"the {what} is recorded with {known[name]!r}",
            where=f"{where}{name}",
            value=value,
            remedy=f"A {what} keeps its role and session; give another {what} another id.",
        )


def _time(stamp: str | None, where: str) -> int | None:
    try:
        return milliseconds(stamp)
    except InputError as error:
        raise InputError(
            error.problem, where=where, value=error.value, remedy=error.remedy
        ) from error


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
