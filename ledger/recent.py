"""The latest turns of a role, for estimates that forget: read through an index, never all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, or_, select

from ledger.histogram import TOOL_CALLS, Place, calls_place, requests_place
from ledger.schema import turns

__all__ = ["RecentTurn", "Since", "closed_since", "recent_turns"]


class RecentTurn(NamedTuple):
    """A turn as estimates see it: where it stands in each unit that it tells, and when."""

    turn_id: str
    model: str
    status: str
    last_ms: int | None
    tool_calls: Place | None
    requests: Place | None

    def place(self, unit: str) -> Place | None:
        """Return entry, exit and end in a unit, or None where the turn does not tell them."""
        return self.tool_calls if unit == TOOL_CALLS else self.requests


@dataclass(frozen=True, slots=True)
class Since:
    """A place in a role's turns: behind this time, and this id among turns of the same time."""

    last_ms: int
    turn_id: str


def recent_turns(connection: Connection, role: str, limit: int) -> list[RecentTurn]:
    """Return the role's latest turns, oldest first; open ones count as cut where they stand.

    Closed turns without a time are older than all others, open ones newer.

    Parameters
    ----------
    limit : int
        How many at most.
    """
    of_role = _columns().where(turns.c.role == role)
    untimed = turns.c.last_ms.is_(None)
    by_id = turns.c.turn_id.desc()
    # A turn that is still open is the newest there is, whether it tells a time or not. Which of
    # them tells none is asked here: asked of the database, it would look through all untimed ones.
    standing = of_role.where(turns.c.status == "open").order_by(by_id)
    rows = [row for row in connection.execute(standing) if row.last_ms is None][:limit]
    parts = (
        of_role.where(turns.c.last_ms.is_not(None)).order_by(turns.c.last_ms.desc(), by_id),
        of_role.where(untimed, turns.c.status != "open").order_by(by_id),
    )
    for part in parts:
        if len(rows) < limit:
            rows += connection.execute(part.limit(limit - len(rows))).all()
    return [_recent(row) for row in reversed(rows)]


def closed_since(
    connection: Connection, role: str, since: Since | None, limit: int
) -> list[RecentTurn]:
    """Return the role's next closed turns behind a place, in the order of time.

    Those without a time never come. A turn that comes in later than others of its role, though it
    is older, is never told.
    """
    statement = _columns().where(
        turns.c.role == role, turns.c.status != "open", turns.c.last_ms.is_not(None)
    )
    if since is not None:
        same = and_(turns.c.last_ms == since.last_ms, turns.c.turn_id > since.turn_id)
        statement = statement.where(or_(turns.c.last_ms > since.last_ms, same))
    ordered = statement.order_by(turns.c.last_ms, turns.c.turn_id).limit(limit)
    return [_recent(row) for row in connection.execute(ordered).all()]


def _columns() -> Select[Any]:
    return select(
        turns.c.turn_id,
        turns.c.model,
        turns.c.status,
        turns.c.last_ms,
        turns.c.entry_calls,
        turns.c.tool_calls,
        turns.c.entry_requests,
        turns.c.requests,
        turns.c.asked_for_tools,
    )


def _recent(row: Sequence[Any]) -> RecentTurn:
    turn_id, model, status, last_ms, entry_calls, calls, entry_requests, made, asked = row
    ended = status == "ended"
    return RecentTurn(
        turn_id,
        model or "",
        status,
        last_ms,
        calls_place(ended, entry_calls, calls),
        requests_place(ended, entry_requests, made, asked),
    )
