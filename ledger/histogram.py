"""The histogram of turns: what each closed turn adds to it, and signed changes to keep it so."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from ledger.schema import histogram, request_pace
from ledger.upsert import upsert

__all__ = [
    "REQUESTS",
    "TOOL_CALLS",
    "UNITS",
    "Cell",
    "Place",
    "apply_changes",
    "calls_place",
    "cells_of",
    "pace_of",
    "requests_place",
]

TOOL_CALLS = "tool_calls"
REQUESTS = "requests"
UNITS = (TOOL_CALLS, REQUESTS)


#: Entry, exit, and whether the turn ended there.
Place = tuple[int, int, bool]


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in the histogram: turns of one unit, role and model with one entry, exit and end."""

    unit: str
    role: str
    model: str
    entry: int
    exit: int
    ended: bool


def calls_place(ended: bool, entry: int | None, tool_calls: int) -> Place | None:
    """Return where a turn stands among tool calls, or None where its entry is unknown.

    An ended turn leaves at its last call. A turn that did not end is known to have been at risk
    for one call less than it issued: only N ≥ issued is known.
    """
    return None if entry is None else (entry, tool_calls if ended else tool_calls - 1, ended)


def requests_place(
    ended: bool, entry: int | None, requests: int | None, asked_for_tools: bool
) -> Place | None:
    """Return where a turn stands among requests, or None where they or its entry are unknown.

    A turn that did not end was at risk up to its last request whose answer asked for tools,
    because the next one had to follow.
    """
    if entry is None or not requests:
        return None
    return entry, requests if ended or asked_for_tools else requests - 1, ended


def cells_of(turn: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield what a turn's row adds to the histogram, were it closed as it stands."""
    ended = turn["status"] == "ended"
    role, model = turn["role"], turn["model"] or ""
    calls = calls_place(ended, turn["entry_calls"], turn["tool_calls"])
    if calls is not None:
        yield Cell(TOOL_CALLS, role, model, *calls)
    made = requests_place(ended, turn["entry_requests"], turn["requests"], turn["asked_for_tools"])
    if made is not None:
        yield Cell(REQUESTS, role, model, *made)


def pace_of(turn: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return a turn's tool calls and requests where it is ended, whole and tells both."""
    whole = turn["entry_calls"] == 0 and turn["entry_requests"] == 0
    if turn["status"] != "ended" or not whole or not turn["requests"] or not turn["tool_calls"]:
        return None
    return turn["tool_calls"], turn["requests"]


def apply_changes(
    connection: Connection,
    before: Mapping[str, Mapping[str, Any]],
    after: Mapping[str, Mapping[str, Any]],
    version: int,
) -> bool:
    """Take what closed turns added before, add what they add now, and say if anything moved."""
    cells: Counter[Cell] = Counter()
    paces: Counter[tuple[str, str, str]] = Counter()
    for rows, sign in ((before, -1), (after, 1)):
        for turn in rows.values():
            if turn["status"] == "open":
                continue
            for cell in cells_of(turn):
                cells[cell] += sign
            pace = pace_of(turn)
            if pace:
                key = (turn["role"], turn["model"] or "")
                for name, amount in zip(
                    ("turns", "tool_calls", "requests"), (1, *pace), strict=True
                ):
                    paces[(*key, name)] += sign * amount
    # A turn that only moved in time changes no count, but the order in which turns fade.
    moved = {
        cell
        for turn_id, turn in after.items()
        if turn["status"] != "open" and turn["last_ms"] != before.get(turn_id, turn)["last_ms"]
        for cell in cells_of(turn)
    }
    changes = {cell: change for cell, change in cells.items() if change or cell in moved}
    _change_cells(connection, changes, version)
    _change_paces(connection, paces, version)
    return bool(changes)


def _change_cells(connection: Connection, changes: Mapping[Cell, int], version: int) -> None:
    if not changes:
        return
    rows = [
        {
            "unit": cell.unit,
            "role": cell.role,
            "model": cell.model,
            "entry": cell.entry,
            "exit": cell.exit,
            "ended": cell.ended,
            "count": change,
            "version": version,
        }
        for cell, change in changes.items()
    ]
    upsert(connection, histogram, rows, add=("count",), replace=("version",))


def _change_paces(
    connection: Connection, changes: Mapping[tuple[str, str, str], int], version: int
) -> None:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for (role, model, name), change in changes.items():
        if not change:
            continue
        row = rows.setdefault(
            (role, model),
            {"role": role, "model": model, "turns": 0, "tool_calls": 0, "requests": 0},
        )
        row[name] = change
        row["version"] = version
    if rows:
        upsert(
            connection,
            request_pace,
            list(rows.values()),
            add=("turns", "tool_calls", "requests"),
            replace=("version",),
        )
