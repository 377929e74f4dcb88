"""Where sequences come from: tables of turns and requests, or the ledger."""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, func, select

from backtest.sequences import Sequences, Turn, sequences_of
from compactuary.errors import InputError
from estimator.standard_table import kind_of_role
from ledger.schema import CACHE_WRITE_COLUMNS, requests, turns

__all__ = [
    "Unusable",
    "model_of_most_requests",
    "sequences_from_ledger",
    "sequences_from_tables",
    "unusable",
]

_CONTEXT = ("input_tokens", "cache_read", "cache_write")
_CONTEXT_COLUMNS = ("uncached", "cache_read", *CACHE_WRITE_COLUMNS)
_CHUNK = 5_000


def sequences_from_tables(folder: Path) -> Sequences:
    """Read ``turns.csv.gz`` and ``calls.csv.gz``, as public logs were tabulated.

    Parameters
    ----------
    folder : Path
        Which holds both.

    Raises
    ------
    InputError
        A table is missing, or a row is not what it must be.
    """
    by_turn: dict[tuple[str, str, str], list[Mapping[str, str]]] = defaultdict(list)
    for row in _rows(folder / "calls.csv.gz"):
        by_turn[row["source"], row["session"], row["turn_id"]].append(row)
    told = []
    for row in _rows(folder / "turns.csv.gz"):
        calls = by_turn.get((row["source"], row["session"], row["turn_id"]))
        if calls:
            calls.sort(key=lambda call: int(call["call_index"]))
            told.append(_tabled(row, calls))
    return sequences_of(told)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)
    except OSError as error:
        raise InputError(
            f"can't be read: {error}",
            where=str(path),
            remedy="Name the folder that holds turns.csv.gz and calls.csv.gz",
        ) from error


def _tabled(turn: Mapping[str, str], calls: Iterable[Mapping[str, str]]) -> Turn:
    rows = list(calls)
    main = kind_of_role(turn["role"]) == "main"
    try:
        asked = int(turn["n_tool_calls"]) > int(float(rows[-1]["tool_calls_before"] or 0))
        contexts = tuple(sum(float(row[name]) for name in _CONTEXT) for row in rows)
        times = tuple(
            datetime.fromisoformat(row["ts"]).timestamp() if row["ts"] else None for row in rows
        )
    except ValueError as error:
        raise InputError(
            f"has a value that is no number or time: {error}",
            where="calls.csv.gz",
            value=f"{turn['source']} {turn['session']} {turn['turn_id']}",
            remedy="Write whole tokens and times like 2026-02-11T21:18:41.543Z",
        ) from error
    return Turn(
        project=turn["source"],
        session=turn["session"],
        unit="main" if main else turn["turn_id"],
        main=main,
        contexts_tokens=contexts,
        times_seconds=times,
        ended=turn["ended"] == "True",
        asked_for_tools=asked,
        in_flight=turn["end_reason"].startswith("in_flight"),
        role=turn["role"],
    )


def sequences_from_ledger(connection: Connection, *, by_project: bool = False) -> Sequences:
    """Read every turn of a ledger that has requests with tokens.

    Summarizing calls belong to no turn and are left out.

    Parameters
    ----------
    connection : Connection
        Of a migrated ledger.
    by_project : bool, default False
        Whether roles were imported by project, as ``project/role``; a session's project is the
        first that its turns tell. Else, and where none does, the project is the ledger's source.

    Raises
    ------
    InputError
        No request in it has tokens.
    """
    made = (
        select(requests.c.turn_id, requests.c.at_ms, _context().label("context"))
        .where(requests.c.turn_id.is_not(None), requests.c.kind == "agent")
        .order_by(requests.c.turn_id, requests.c.position)
        .execution_options(yield_per=_CHUNK)
    )
    by_turn: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    for turn_id, at_ms, tokens in connection.execute(made):
        by_turn[turn_id].append((float(tokens), None if at_ms is None else at_ms / 1_000))
    begun = select(turns).order_by(turns.c.started_ms, turns.c.turn_id)
    told = connection.execute(begun.execution_options(yield_per=_CHUNK))
    rows = list(told)
    projects = _projects(rows) if by_project else {}
    return sequences_of(
        _recorded(row, by_turn[row.turn_id], projects.get(row.session_id)) for row in rows
    )


