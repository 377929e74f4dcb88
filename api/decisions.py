"""``/should-compact``: memory only, no database, no thread."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import uuid4

import orjson
from fastapi import APIRouter, Query, Request, Response

from api.problems import PROBLEM_RESPONSES
from api.schemas import ShouldCompact, ShouldCompactQuery
from api.service import Service
from policy.answer import Answer
from policy.decision import decide
from policy.question import Question

__all__ = ["router"]

router = APIRouter(tags=["decisions"])


@router.post(
    "/should-compact",
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
    return _answer(body, request)


@router.get(
    "/should-compact",
    response_model=Answer,
    responses=PROBLEM_RESPONSES,
    summary="The same question, flat in the query",
)
async def ask_flat(query: Annotated[ShouldCompactQuery, Query()], request: Request) -> Response:
    """Answer as `POST /should-compact` does; weights can't be given here."""
    return _answer(query, request)


def _answer(asked: ShouldCompactQuery, request: Request) -> Response:
    service: Service = request.app.state.service
    answer = decide(
        # A validated model's own fields are the question's, by name; a test holds them together.
        Question(**asked.__dict__),
        service.refresher.state.snapshot,
        service.price_book,
        at=datetime.now(UTC),
        decision_id=uuid4().hex,
    )
    return Response(orjson.dumps(answer.as_payload()), media_type="application/json")
