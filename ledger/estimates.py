"""What an estimate reads from the ledger: the cells that changed, and the turns still open."""

from collections import Counter
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ledger.histogram import Cell, cells_of
from ledger.schema import histogram, request_pace, turns
from ledger.versions import current_version

__all__ = ["Changes", "Pace", "changes_since"]


@dataclass(frozen=True, slots=True)
class Pace:
    """Tool calls and requests of the ended turns of a role that tell both."""

    turns: int = 0
    tool_calls: int = 0
    requests: int = 0

    def __add__(self, other: "Pace") -> "Pace":
        return Pace(
            self.turns + other.turns,
            self.tool_calls + other.tool_calls,
            self.requests + other.requests,
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """What moved since a version: new counts of cells, paces by role and model, all open turns."""

    version: int
    cells: dict[Cell, int]
    paces: dict[tuple[str, str], Pace]
    open_cells: Counter[Cell]


def changes_since(connection: Connection, version: int) -> Changes:
    """Read what changed after ``version``; 0 reads all. Never touches a closed turn.

    Open turns are read through their own index, and count as cut where they stand.
    """
    counted = select(histogram, histogram.c.count.label("turns"))
    changed = connection.execute(counted.where(histogram.c.version > version))
    cells = {
        Cell(row.unit, row.role, row.model, row.entry, row.exit, row.ended): row.turns
        for row in changed
    }
    found = connection.execute(select(request_pace).where(request_pace.c.version > version))
    paces = {(row.role, row.model): Pace(row.turns, row.tool_calls, row.requests) for row in found}
    standing = select(
        turns.c.role,
        turns.c.model,
        turns.c.status,
        turns.c.entry_calls,
        turns.c.entry_requests,
        turns.c.tool_calls,
        turns.c.requests,
        turns.c.asked_for_tools,
    ).where(turns.c.status == "open")
    open_cells: Counter[Cell] = Counter()
    for row in connection.execute(standing).mappings():
        open_cells.update(cells_of(dict(row)))
    return Changes(current_version(connection), cells, paces, open_cells)
