"""Ledgers of different logs put together: what each holds by id, and their sums."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from sqlalchemy import Connection, Table, select

from ledger.schema import (
    compactions,
    histogram,
    ledger_version,
    request_pace,
    requests,
    sources,
    threads,
    tool_calls,
    turns,
)

__all__ = ["ledger_ids", "merge_ledgers"]

#: In the order in which they refer to each other.
_ROWS = (turns, requests, tool_calls, compactions, threads, sources)
_IDS = (
    threads.c.thread_id,
    threads.c.session_id,
    turns.c.turn_id,
    turns.c.session_id,
    requests.c.request_id,
    requests.c.session_id,
    compactions.c.compaction_id,
    compactions.c.session_id,
)
_HASH_BYTES = 8
_CHUNK = 10_000


def ledger_ids(connection: Connection) -> frozenset[int]:
    """Return hashes of all ids that another log could tell of too.

    Ledgers that have none in common were made from logs that know nothing of each other: reading
    those together would have told the same.
    """
    return frozenset(_hashes(connection))


def _hashes(connection: Connection) -> Iterator[int]:
    for column in _IDS:
        rows = connection.execution_options(yield_per=_CHUNK).execute(select(column).distinct())
        for (name,) in rows:
            told = blake2b(str(name).encode(), digest_size=_HASH_BYTES).digest()
            yield int.from_bytes(told, "big")


def merge_ledgers(target: Path, parts: Sequence[Path]) -> None:
    """Add the rows of ledgers that have no id in common to an SQLite ledger.

    Parameters
    ----------
    target : Path
        A migrated ledger that nobody else writes to.
    parts : sequence of Path
        SQLite ledgers of the same version, added in this order.
    """
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        # Who merges makes the target anew if the machine stops.
        connection.execute("PRAGMA synchronous = OFF")
        for part in parts:
            connection.execute("ATTACH ? AS part", (str(part),))
            connection.execute("BEGIN IMMEDIATE")
            for table in _ROWS:
                connection.execute(_added(table))
            for table in (histogram, request_pace):
                connection.execute(_summed(table))
            name = ledger_version.name
            latest = f"SELECT max(version) FROM part.{name}"  # noqa: S608 - the schema's own name
            connection.execute(f"UPDATE {name} SET version = max(version, ({latest}))")  # noqa: S608
            connection.execute("COMMIT")
            connection.execute("DETACH part")


def _added(table: Table) -> str:
    columns = ", ".join(f'"{column.name}"' for column in table.columns)
    return f"INSERT INTO main.{table.name} ({columns}) SELECT {columns} FROM part.{table.name}"  # noqa: S608


def _summed(table: Table) -> str:
    """Return a statement that adds up counts where the place is known already."""
    keys = ", ".join(f'"{column.name}"' for column in table.primary_key)
    counts = [
        column.name
        for column in table.columns
        if not column.primary_key and column.name != "version"
    ]
    sums = [f'"{name}" = "{name}" + excluded."{name}"' for name in counts]
    sums.append("version = max(version, excluded.version)")
    return f"{_added(table)} WHERE true ON CONFLICT ({keys}) DO UPDATE SET {', '.join(sums)}"
