"""Plain tables of turns, requests or compactions, CSV or JSON lines: what ``export`` writes.

The columns decide what a table holds. A table of turns needs ``role`` and ``tool_calls`` only:
where other columns are missing, its turns have ended and were seen from their first call.
"""

import csv
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import orjson

from compactuary.errors import InputError, SourceError
from ledger.clock import milliseconds
from ledger.events import CompactionMade, Event, RequestMade, TurnReached, TurnStarted
from ledger.readers.fields import count, text_or_none
from ledger.readers.lines import open_log, unreadable, whole_lines
from ledger.usage import usage_from

__all__ = ["STATUSES", "kind_of", "table_events"]

STATUSES = ("ended", "cut", "open")
#: What a table must have to be taken for one, in the order in which tables must be read.
KINDS: dict[str, frozenset[str]] = {
    "turns": frozenset({"role", "tool_calls"}),
    "requests": frozenset({"turn_id", "uncached", "output"}),
    "compactions": frozenset({"session_id", "context_before"}),
}
Row: TypeAlias = Mapping[str, Any]
_TOKENS = (
    "uncached",
    "cache_read",
    "cache_write",
    "cache_write_5m",
    "cache_write_30m",
    "cache_write_1h",
    "cache_write_12h",
    "cache_write_other",
    "output",
    "reasoning",
)


def kind_of(columns: Iterable[str]) -> str | None:
    """Return what a table with these columns holds: turns, requests or compactions, or None."""
    present = set(columns)
    return next((kind for kind, needed in KINDS.items() if needed <= present), None)


def table_events(path: Path, kind: str) -> Iterator[tuple[Event, int]]:
    """Yield the events of a table with the number of the line each came from.

    Raises
    ------
    SourceError
        Naming file and line, if a line or a value is not what it must be.
    """
    make = {"turns": _turn, "requests": _request, "compactions": _compaction}[kind]
    rows = _csv_rows(path) if ".csv" in path.suffixes else _json_rows(path)
    for row, line in rows:
        try:
            for event in make(row, f"{path}:{line}"):
                yield event, line
        except InputError as error:
            raise SourceError(
                error.problem,
                where=f"{path}:{line}: {error.where}",
                value=error.value,
                remedy=error.remedy,
            ) from error


def _csv_rows(path: Path) -> Iterator[tuple[Row, int]]:
    try:
        with open_log(path) as file:
            reader = csv.DictReader(_decoded(path, file))
            for row in reader:
                number = reader.line_num
                if None in row or None in row.values():
                    raise _broken(path, number, "not as many fields as the header has columns")
                yield {key: value or None for key, value in row.items()}, number
    except csv.Error as error:
        raise _broken(path, reader.line_num + 1, f"not a line of a CSV file: {error}") from error
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(path, error) from error


def _decoded(path: Path, file: IO[bytes]) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise _broken(path, number, f"not a line of UTF-8: {error}") from error


