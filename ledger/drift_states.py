"""What the drift detectors know, one row a role."""

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, delete, select

from ledger.schema import drift_states
from ledger.upsert import upsert

__all__ = ["forget_drift_states", "read_drift_states", "write_drift_states"]


def read_drift_states(connection: Connection, role: str | None = None) -> dict[str, dict[str, Any]]:
    """Return every role's stored state, or that of one."""
    wanted = select(drift_states)
    found = connection.execute(wanted.where(drift_states.c.role == role) if role else wanted)
    return {row.role: orjson.loads(row.state) for row in found}


def write_drift_states(connection: Connection, states: Mapping[str, Mapping[str, Any]]) -> None:
    """Store states of roles, over those that are there."""
    rows = [{"role": role, "state": orjson.dumps(state).decode()} for role, state in states.items()]
    upsert(connection, drift_states, rows, replace=("state",))


def forget_drift_states(connection: Connection) -> None:
    """Forget every state, so that detectors begin again with the first turns."""
    connection.execute(delete(drift_states))
