"""NDJSON → events: the lines of a stream, read a few at a time, and what each of them may say."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from api.problems import field_problem
from api.schemas import CompactionBody, EndBody, FinishedTurn, Name, RequestBody, TurnBody
from compactuary.errors import InputError

__all__ = [
    "EVENTS",
    "LONGEST_LINE_BYTES",
    "CompactionLine",
    "EndLine",
    "FinishedTurnLine",
    "Line",
    "RequestLine",
    "TurnLine",
    "line_of",
    "line_portions",
]

#: A longer line is no event: 10,000 tool calls with long names fit in.
LONGEST_LINE_BYTES = 4 * 1024 * 1024
#: Lines handed on together, and bytes from which on fewer are.
PORTION_LINES = 2000
PORTION_BYTES = 2 * 1024 * 1024


class TurnLine(TurnBody):
    """A turn begins."""

    event: Literal["turn"]
    turn_id: Name


class RequestLine(RequestBody):
    """A turn made a request."""

    event: Literal["request"]
    turn_id: Name


class EndLine(EndBody):
    """A turn ended or was cut."""

    event: Literal["end"]
    turn_id: Name


class CompactionLine(CompactionBody):
    """A context was compacted."""

    event: Literal["compaction"]


class FinishedTurnLine(FinishedTurn):
    """A turn that is over, as one row."""

    event: Literal["finished_turn"]


Line = TurnLine | RequestLine | EndLine | CompactionLine | FinishedTurnLine
EVENTS = ("turn", "request", "end", "compaction", "finished_turn")
_LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="event")])


def line_of(raw: bytes) -> Line:
    """Read one line.

    Raises
    ------
    InputError
        Naming the field, if it is no JSON object or not what its event asks for.
    """
    if len(raw) > LONGEST_LINE_BYTES:
        raise InputError(
            f"the line is longer than {LONGEST_LINE_BYTES:,} bytes",
            where="line",
            remedy="Send one event a line.",
        )
    try:
        return _LINE.validate_json(raw)
    except ValidationError as error:
        raise _wrong(error.errors(include_url=False)[0]) from error


def _wrong(first: Any) -> InputError:
    kind = first["type"]
    if kind == "json_invalid":
        problem, remedy = f"is not JSON: {first['ctx']['error']}", "Send one JSON object a line."
        return InputError(problem, where="line", remedy=remedy)
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        told = first["input"].get("event") if isinstance(first["input"], dict) else None
        return InputError(
            "is missing" if told is None else "no such event",
            where="event",
            value=told,
            remedy=f"Send one of: {', '.join(EVENTS)}.",
        )
    if not first["loc"]:
        return InputError("is no object", where="line", remedy="Send one JSON object a line.")
    named = field_problem(first)
    return InputError(
        named["problem"], where=named["field"], value=named["value"], remedy=named["remedy"]
    )


async def line_portions(stream: AsyncIterator[bytes]) -> AsyncIterator[list[tuple[int, bytes]]]:
    """Yield the numbered lines of a stream, some thousands at a time; blank ones are left out.

    Of a line that is too long only its beginning is kept, longer than any line may be.
    """
    portion: list[tuple[int, bytes]] = []
    number, size, rest = 1, 0, b""
    async for chunk in stream:
        *whole, last = chunk.split(b"\n")
        for part in whole:
            line = (rest + part).strip()
            rest = b""
            if line:
                portion.append((number, line))
                size += len(line)
            number += 1
            if len(portion) >= PORTION_LINES or size >= PORTION_BYTES:
                yield portion
                portion, size = [], 0
        if len(rest) <= LONGEST_LINE_BYTES:
            rest += last
    if line := rest.strip():
        portion.append((number, line))
    if portion:
        yield portion
