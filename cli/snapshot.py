"""The snapshot a command answers from: built from the ledger as it is now."""

import time

from sqlalchemy import Engine

from api.estimates import Estimates, build_snapshot
from ledger.database import reading
from policy.snapshot import Snapshot

__all__ = ["current_snapshot"]


def current_snapshot(engine: Engine) -> Snapshot:
    """Build the snapshot of a ledger."""
    with reading(engine) as connection:
        return build_snapshot(connection, Estimates(), time.time_ns() // 1_000_000)