class Unusable(NamedTuple):
    """What of a ledger no sequence can use.

    Parameters
    ----------
    turns, all_turns : int
        Turns without a request that has tokens, and all there are.
    sessions, all_sessions : int
        Sessions of which no turn has one.
    backwards : int
        Requests that are older than the one before in their turn: no time lies between the two.
    """

    turns: int
    all_turns: int
    sessions: int
    all_sessions: int
    backwards: int


def unusable(connection: Connection) -> Unusable:
    """Count what a ledger does not tell enough of.

    Parameters
    ----------
    connection : Connection
        Of a migrated ledger.
    """
    told = select(requests.c.turn_id).where(requests.c.kind == "agent", _context() > 0).distinct()
    usable = turns.c.turn_id.in_(told)
    session = turns.c.session_id.distinct()
    all_turns, all_sessions = connection.execute(
        select(func.count(), func.count(session)).select_from(turns)
    ).one()
    some_turns, some_sessions = connection.execute(
        select(func.count(), func.count(session)).select_from(turns).where(usable)
    ).one()
    before = func.lag(requests.c.at_ms).over(
        partition_by=requests.c.turn_id, order_by=requests.c.position
    )
    made = select(requests.c.at_ms, before.label("before_ms")).where(
        requests.c.turn_id.is_not(None), requests.c.kind == "agent"
    )
    steps = made.subquery()
    backwards = connection.scalar(
        select(func.count()).select_from(steps).where(steps.c.at_ms < steps.c.before_ms)
    )
    return Unusable(
        all_turns - some_turns,
        all_turns,
        all_sessions - some_sessions,
        all_sessions,
        int(backwards or 0),
    )


def model_of_most_requests(connection: Connection) -> str | None:
    """Name the model that made most requests with tokens, or None where no request tells its own.

    Parameters
    ----------
    connection : Connection
        Of a migrated ledger.
    """
    many = func.count().label("many")
    model = func.coalesce(requests.c.model, turns.c.model).label("model")
    found = connection.execute(
        select(model, many)
        .join(turns, turns.c.turn_id == requests.c.turn_id)
        .where(requests.c.kind == "agent", _context() > 0, model.is_not(None), model != "")
        .group_by(model)
        .order_by(many.desc(), model)
        .limit(1)
    ).first()
    return None if found is None else str(found.model)


def _context() -> ColumnElement[int]:
    columns = (requests.c[name] for name in _CONTEXT_COLUMNS[1:])
    return sum(columns, requests.c[_CONTEXT_COLUMNS[0]])


def _projects(rows: Iterable[Row[Any]]) -> dict[str, str]:
    """Return the project of each session that tells one."""
    found: dict[str, str] = {}
    for row in rows:
        project, slash, _ = row.role.partition("/")
        if slash:
            found.setdefault(row.session_id, project)
    return found


def _recorded(
    row: Row[Any], made: Iterable[tuple[float, float | None]], project: str | None
) -> Turn:
    pairs = list(made)
    main = kind_of_role(row.role) == "main"
    return Turn(
        project=row.source if project is None else project,
        session=row.session_id,
        unit="main" if main else row.turn_id,
        main=main,
        contexts_tokens=tuple(tokens for tokens, _ in pairs),
        times_seconds=tuple(at for _, at in pairs),
        ended=row.status == "ended",
        asked_for_tools=bool(row.asked_for_tools),
        in_flight=row.status == "open",
        role=row.role if project is None else row.role.partition("/")[2] or row.role,
    )
