"""Stored life tables: loaded by digest, however many there are."""

from ledger.database import reading, writing
from ledger.snapshots import (
    StoredSnapshot,
    StoredTable,
    latest_snapshot,
    load_tables,
    store_snapshot,
)

MANY = 20_000


def places(count):
    return [("raw", "tool_calls", f"role-{number}", "") for number in range(count)]


def stored(ledger, version, names):
    tables = {place: StoredTable(f"{version}", b"{}") for place in names}
    with writing(ledger) as connection:
        snapshot = StoredSnapshot(version, 1000, f"hash {version}")
        return store_snapshot(connection, snapshot, tables)


def test_more_tables_than_a_statement_has_room_for(ledger):
    assert stored(ledger, 1, places(MANY))
    with reading(ledger) as connection:
        digests, payloads = load_tables(connection, {})
    assert len(digests) == len(payloads) == MANY
    assert stored(ledger, 2, places(3))
    with reading(ledger) as connection:
        digests, payloads = load_tables(connection, digests)
        newest = latest_snapshot(connection)
    assert sorted(digests) == sorted(payloads) == places(3)
    assert newest == StoredSnapshot(2, 1000, "hash 2")


def test_an_older_snapshot_is_not_stored_over_a_newer_one(ledger):
    assert stored(ledger, 5, places(1))
    assert not stored(ledger, 4, places(2))
    assert not stored(ledger, 5, places(2))
    with reading(ledger) as connection:
        digests, _ = load_tables(connection, {})
    assert list(digests) == places(1)
