"""``/should-compact``: memory only, no database, no thread; and what was answered, from the log."""

import logging
import os
import random
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response

from api.decision_log import decision_made
from api.decision_summary import MOST_DECISIONS, decision_rows, decision_summary
from api.problems import PROBLEM_RESPONSES
from api.schemas import Name, ShouldCompact, ShouldCompactQuery, Stamp
from api.service import Service, service_of
from compactuary.errors import InputError
from ledger.clock import milliseconds
from ledger.database import reading
from policy.answer import Answer
from policy.decision import decide
from policy.question import Question

__all__ = ["ASKED", "answer", "router"]

#: Path of the question that an agent asks before each request.
ASKED = "/should-compact"

router = APIRouter(tags=["decisions"])

_LOGGER = logging.getLogger(__name__)
#: Seeded by the system once a process: asking it for each decision costs as much as a part of one.
_DRAWN = random.Random()  # noqa: S311 - names have to differ, and are no secrets
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_DRAWN.seed)


@router.post(
    ASKED,
    response_model=Answer,
    responses=PROBLEM_RESPONSES,
    summary="Compact before the next request, or wait?",
)
async def ask(body: ShouldCompact, request: Request) -> Response:
    """Answer from the current snapshot, with the reason, the interval and what it rests on.

    An unknown role is answered from all roles together, an empty ledger from the standard table
    that ships with the project (`basis.source` says so); `basis.rests_on` lists every table that
    was blended in, with its weight. `break_even_calls` is C/s, the requests that must remain.
    """
    return await answer(body, service_of(request))


@router.get(
    ASKED,
    response_model=Answer,
    responses=PROBLEM_RESPONSES,
    summary="The same question, flat in the query",
)
async def ask_flat(query: Annotated[ShouldCompactQuery, Query()], request: Request) -> Response:
    """Answer as `POST /should-compact` does; weights can't be given here."""
    return await answer(query, service_of(request))


Role = Annotated[Name | None, Query(description="Only decisions that named this role.")]
Since = Annotated[Stamp | None, Query(description="Only decisions made then or later.")]


@router.get(
    "/decisions/summary",
    responses=PROBLEM_RESPONSES,
    summary="What was said against what happened",
)
def get_summary(
    request: Request,
    role: Role = None,
    since: Since = None,
    limit: Annotated[int, Query(ge=1, le=MOST_DECISIONS)] = 10_000,
) -> dict[str, Any]:
    """Return the latest decisions' forecasts against what their turns then did.

    The log is written a moment after the answer, and a decision has an outcome once its turn is in
    the ledger; while that has not ended, it counts as cut.
    """
    with reading(service_of(request).engine) as connection:
        return decision_summary(connection, role=role, since_ms=_since_ms(since), limit=limit)


@router.get("/decisions", responses=PROBLEM_RESPONSES, summary="Decisions with their outcomes")
def get_decisions(
    request: Request,
    role: Role = None,
    since: Since = None,
    turn_id: Annotated[Name | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> list[dict[str, Any]]:
    """Return the latest decisions, newest first, as they were logged, with what happened then."""
    with reading(service_of(request).engine) as connection:
        return decision_rows(
            connection, limit=limit, role=role, since_ms=_since_ms(since), turn_id=turn_id
        )


def _since_ms(since: str | None) -> int | None:
    try:
        return milliseconds(since)
    except InputError as error:
        raise InputError(
            error.problem, where="since", value=error.value, remedy=error.remedy
        ) from error


async def answer(asked: ShouldCompactQuery, service: Service) -> Response:
    """Answer a question from memory, and log the answer.

    Raises
    ------
    InputError
        It can't be answered; nothing is logged then.
    """
    at = datetime.now(UTC)
    at_ms = int(at.timestamp() * 1000)
    # A validated model's own fields are the question's, by name; a test holds them together.
    question = Question(**asked.__dict__)
    snapshot = service.refresher.state.snapshot
    found = service.repeats.find(question, snapshot.version)
    if found is not None:
        service.counts.repeats += 1
        return _said(found)
    made = decide(
        question,
        snapshot,
        service.price_book,
        at=at,
        decision_id=_new_id(at_ms),
        book=service.compiler,
        mode=service.modes.of(question.role),
    )
    service.repeats.keep(question, snapshot.version, made)
    service.counts.decided(made)
    if _LOGGER.isEnabledFor(logging.DEBUG):
        told = {"decision_id": made.decision_id, "decision": made.decision, "rule": made.rule}
        _LOGGER.debug("decided", extra=told)
    if service.log is not None:
        row = decision_made(question, made, at_ms)
        if not service.log.offer(row):
            await service.log.wait(row)
    return _said(made)


def _said(made: Answer) -> Response:
    return Response(orjson.dumps(made.as_payload()), media_type="application/json")


def _new_id(at_ms: int) -> str:
    """Return a new decision's name: the time, then 80 random bits.

    Names that grow keep the log's index cheap: drawn at random they doubled the cost of a row.
    """
    return f"{at_ms:012x}{_DRAWN.getrandbits(80):020x}"
