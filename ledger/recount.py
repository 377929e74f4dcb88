"""Totals of turns, counted from the rows that make them up."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, exists, func, or_, select

from ledger.schema import requests, tool_calls

__all__ = ["recount"]


def recount(connection: Connection, turns: Mapping[str, dict[str, Any]]) -> None:
    """Set totals of turns, by id, to the larger of what was stated and what is recorded."""
    ids = list(turns)
    made = {
        turn_id: (count, unnamed or 0)
        for turn_id, count, unnamed in connection.execute(
            select(requests.c.turn_id, func.count(), func.sum(requests.c.unnamed_tool_calls))
            .where(requests.c.turn_id.in_(ids))
            .group_by(requests.c.turn_id)
        )
    }
    counted = connection.execute(
        select(tool_calls.c.turn_id, func.count())
        .where(tool_calls.c.turn_id.in_(ids))
        .group_by(tool_calls.c.turn_id)
    )
    named = dict(counted.all())
    asked = _asked_for_tools(connection, ids)
    for turn_id, row in turns.items():
        count, unnamed = made.get(turn_id, (0, 0))
        calls = (row["entry_calls"] or 0) + named.get(turn_id, 0) + int(unnamed)
        row["tool_calls"] = max(row["declared_tool_calls"] or 0, calls)
        recorded = (row["entry_requests"] or 0) + count if count else None
        stated = row["declared_requests"]
        row["requests"] = max(recorded or 0, stated or 0) or None
        row["asked_for_tools"] = turn_id in asked


def _asked_for_tools(connection: Connection, ids: Collection[str]) -> set[str | None]:
    """Return the turns whose latest answer asked for tools, so that another request must follow."""
    other = requests.alias()
    latest = (
        select(func.max(other.c.position))
        .where(other.c.turn_id == requests.c.turn_id)
        .scalar_subquery()
    )
    named = exists().where(tool_calls.c.request_id == requests.c.request_id)
    return set(
        connection.scalars(
            select(requests.c.turn_id).where(
                requests.c.turn_id.in_(ids),
                requests.c.position == latest,
                or_(requests.c.unnamed_tool_calls > 0, named),
            )
        )
    )
