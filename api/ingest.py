"""``POST /ingest``: a stream of events, some thousands a transaction, each line for itself."""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any, Literal, get_args

import orjson
from fastapi import APIRouter, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.requests import ClientDisconnect

from api.lines import line_portions
from api.problems import PROBLEM_RESPONSES, RefusedError, shown
from api.recorded_lines import Outcome, record_lines
from api.service import service_of
from compactuary.errors import InputError

__all__ = ["MEDIA_TYPES", "router"]

router = APIRouter(tags=["turns"], responses=PROBLEM_RESPONSES)

#: Others a browser sends to any origin without asking, and who may write would be everybody.
MEDIA_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
#: Refused lines that are explained; further ones are counted only.
MOST_EXPLAINED = 1000
_LINES_AT_ONCE = 1000

Status = Literal["recorded", "known", "refused"]
_STATUSES: tuple[Status, ...] = get_args(Status)


class LineResult(BaseModel):
    """What became of one line; what is wrong with it, where it was refused."""

    line: int
    status: Status
    field: str | None = None
    problem: str | None = None
    value: Any = None
    remedy: str | None = None


class Ingested(BaseModel):
    """What became of a stream: counts of lines, and the lines that were refused."""

    recorded: int
    known: int
    refused: int
    results: list[LineResult]


@router.post(
    "/ingest",
    summary="A stream of events",
    response_model=Ingested,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {MEDIA_TYPES[0]: {"schema": {"type": "string"}}},
        }
    },
)
async def post_ingest(
    request: Request,
    results: Annotated[
        Literal["refused", "all"], Query(description="Which lines the answer lists.")
    ] = "refused",
) -> Response:
    """Record events, one JSON object a line: `{"event": …, …}` and the fields of its own endpoint.

    A line that is wrong is left out alone. Everything may be sent twice: where the stream breaks
    off, or the ledger can't be used, what came before is recorded.
    """
    _refuse_other_media(request)
    service = service_of(request)
    told = _Told()
    try:
        async for portion in line_portions(request.stream()):
            told.add(portion, await run_in_threadpool(record_lines, service.engine, portion))
    except ClientDisconnect:
        return Response(status_code=499)  # nobody is there to read it
    finally:
        if told.counts["recorded"]:
            service.refresher.wake()
    return StreamingResponse(told.body(every=results == "all"), media_type="application/json")


def _refuse_other_media(request: Request) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in MEDIA_TYPES:
        raise RefusedError(
            415,
            "media-type",
            "Not a stream of events",
            f"content-type: {given[:80] or 'nothing'} is not {MEDIA_TYPES[0]}",
            f"Send one JSON object a line, with the header content-type: {MEDIA_TYPES[0]}.",
        )


@dataclass(slots=True)
class _Told:
    """What has been told of the lines so far: a few bytes each, and why some were refused."""

    counts: Counter[str] = field(default_factory=Counter)
    explained: list[bytes] = field(default_factory=list)
    numbers: "array[int]" = field(default_factory=lambda: array("Q"))
    statuses: bytearray = field(default_factory=bytearray)

    def add(self, lines: Sequence[tuple[int, bytes]], outcomes: Sequence[Outcome]) -> None:
        """Take the outcomes of the next lines."""
        for (number, _), outcome in zip(lines, outcomes, strict=True):
            status: Status = "refused" if isinstance(outcome, InputError) else outcome
            self.counts[status] += 1
            self.numbers.append(number)
            self.statuses.append(_STATUSES.index(status))
            if isinstance(outcome, InputError) and len(self.explained) < MOST_EXPLAINED:
                self.explained.append(_explained(number, outcome))

    def body(self, *, every: bool) -> Iterator[bytes]:
        """Yield the answer in portions."""
        counts = {status: self.counts[status] for status in _STATUSES}
        yield orjson.dumps(counts)[:-1] + b',"results":['
        lines = self._every() if every else iter(self.explained)
        first = True
        while some := list(islice(lines, _LINES_AT_ONCE)):
            yield (b"\n" if first else b",\n") + b",\n".join(some)
            first = False
        yield b"]}\n"

    def _every(self) -> Iterator[bytes]:
        explained = iter(self.explained)
        for number, code in zip(self.numbers, self.statuses, strict=True):
            status = _STATUSES[code]
            plain = b'{"line":%d,"status":"%s"}' % (number, status.encode())
            yield next(explained, plain) if status == "refused" else plain


def _explained(number: int, error: InputError) -> bytes:
    return orjson.dumps(
        {
            "line": number,
            "status": "refused",
            "field": error.where,
            "problem": error.problem,
            "value": shown(error.value),
            "remedy": error.remedy,
        }
    )
