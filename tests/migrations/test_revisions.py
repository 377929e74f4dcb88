"""Every revision goes up and down on both databases, with rows in it."""

from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, inspect, text

from compactuary.errors import LedgerError
from ledger import schema
from ledger.database import reading, writing
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.keys import create_key, read_keys
from ledger.recording import record
from ledger.retention import pruned_before, set_pruned_before
from ledger.usage import Usage
from migrations.upgrade import (
    alembic_config,
    downgrade,
    ensure_current,
    head,
    revision_of,
    upgrade,
)

EVENTS = (
    TurnStarted("t1", "s1", "s1", "test", "main", at_ms=1000, model="claude-opus-5"),
    RequestMade("r1", "s1", "t1", 0, 1000, "claude-opus-5", Usage(uncached=5), (("c1", "Bash"),)),
    RequestMade("r2", "s1", "t1", 1, 2000, "claude-opus-5", Usage(cache_read=5, output=7)),
    CompactionMade("k1", "s1", "t1", 1500, "auto", context_before=170_000, context_after=50_000),
    TurnReached("t1", "s1", "ended", "final_text", 3000),
)


def test_up_and_down_with_rows(empty_database: Engine):
    upgrade(empty_database)
    with writing(empty_database) as connection:
        record(connection, EVENTS)
        create_key(connection, "ci", ["read"], now_ms=1000)
    downgrade(empty_database, "base")
    assert set(inspect(empty_database).get_table_names()) <= {"alembic_version"}
    upgrade(empty_database)
    with writing(empty_database) as connection:
        assert record(connection, EVENTS).turns == 1
        assert connection.execute(text("SELECT count FROM histogram")).scalars().all() == [1, 1]
        assert read_keys(connection) == []


def test_when_it_was_pruned_moves_to_its_column_and_back(empty_database: Engine):
    row = "INSERT INTO sources VALUES ('pruned:', 0, 0, 7000, 0, '')"
    told = text("SELECT \"offset\" FROM sources WHERE path = 'pruned:'")
    column = text("SELECT pruned_before_ms FROM ledger_version")
    upgrade(empty_database, "2026_11_30_0004")
    with writing(empty_database) as connection:
        connection.execute(text(row))
    upgrade(empty_database)
    with writing(empty_database) as connection:
        assert connection.scalar(column) == connection.scalar(told) == 7000
        set_pruned_before(connection, 9000)
        set_pruned_before(connection, 8000)
        assert connection.scalar(column) == connection.scalar(told) == 9000
        # A worker of the version before prunes and knows only the row.
        connection.execute(text("UPDATE sources SET \"offset\" = 9500 WHERE path = 'pruned:'"))
        assert pruned_before(connection) == 9500
        connection.execute(text("UPDATE ledger_version SET pruned_before_ms = 9900"))
        assert pruned_before(connection) == 9900
    downgrade(empty_database, "2026_11_30_0004")
    with writing(empty_database) as connection:
        assert connection.scalar(told) == 9900
        connection.execute(text("DELETE FROM sources"))
    upgrade(empty_database)
    with writing(empty_database) as connection:
        assert connection.scalar(column) is None
        assert pruned_before(connection) is None
        connection.execute(text("UPDATE ledger_version SET pruned_before_ms = 5000"))
    downgrade(empty_database, "2026_11_30_0004")
    with reading(empty_database) as connection:
        assert connection.scalar(told) == 5000


def test_the_models_and_the_migrated_database_agree(ledger: Engine):
    with writing(ledger) as connection:
        command.check(alembic_config(connection))


def test_there_is_one_head_and_it_is_the_last_file_by_name(sqlite_ledger: Engine):
    with reading(sqlite_ledger) as connection:
        script = ScriptDirectory.from_config(alembic_config(connection))
        assert script.get_heads() == [head()]
        assert revision_of(connection) == head()


def test_notes_have_one_entry_a_revision():
    folder = Path(schema.__file__).parents[1] / "migrations"
    revisions = {path.stem for path in (folder / "versions").glob("[0-9]*.py")}
    entries = [
        line.removeprefix("## ")
        for line in (folder / "NOTES.md").read_text("utf-8").splitlines()
        if line.startswith("## ")
    ]
    assert sorted(entries, reverse=True) == entries
    assert set(entries) == revisions


def test_an_empty_database_gets_its_tables_and_another_version_is_refused(empty_database: Engine):
    ensure_current(empty_database)
    ensure_current(empty_database)
    with writing(empty_database) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '2000_01_01_0001'"))
    with pytest.raises(LedgerError, match=r"compactuary db upgrade"):
        ensure_current(empty_database)


def test_committed_dumps_are_the_migrated_schemas(ledger: Engine, tmp_path: Path):
    reflected = MetaData()
    reflected.reflect(ledger)
    lines = []
    for table in sorted(reflected.tables.values(), key=lambda table: table.name):
        lines.append(f"{table.name}")
        for column in sorted(table.columns, key=lambda column: column.name):
            null = "" if column.nullable else " not null"
            key = " key" if column.primary_key else ""
            lines.append(f"  {column.name} {column.type}{null}{key}")
        lines += sorted(
            f"  index {index.name} ({', '.join(column.name for column in index.columns)})"
            for index in table.indexes
        )
    dump = "\n".join(lines) + "\n"
    file = Path(schema.__file__).parents[1] / "migrations" / f"schema.{ledger.dialect.name}.txt"
    new = tmp_path / file.name
    new.write_text(dump, "utf-8")
    assert file.exists(), f"commit {new} as {file.name}"
    assert dump == file.read_text("utf-8"), f"commit {new} as {file.name}"
