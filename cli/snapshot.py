"""The snapshot a command answers from: built from the ledger as it is now."""

import time

from sqlalchemy import Engine

from api.estimates import Estimates, build_snapshot
from cli.output import say
from ledger.database import reading
from policy.snapshot import Snapshot

__all__ = ["current_snapshot", "say_unknown_role"]


def current_snapshot(engine: Engine) -> Snapshot:
    """Build the snapshot of a ledger."""
    with reading(engine) as connection:
        return build_snapshot(connection, Estimates(), time.time_ns() // 1_000_000)


def say_unknown_role(snapshot: Snapshot, role: str) -> None:
    """Tell a person, aside from the output, that it rests on nothing of the role itself."""
    counted = (name for by_role in snapshot.tables.values() for name in by_role)
    known = sorted({*counted, *(name for name, _ in snapshot.parameters)})
    if role not in known:
        say(
            f"role {role} is not in this ledger (known: {', '.join(known) or 'none yet'}); "
            "what stands in for it is shown"
        )
