"""Writes: turns, their requests and ends, compactions. Every one may be sent twice."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request
from sqlalchemy import Connection, select

from api.problems import PROBLEM_RESPONSES, ConflictError, NotFoundError
from api.schemas import (
    CompactionBody,
    EndBody,
    FinishedTurn,
    FinishedTurns,
    Known,
    Recorded,
    RequestBody,
    TurnBody,
)
from api.service import service_of
from compactuary.errors import InputError
from ledger.clock import milliseconds
from ledger.database import writing
from ledger.events import CompactionMade, Event, RequestMade, TurnReached, TurnStarted
from ledger.recording import record
from ledger.schema import requests, turns
from ledger.usage import usage_from

__all__ = ["router"]

router = APIRouter(tags=["turns"], responses=PROBLEM_RESPONSES)

SOURCE = "api"
#: Events recorded in one go when many finished turns come in.
_BATCH_EVENTS = 4000

TurnId = Annotated[str, Path(min_length=1, max_length=500)]


@router.put("/turns/{turn_id}", summary="A turn begins")
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


@router.post("/turns/{turn_id}/requests", summary="A turn made a request")
def post_request(turn_id: TurnId, body: RequestBody, request: Request) -> Known:
    """Record a request with its tokens by class and the tool calls its answer asked for."""
    service = service_of(request)
    calls = body.tool_calls
    named = () if isinstance(calls, int) else tuple((call.id, call.name) for call in calls)
    usage = usage_from(body.usage)
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
            tool_calls=named,
            unnamed_tool_calls=calls if isinstance(calls, int) else 0,
            kind=body.kind,
        )
        record(connection, [event])
        answer = _known(connection, turn_id)
    service.refresher.wake()
    return answer


@router.post("/turns/{turn_id}/end", summary="A turn ended or was cut")
def post_end(turn_id: TurnId, body: EndBody, request: Request) -> Known:
    """Close a turn: `ended` if it came to its own end, `cut` if it was interrupted or failed."""
    service = service_of(request)
    at_ms = _time(body.at, "at")
    with writing(service.engine) as connection:
        known = _needed(connection, turn_id)
        again = known["status"] == body.status and at_ms is None
        if not again:
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
def post_turns(
    body: Annotated[list[FinishedTurn] | FinishedTurns, Body()], request: Request
) -> Recorded:
    """Record finished turns, one row each; all of them, or none if one is wrong."""
    service = service_of(request)
    rows = body.turns if isinstance(body, FinishedTurns) else body
    events: list[Event] = []
    for index, row in enumerate(rows):
        events += _finished(row, f"turns.{index}")
    written = [0, 0, 0]
    with writing(service.engine) as connection:
        for start in range(0, len(events), _BATCH_EVENTS):
            done = record(connection, events[start : start + _BATCH_EVENTS])
            written[0] += done.turns
    service.refresher.wake()
    return Recorded(turns=written[0], requests=0, compactions=0)


@router.post("/compactions", summary="A context was compacted")
def post_compaction(body: CompactionBody, request: Request) -> Recorded:
    """Record a compaction; the size after it may be sent later, under the same id."""
    service = service_of(request)
    with writing(service.engine) as connection:
        known = _needed(connection, body.turn_id) if body.turn_id else None
        if known is not None:
            _refuse_other(known, "session_id", body.session_id)
        made = known or {"tool_calls": 0, "requests": 0}
        event = CompactionMade(
            compaction_id=body.compaction_id,
            session_id=body.session_id,
            turn_id=body.turn_id,
            at_ms=_time(body.at, "at"),
            trigger=body.trigger,
            strategy=body.strategy,
            context_before=body.context_before,
            context_after=body.context_after,
            calls_before=made["tool_calls"] if body.calls_before is None else body.calls_before,
            requests_before=(
                made["requests"] or 0 if body.requests_before is None else body.requests_before
            ),
        )
        done = record(connection, [event])
    return Recorded(turns=0, requests=0, compactions=done.compactions)


def _finished(row: FinishedTurn, where: str) -> list[Event]:
    if row.tool_calls < row.entry_calls:
        raise InputError(
            f"fewer calls in all than the {row.entry_calls} before observation began",
            where=f"{where}.tool_calls",
            value=row.tool_calls,
            remedy="tool_calls counts the whole turn, entry_calls its unseen beginning.",
        )
    session_id = row.session_id or row.turn_id
    started_ms = _time(row.started_at, f"{where}.started_at")
    ended_ms = _time(row.ended_at, f"{where}.ended_at")
    return [
        TurnStarted(
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
        ),
        TurnReached(
            row.turn_id,
            session_id,
            row.status,
            row.reason,
            ended_ms if ended_ms is not None else started_ms,
            tool_calls=row.tool_calls,
            requests=row.requests,
        ),
    ]


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


def _refuse_other(known: dict[str, Any], name: str, value: str) -> None:
    if known[name] != value:
        raise ConflictError(
            f"the turn is recorded with {known[name]!r}",
            where=name,
            value=value,
            remedy="A turn keeps its role and session; give another turn another id.",
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
