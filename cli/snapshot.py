"""The snapshot a command answers from: built from the ledger as it is now."""

import time

from sqlalchemy import Engine, func, select

from api.refresh import Estimates, build_snapshot
from ledger.database import reading
from ledger.schema import histogram
from policy.snapshot import Snapshot

__all__ = ["current_snapshot", "usual_model"]


def current_snapshot(engine: Engine) -> Snapshot:
    """Build the snapshot of a ledger."""
    with reading(engine) as connection:
        return build_snapshot(connection, Estimates(), time.time_ns() // 1_000_000)


def usual_model(engine: Engine) -> str | None:
    """Return the model of most closed turns, or None where none is named."""
    many = func.sum(histogram.c.count)
    named = (
        select(histogram.c.model)
        .where(histogram.c.model != "", histogram.c.unit == "tool_calls")
        .group_by(histogram.c.model)
        .order_by(many.desc(), histogram.c.model)
        .limit(1)
    )
    with reading(engine) as connection:
        return connection.scalar(named)
