"""The histogram of turns: what each closed turn adds to it, and signed changes to keep it so."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from ledger.schema import histogram, request_pace
from ledger.upsert import upsert

__all__ = ["REQUESTS", "TOOL_CALLS", "UNITS", "Cell", "apply_changes", "cells_of", "pace_of"]

TOOL_CALLS = "tool_calls"
REQUESTS = "requests"
UNITS = (TOOL_CALLS, REQUESTS)


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in the histogram: turns of one unit, role and model with one entry, exit and end."""

    unit: str
    role: str
    model: str
    entry: int
    exit: int
    ended: bool


def cells_of(turn: Mapping[str, Any]) -> Iterator[Cell]:
    """Yield what a turn's row adds to the histogram, were it closed as it stands.

    An ended turn leaves at its last call. A turn that did not end is known to have been at risk
    for one call less than it issued (only N ≥ issued is known); for requests, up to the last one
    whose answer asked for tools, because the next request had to follow. A turn whose entry nobody
    knows adds nothing.
    """
    ended = turn["status"] == "ended"
    role, model = turn["role"], turn["model"] or ""
    if turn["entry_calls"] is not None:
        calls = turn["tool_calls"]
        yield Cell(TOOL_CALLS, role, model, turn["entry_calls"], calls - (not ended), ended)
    if turn["entry_requests"] is not None and turn["requests"]:
        made = turn["requests"]
        known = made if ended or turn["asked_for_tools"] else made - 1
        yield Cell(REQUESTS, role, model, turn["entry_requests"], known, ended)


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
    changes = {cell: change for cell, change in cells.items() if change}
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
