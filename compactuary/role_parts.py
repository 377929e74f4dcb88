"""A role's turns told apart by model, project, trigger or first tool."""

from collections import Counter
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from compactuary.errors import InputError
from compactuary.role_lives import cells_histogram, check_roles
from estimator.histogram import Histogram
from ledger.histogram import TOOL_CALLS, Cell, cells_of
from ledger.schema import requests, tool_calls, turns

__all__ = ["SPLITS", "Parts", "role_parts"]

SPLITS = ("model", "project", "trigger", "first_tool")
"""What a role's turns can be told apart by."""


class Parts(NamedTuple):
    """A role's turns by label, in tool calls, and how many carried no label."""

    histograms: dict[str, Histogram]
    unknown_turns: int


def role_parts(connection: Connection, role: str, by: str) -> Parts:
    """Tell a role's turns apart, in tool calls.

    Parameters
    ----------
    connection : Connection
    role : str
        Without the project, where `by` is 'project'.
    by : {'model', 'project', 'trigger', 'first_tool'}
        The project is the prefix of ``project/role``, which roles carry that were imported by
        project. The first tool is the name of the turn's earliest call; of calls made in
        parallel, that of the one whose id sorts first. A turn seen from a later call on has
        none.

    Raises
    ------
    InputError
        If there is no such way to tell turns apart, or no such turn.
    """
    if by not in SPLITS:
        raise InputError(
            "turns can't be told apart by this",
            where="by",
            value=by,
            remedy=f"Choose one of {', '.join(SPLITS)}",
        )
    suffix = f"/{role}"
    own = (
        turns.c.role.endswith(suffix, autoescape=True)
        if by == "project"
        else (turns.c.role == role)
    )
    rows = [dict(row) for row in connection.execute(select(turns).where(own)).mappings()]
    if not rows:
        _refuse_absent(connection, role, by)
    first = _first_tools(connection, role) if by == "first_tool" else {}
    counted: dict[str, Counter[Cell]] = {}
    unknown = 0
    for row in rows:
        label = {
            "project": row["role"].removesuffix(suffix),
            "first_tool": first.get(row["turn_id"]),
        }.get(by, row.get(by))
        cells = [cell for cell in cells_of(row) if cell.unit == TOOL_CALLS]
        if label:
            counted.setdefault(label, Counter()).update(cells)
        else:
            unknown += len(cells)
    return Parts({label: cells_histogram(cells) for label, cells in counted.items()}, unknown)


def _refuse_absent(connection: Connection, role: str, by: str) -> None:
    known = set(connection.scalars(select(turns.c.role).distinct()))
    if by == "project" and role in known:
        raise InputError(
            "no turn of this role tells its project",
            where="by",
            value=by,
            remedy="Import the logs with --role-by project, or read the logs directly",
        )
    check_roles([role], known)


def _first_tools(connection: Connection, role: str) -> dict[str, str]:
    """Name the earliest call of every turn of a role that was seen from its start."""
    place = func.row_number().over(
        partition_by=tool_calls.c.turn_id,
        order_by=(
            requests.c.position,
            func.coalesce(tool_calls.c.at_ms, 0),
            tool_calls.c.tool_call_id,
        ),
    )
    named = (
        select(tool_calls.c.turn_id, tool_calls.c.name, requests.c.position, place.label("place"))
        .join_from(tool_calls, requests, tool_calls.c.request_id == requests.c.request_id)
        .join(turns, tool_calls.c.turn_id == turns.c.turn_id)
        .where(turns.c.role == role, turns.c.entry_calls == 0)
        .subquery()
    )
    # A call without a name that came earlier leaves the first one unknown.
    unnamed = select(requests.c.turn_id, func.min(requests.c.position)).where(
        requests.c.unnamed_tool_calls > 0
    )
    before: dict[str | None, int] = dict(
        connection.execute(unnamed.group_by(requests.c.turn_id)).all()
    )
    found = connection.execute(select(named).where(named.c.place == 1))
    return {
        row.turn_id: row.name
        for row in found
        if row.turn_id not in before or before[row.turn_id] > row.position
    }