def _json_rows(path: Path) -> Iterator[tuple[Row, int]]:
    for number, (line, _) in enumerate(whole_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise _broken(path, number, f"not valid JSON: {error}") from error
        if not isinstance(row, dict):
            raise _broken(path, number, "not a JSON object")
        yield row, number


def _broken(path: Path, line: int, problem: str) -> SourceError:
    return SourceError(problem, where=f"{path}:{line}", remedy="Repair or remove the line.")


def _turn(row: Row, fallback_id: str) -> Iterator[Event]:
    turn_id = _name(row, "turn_id") or fallback_id
    session_id = _name(row, "session_id") or turn_id
    status = row.get("status") or "ended"
    if status not in STATUSES:
        raise InputError(
            "unknown status",
            where="status",
            value=status,
            remedy=f"Write one of: {', '.join(STATUSES)}.",
        )
    entry_calls, entry_requests = _entry(row)
    started_ms, ended_ms = _time(row, "started_at"), _time(row, "ended_at")
    yield TurnStarted(
        turn_id=turn_id,
        session_id=session_id,
        thread_id=_name(row, "thread_id") or session_id,
        source=_name(row, "source") or "table",
        role=_role(row),
        at_ms=started_ms,
        model=_name(row, "model"),
        provider=_name(row, "provider"),
        parent_turn_id=_name(row, "parent_turn_id"),
        trigger=_name(row, "trigger"),
        entry_calls=entry_calls,
        entry_requests=entry_requests,
    )
    yield TurnReached(
        turn_id=turn_id,
        session_id=session_id,
        status=status,
        reason=_name(row, "reason"),
        at_ms=ended_ms if ended_ms is not None else started_ms,
        tool_calls=_tool_calls(row, entry_calls or 0),
        requests=_count(row, "requests"),
    )


def _role(row: Row) -> str:
    role = (_name(row, "role") or "").strip()
    if not role:
        raise InputError("empty", where="role", remedy="Name the turn's role.")
    return role


def _entry(row: Row) -> tuple[int | None, int | None]:
    """Return the calls and requests before observation began, None where nobody knows."""
    # An empty cell is what export writes for unknown; without the column, turns are seen whole.
    calls = _count(row, "entry_calls") if "entry_calls" in row else 0
    if "entry_requests" in row:
        return calls, _count(row, "entry_requests")
    return calls, 0 if calls == 0 else None


def _tool_calls(row: Row, entry_calls: int) -> int:
    tool_calls = _count(row, "tool_calls")
    if tool_calls is None:
        raise InputError("missing", where="tool_calls", remedy="Write the number of tool calls.")
    if tool_calls < entry_calls:
        raise InputError(
            f"fewer calls in all than the {entry_calls} before observation began",
            where="tool_calls",
            value=tool_calls,
            remedy="tool_calls counts the whole turn, entry_calls its unseen beginning.",
        )
    return tool_calls


def _request(row: Row, fallback_id: str) -> Iterator[Event]:
    turn_id = _name(row, "turn_id")
    index = _count(row, "index")
    kind = row.get("kind") or "agent"
    if kind not in ("agent", "compaction"):
        raise InputError(
            "unknown kind", where="kind", value=kind, remedy="Write agent or compaction."
        )
    if turn_id is None and kind == "agent":
        raise InputError("empty", where="turn_id", remedy="Name the turn that made the request.")
    numbered = turn_id is not None and index is not None
    request_id = _name(row, "request_id") or (f"{turn_id}#{index}" if numbered else fallback_id)
    yield RequestMade(
        request_id=request_id,
        session_id=_name(row, "session_id") or turn_id or request_id,
        turn_id=turn_id,
        position=index,
        at_ms=_time(row, "at"),
        model=_name(row, "model"),
        usage=usage_from({name: _count(row, name) for name in _TOKENS if name in row}),
        unnamed_tool_calls=_count(row, "tool_calls") or 0,
        kind=kind,
    )


def _compaction(row: Row, fallback_id: str) -> Iterator[Event]:
    session_id = _name(row, "session_id")
    if session_id is None:
        raise InputError("empty", where="session_id", remedy="Name the compaction's session.")
    yield CompactionMade(
        compaction_id=_name(row, "compaction_id") or fallback_id,
        session_id=session_id,
        turn_id=_name(row, "turn_id"),
        at_ms=_time(row, "at"),
        trigger=_name(row, "trigger"),
        strategy=_name(row, "strategy") or "summary",
        context_before=_count(row, "context_before"),
        context_after=_count(row, "context_after"),
        calls_before=_count(row, "calls_before") or 0,
        requests_before=_count(row, "requests_before") or 0,
    )


def _name(row: Row, column: str) -> str | None:
    value = row.get(column)
    # An id may be a number in JSON; in CSV it is a text anyway.
    return text_or_none(str(value) if type(value) is int else value, column)


def _count(row: Row, column: str) -> int | None:
    value = row.get(column)
    if isinstance(value, str) and value.strip().removeprefix("-").isdecimal():
        value = int(value)
    elif isinstance(value, str) or (isinstance(value, float) and value.is_integer()):
        value = _whole(value)
    return count(value, column)


def _whole(value: str | float) -> object:
    """Return the integer of a number that other tools wrote with decimals, such as 45.0."""
    try:
        number = float(value)
    except ValueError:
        return value
    return int(number) if number.is_integer() else value


def _time(row: Row, name: str) -> int | None:
    try:
        return milliseconds(row.get(name))
    except InputError as error:
        raise InputError(
            error.problem, where=name, value=error.value, remedy=error.remedy
        ) from error
