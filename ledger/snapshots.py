"""Stored snapshots: one payload a version, built by one process and loaded by the others."""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select

from ledger.schema import snapshots
from ledger.upsert import upsert

__all__ = ["StoredSnapshot", "latest_snapshot", "latest_snapshot_version", "store_snapshot"]

#: Snapshots kept besides the newest, for workers that are just loading one.
KEPT = 3


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """A snapshot as bytes, with what identifies it."""

    version: int
    built_ms: int
    content_hash: str
    payload: bytes


def store_snapshot(connection: Connection, snapshot: StoredSnapshot) -> None:
    """Store a snapshot, unless another process stored this version first, and drop old ones."""
    row = {
        "version": snapshot.version,
        "built_ms": snapshot.built_ms,
        "content_hash": snapshot.content_hash,
        "payload": snapshot.payload,
    }
    upsert(connection, snapshots, [row])
    kept = select(snapshots.c.version).order_by(snapshots.c.version.desc()).limit(KEPT)
    connection.execute(delete(snapshots).where(snapshots.c.version.not_in(kept)))


def latest_snapshot_version(connection: Connection) -> int | None:
    """Return the newest stored version, or None."""
    version = connection.scalar(select(func.max(snapshots.c.version)))
    return None if version is None else int(version)


def latest_snapshot(connection: Connection) -> StoredSnapshot | None:
    """Return the newest stored snapshot, or None."""
    row = connection.execute(
        select(snapshots).order_by(snapshots.c.version.desc()).limit(1)
    ).one_or_none()
    if row is None:
        return None
    return StoredSnapshot(row.version, row.built_ms, row.content_hash, bytes(row.payload))
