"""``/thresholds``: compiled rules, for callers that decide locally."""

import asyncio
import hashlib
from datetime import UTC, datetime
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Header, Query, Response

from api.problems import PROBLEM_RESPONSES
from api.schemas import Name, ThresholdsQuery
from api.service import Service, service_of
from policy.question import Question
from policy.served_thresholds import asked_thresholds, served_thresholds

__all__ = ["router"]

router = APIRouter(tags=["decisions"])


@router.get(
    "/thresholds/{role:path}",
    responses=PROBLEM_RESPONSES | {304: {"description": "The caller has these already."}},
    summary="The contexts from which a rule compacts, for deciding locally",
)
async def thresholds_of_role(
    role: Name,
    query: Annotated[ThresholdsQuery, Query()],
    service: Annotated[Service, Depends(service_of)],
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Answer with thresholds by requests made, for each moment, and what they were compiled for.

    `at_call[i]` is the context from which to compact after i requests, i being calls times
    `requests_per_call` (1 where `unit` is requests); null is never. Beyond `hard_limit_tokens`,
    compact whatever they say. The ETag changes when they do.
    """
    question = Question(role=role, calls=0, **query.__dict__)
    snapshot = service.refresher.state.snapshot
    now = datetime.now(UTC)
    key = asked_thresholds(question, snapshot, service.price_book, at=now)
    compiled = service.compiler.find(key, question)
    if compiled is None:
        compiled = await asyncio.to_thread(service.compiler.compile, key, question)
    mode = service.modes.of(role)
    body = orjson.dumps(served_thresholds(key, compiled, question, snapshot, mode))
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if if_none_match is not None and etag in if_none_match:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)
