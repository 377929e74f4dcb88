"""Stored snapshots: life tables as bytes, built by one process and loaded by the others."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, select, tuple_

from ledger.schema import snapshot_tables, snapshots
from ledger.upsert import upsert

__all__ = [
    "Place",
    "StoredSnapshot",
    "StoredTable",
    "latest_snapshot",
    "load_tables",
    "store_snapshot",
]


#: Where a table stands: shelf, unit, role and model.
Place = tuple[str, str, str, str]
_P = TypeVar("_P", bound=Place)
_PLACE_NAMES = ("shelf", "unit", "role", "model")
_PLACE = tuple(snapshot_tables.c[name] for name in _PLACE_NAMES)


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
    tables: Mapping[_P, StoredTable],
) -> bool:
    """Store a snapshot, unless the stored one is as new; return whether it was stored.

    Parameters
    ----------
    tables : mapping of place to StoredTable
        Every table of the snapshot; those whose digest is stored already are not written again.
    """
    known = latest_snapshot(connection)
    if known is not None and known.version >= snapshot.version:
        return False
    stored = dict(_digests(connection))
    for places in _portions(stored.keys() - tables.keys()):
        connection.execute(delete(snapshot_tables).where(tuple_(*_PLACE).in_(places)))
    rows = [
        {
            **dict(zip(_PLACE_NAMES, place, strict=True)),
            "digest": table.digest,
            "payload": table.payload,
        }
        for place, table in tables.items()
        if stored.get(place) != table.digest
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
    connection: Connection, known: Mapping[Any, str]
) -> tuple[dict[Place, str], dict[Place, bytes]]:
    """Read the stored tables that differ from those known.

    Parameters
    ----------
    known : mapping of place to str
        Digests of the tables the caller has.

    Returns
    -------
    digests : dict of place to str
        Every stored table; one that is missing here is gone.
    payloads : dict of place to bytes
        Those that are new or changed.
    """
    digests = dict(_digests(connection))
    wanted = [place for place, digest in digests.items() if known.get(place) != digest]
    payloads: dict[Place, bytes] = {}
    for places in _portions(wanted):
        found = connection.execute(
            select(*_PLACE, snapshot_tables.c.payload).where(tuple_(*_PLACE).in_(places))
        )
        payloads |= {_place(row): bytes(row.payload) for row in found}
    return digests, payloads


def _portions(places: Iterable[Place]) -> Iterator[list[Place]]:
    """Yield places a thousand at a time: a statement has room for a limited number of values."""
    rest = list(places)
    for start in range(0, len(rest), 1000):
        yield rest[start : start + 1000]


def _digests(connection: Connection) -> list[tuple[Place, str]]:
    found = connection.execute(select(*_PLACE, snapshot_tables.c.digest))
    return [(_place(row), row.digest) for row in found]


def _place(row: Any) -> Place:
    return row.shelf, row.unit, row.role, row.model
