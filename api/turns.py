"""Writes: turns, their requests and ends, compactions. Every one may be sent twice."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Request
from sqlalchemy import Connection, select

from api.events import (
    compaction_event,
    end_event,
    finished_events,
    no_such_turn,
    refuse_other,
    refuse_other_compaction,
    refuse_other_owner,
    refuse_pruned,
    request_events,
    request_facts,
    turn_event,
)
from api.problems import CONFLICT, NOT_FOUND, PROBLEM_RESPONSES
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
    TurnBody,
)
from api.service import service_of
from ledger.among import among
from ledger.database import writing
from ledger.events import Event
from ledger.recording import record
from ledger.retention import pruned_before
from ledger.schema import compactions, requests, turns

__all__ = ["router"]

router = APIRouter(tags=["turns"], responses=PROBLEM_RESPONSES | CONFLICT)

#: Events recorded in one go when many finished turns come in.
_BATCH_EVENTS = 4000

TurnId = Annotated[Name, Path()]


@router.put("/turns/{turn_id:path}", summary="A turn begins")
def put_turn(turn_id: TurnId, body: TurnBody, request: Request) -> Known:
    """Record a turn, or fill what an earlier telling left out."""
    service = service_of(request)
    event = turn_event(turn_id, body)
    with writing(service.engine) as connection:
        known = _turn(connection, turn_id)
        if known is not None:
            refuse_other(known, "session_id", body.session_id)
            refuse_other(known, "role", body.role)
        else:
            refuse_pruned(pruned_before(connection), ("started_at", event.at_ms))
        record(connection, [event])
        answer = _known(connection, turn_id)
    service.refresher.wake()
    return answer


@router.post("/turns/{turn_id:path}/requests", responses=NOT_FOUND, summary="A turn made a request")
def post_request(turn_id: TurnId, body: RequestBody, request: Request) -> Known:
    """Record a request with its tokens by class and the tool calls its answer asked for."""
    service = service_of(request)
    facts = request_facts(body)
    with writing(service.engine) as connection:
        known = _needed(connection, turn_id)
        owner = connection.execute(
            select(requests.c.turn_id).where(requests.c.request_id == body.request_id)
        ).one_or_none()
        if owner is not None:
            refuse_other_owner(owner.turn_id, turn_id, body)
        record(connection, request_events(turn_id, body, facts, known))
        answer = _known(connection, turn_id)
    service.refresher.wake()
    return answer


@router.post("/turns/{turn_id:path}/end", responses=NOT_FOUND, summary="A turn ended or was cut")
def post_end(turn_id: TurnId, body: EndBody, request: Request) -> Known:
    """Close a turn: `ended` if it came to its own end, `cut` if it was interrupted or failed."""
    service = service_of(request)
    with writing(service.engine) as connection:
        event = end_event(turn_id, body, _needed(connection, turn_id))
        if event is not None:
            record(connection, [event])
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
    with writing(service.engine) as connection:
        known = _needed(connection, body.turn_id) if body.turn_id else None
        told = _compaction(connection, body.compaction_id)
        refuse_other_compaction(body, known, told)
        # The turn goes on after its compaction, so a second telling must not count anew.
        done = record(connection, [compaction_event(body, told or known)])
    return Recorded(turns=0, requests=0, compactions=done.compactions)


def _finished_turns(connection: Connection, rows: Sequence[FinishedTurn]) -> list[Event]:
    """Return the events of finished turns; none may contradict the ledger or another row."""
    kept = _identities(connection, [row.turn_id for row in rows])
    before_ms = pruned_before(connection)
    events: list[Event] = []
    for index, row in enumerate(rows):
        where = f"turns.{index}."
        mine = {"role": row.role, "session_id": row.session_id or row.turn_id}
        new, known = row.turn_id not in kept, kept.setdefault(row.turn_id, mine)
        refuse_other(known, "role", row.role, where)
        if row.session_id is not None:
            refuse_other(known, "session_id", row.session_id, where)
        started, reached = finished_events(row, known["session_id"], where)
        if new:
            times = ("started_at", started.at_ms), ("ended_at", reached.at_ms)
            refuse_pruned(before_ms, *((f"{where}{name}", at_ms) for name, at_ms in times))
        events += [started, reached]
    return events


def _identities(connection: Connection, turn_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the role and session of those of the turns that the ledger has."""
    named = select(turns.c.turn_id, turns.c.role, turns.c.session_id)
    found = connection.execute(named.where(among(connection, turns.c.turn_id, turn_ids)))
    return {row["turn_id"]: dict(row) for row in found.mappings()}


def _compaction(connection: Connection, compaction_id: str) -> dict[str, Any] | None:
    known = select(compactions).where(compactions.c.compaction_id == compaction_id)
    found = connection.execute(known).one_or_none()
    return None if found is None else found._asdict()


def _turn(connection: Connection, turn_id: str) -> dict[str, Any] | None:
    found = connection.execute(select(turns).where(turns.c.turn_id == turn_id)).one_or_none()
    return None if found is None else found._asdict()


def _needed(connection: Connection, turn_id: str) -> dict[str, Any]:
    known = _turn(connection, turn_id)
    if known is None:
        raise no_such_turn(turn_id)
    return known


def _known(connection: Connection, turn_id: str) -> Known:
    row = _needed(connection, turn_id)
    return Known(
        turn_id=turn_id,
        status=row["status"],
        tool_calls=row["tool_calls"],
        requests=row["requests"],
    )
