"""Stored snapshots: life tables as bytes, built by one process and loaded by the others."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, tuple_

from ledger.schema import snapshot_tables, snapshots
from ledger.upsert import upsert

__all__ = ["StoredSnapshot", "StoredTable", "latest_snapshot", "load_tables", "store_snapshot"]


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """What identifies a snapshot: the ledger's version, when it was built, a hash of its tables."""

    version: int
    built_ms: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One life table as bytes, with their hash."""

    digest: str
    payload: bytes


def latest_snapshot(connection: Connection) -> StoredSnapshot | None:
    """Return what identifies the stored snapshot, or None where there is none."""
    newest = select(snapshots).order_by(snapshots.c.version.desc()).limit(1)
    row = connection.execute(newest).one_or_none()
    return None if row is None else StoredSnapshot(row.version, row.built_ms, row.content_hash)


def store_snapshot(
    connection: Connection,
    snapshot: StoredSnapshot,
    digests: Mapping[tuple[str, str], str],
    changed: Mapping[tuple[str, str], StoredTable],
) -> bool:
    """Store a snapshot, unless the stored one is as new; return whether it was stored.

    Parameters
    ----------
    digests : mapping of (unit, role) to str
        Every table of the snapshot.
    changed : mapping of (unit, role) to StoredTable
        Those that may differ from the stored ones; they must cover all that do.
    """
    known = latest_snapshot(connection)
    if known is not None and known.version >= snapshot.version:
        return False
    stored = dict(_digests(connection))
    gone = stored.keys() - digests.keys()
    if gone:
        key = tuple_(snapshot_tables.c.unit, snapshot_tables.c.role)
        connection.execute(delete(snapshot_tables).where(key.in_(gone)))
    rows = [
        {
            "unit": unit,
            "role": role,
            "digest": table.digest,
            "payload": table.payload,
        }
        for (unit, role), table in changed.items()
        if stored.get((unit, role)) != table.digest
    ]
    upsert(connection, snapshot_tables, rows, replace=("digest", "payload"))
    connection.execute(delete(snapshots))
    row = {
        "version": snapshot.version,
        "built_ms": snapshot.built_ms,
        "content_hash": snapshot.content_hash,
    }
    upsert(connection, snapshots, [row])
    return True


def load_tables(
    connection: Connection, known: Mapping[tuple[str, str], str]
) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], bytes]]:
    """Read the stored tables that differ from those known.

    Parameters
    ----------
    known : mapping of (unit, role) to str
        Digests of the tables the caller has.

    Returns
    -------
    digests : dict of (unit, role) to str
        Every stored table; one that is missing here is gone.
    payloads : dict of (unit, role) to bytes
        Those that are new or changed.
    """
    digests = dict(_digests(connection))
    wanted = [key for key, digest in digests.items() if known.get(key) != digest]
    if not wanted:
        return digests, {}
    key = tuple_(snapshot_tables.c.unit, snapshot_tables.c.role)
    found = connection.execute(select(snapshot_tables).where(key.in_(wanted)))
    return digests, {(row.unit, row.role): bytes(row.payload) for row in found}


def _digests(connection: Connection) -> list[tuple[tuple[str, str], str]]:
    found = connection.execute(
        select(snapshot_tables.c.unit, snapshot_tables.c.role, snapshot_tables.c.digest)
    )
    return [((row.unit, row.role), row.digest) for row in found]
