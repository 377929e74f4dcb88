"""Totals of turns, counted from the rows that make them up."""

from collections import Counter
from collections.abc import Mapping

from sqlalchemy import Connection, exists, func, or_, select

from ledger.among import among
from ledger.batch import Batch, Row
from ledger.schema import requests, tool_calls

__all__ = ["recount_new", "recount_stored"]


def recount_new(batch: Batch) -> None:
    """Set the totals of turns the ledger does not have yet: the batch holds all their rows."""
    made: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    latest: dict[str, int] = {}
    asked: dict[str, bool] = {}
    asking = {request_id for request_id, _ in batch.tool_calls}
    for request in batch.requests.values():
        turn_id = request["turn_id"]
        if turn_id is None or turn_id in batch.before:
            continue
        made[turn_id] += 1
        calls[turn_id] += request["unnamed_tool_calls"]
        asks = request["request_id"] in asking or request["unnamed_tool_calls"] > 0
        position, highest = request["position"], latest.get(turn_id, -1)
        if position >= highest:
            asked[turn_id] = asks or (position == highest and asked[turn_id])
            latest[turn_id] = position
    calls.update(row["turn_id"] for row in batch.tool_calls.values())
    for turn_id in batch.touched.keys() - batch.before.keys():
        asks = asked.get(turn_id, False)
        _total(batch.turns[turn_id], calls[turn_id], made[turn_id], asks)


def recount_stored(connection: Connection, turns: Mapping[str, Row]) -> None:
    """Set the totals of turns the ledger has, by id, after the rows of a batch were written."""
    if not turns:
        return
    calls: Counter[str] = Counter()
    named = select(tool_calls.c.turn_id, func.count()).group_by(tool_calls.c.turn_id)
    for turn_id, number in connection.execute(
        named.where(among(connection, tool_calls.c.turn_id, turns))
    ):
        calls[turn_id] = number
    made: Counter[str] = Counter()
    sums = select(requests.c.turn_id, func.count(), func.sum(requests.c.unnamed_tool_calls))
    sums = sums.where(among(connection, requests.c.turn_id, turns)).group_by(requests.c.turn_id)
    for turn_id, number, unnamed in connection.execute(sums):
        made[turn_id] = number
        calls[turn_id] += int(unnamed)
    asked = _asked_for_tools(connection, turns)
    for turn_id, row in turns.items():
        _total(row, calls[turn_id], made[turn_id], turn_id in asked)


def _total(row: Row, calls: int, made: int, asked: bool) -> None:
    """Set a turn's totals to the larger of what was stated and what is recorded."""
    row["tool_calls"] = max(row["declared_tool_calls"] or 0, (row["entry_calls"] or 0) + calls)
    recorded = (row["entry_requests"] or 0) + made if made else 0
    row["requests"] = max(recorded, row["declared_requests"] or 0) or None
    row["asked_for_tools"] = asked


def _asked_for_tools(connection: Connection, turns: Mapping[str, Row]) -> set[str | None]:
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
                among(connection, requests.c.turn_id, turns),
                requests.c.position == latest,
                or_(requests.c.unnamed_tool_calls > 0, named),
            )
        )
    )
