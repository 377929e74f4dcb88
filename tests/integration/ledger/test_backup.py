"""Copies of an SQLite ledger: consistent while it is written to, whole or not there at all."""

import sqlite3
import threading
from pathlib import Path

import pytest

from compactuary.errors import InputError, LedgerError
from ledger import backup as backups
from ledger.backup import backup, ledger_file, restore, verified
from ledger.database import open_engine, writing
from ledger.events import TurnReached, TurnStarted
from ledger.recording import record
from migrations.upgrade import head
from tests.integration.ledger.rows import kept, recounted, rows_of


def finish(engine, number):
    with writing(engine) as connection:
        started = TurnStarted(f"t{number}", "s", "s", "test", "main", number)
        record(connection, [started, TurnReached(f"t{number}", "s", "ended", None, number, 3, 4)])


@pytest.fixture
def file(sqlite_ledger):
    finish(sqlite_ledger, 1)
    return Path(sqlite_ledger.url.database)


def turns_in(path):
    engine = open_engine(str(path))
    try:
        assert kept(engine) == recounted(engine)
        return {row["turn_id"] for row in rows_of(engine)["turns"]}
    finally:
        engine.dispose()


def test_a_copy_is_one_moment_of_a_ledger_that_goes_on(sqlite_ledger, file, tmp_path):
    stop = threading.Event()
    told = [1]

    def write():
        while not stop.is_set():
            finish(sqlite_ledger, told[-1] + 1)
            told.append(told[-1] + 1)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        sizes = []
        for number in range(5):
            before = len(told)
            assert backup(file, tmp_path / f"{number}.db") == head()
            found = turns_in(tmp_path / f"{number}.db")
            assert found == {f"t{one}" for one in range(1, len(found) + 1)}
            assert before <= len(found) <= len(told) + 1
            sizes.append(len(found))
    finally:
        stop.set()
        thread.join()
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_copy_stands_alone(file, tmp_path):
    backup(file, tmp_path / "folder.db")
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "folder.db").rename(tmp_path / "elsewhere" / "moved.db")
    assert turns_in(moved) == {"t1"}
    left = {path.name for path in tmp_path.iterdir()}
    assert not [name for name in left if "part" in name or "folder.db" in name]


def test_nothing_is_replaced_unless_it_is_meant(file, tmp_path, sqlite_ledger):
    copy = tmp_path / "copy.db"
    copy.write_text("mine")
    with pytest.raises(InputError, match="--force"):
        backup(file, copy)
    assert copy.read_text() == "mine"
    backup(file, copy, force=True)
    finish(sqlite_ledger, 2)
    sqlite_ledger.dispose()
    with pytest.raises(InputError, match="--force"):
        restore(copy, file)
    assert turns_in(file) == {"t1", "t2"}
    restore(copy, file, force=True)
    assert turns_in(file) == {"t1"}
    for one in (backup, restore):
        with pytest.raises(InputError, match="is the ledger itself"):
            one(file, file, force=True)


def test_a_ledger_in_use_is_not_replaced(file, tmp_path, sqlite_ledger):
    backup(file, tmp_path / "copy.db")
    finish(sqlite_ledger, 2)  # leaves a connection in the pool, as a service does
    with pytest.raises(LedgerError, match="another process has the ledger open"):
        restore(tmp_path / "copy.db", file, force=True)
    finish(sqlite_ledger, 3)
    assert turns_in(file) == {"t1", "t2", "t3"}


def test_a_damaged_copy_replaces_nothing(file, tmp_path, sqlite_ledger):
    sqlite_ledger.dispose()
    copy = tmp_path / "copy.db"
    backup(file, copy)
    whole = bytearray(copy.read_bytes())
    for damage in (b"", b"no database", bytes(whole[: len(whole) // 2]), _scrambled(whole)):
        copy.write_bytes(damage)
        with pytest.raises(InputError, match="damaged or no ledger"):
            restore(copy, file, force=True)
    with pytest.raises(InputError, match="no such file"):
        restore(tmp_path / "none.db", file, force=True)
    assert turns_in(file) == {"t1"}


def _scrambled(whole):
    damaged = bytearray(whole)
    for start in range(4096, len(damaged), 4096):
        damaged[start : start + 64] = b"\x7f" * 64
    return bytes(damaged)


def test_a_database_of_somebody_else_is_no_ledger(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(InputError, match="no ledger"):
        verified(tmp_path / "other.db")


def test_a_damaged_ledger_is_replaced(file, tmp_path, sqlite_ledger):
    backup(file, tmp_path / "copy.db")
    sqlite_ledger.dispose()
    file.write_bytes(b"this is no database any more" * 1000)
    restore(tmp_path / "copy.db", file, force=True)
    assert turns_in(file) == {"t1"}


@pytest.mark.parametrize("step", ["_copy", "verified", "_put"])
def test_what_breaks_off_leaves_the_ledger_as_it_was(
    file, tmp_path, sqlite_ledger, monkeypatch, step
):
    copy = tmp_path / "copy.db"
    backup(file, copy)
    finish(sqlite_ledger, 2)
    sqlite_ledger.dispose()

    def breaks(*_args, **_more):
        raise OSError("the disk is full")

    monkeypatch.setattr(backups, step, breaks)
    with pytest.raises(OSError, match="full"):
        restore(copy, file, force=True)
    with pytest.raises(OSError, match="full"):
        backup(file, tmp_path / "new.db")
    monkeypatch.undo()
    assert turns_in(file) == {"t1", "t2"}
    left = {path.name for path in tmp_path.iterdir()} - {"ledger.db-wal", "ledger.db-shm"}
    assert left == {"ledger.db", "copy.db"}


def test_a_new_place_needs_no_force(file, tmp_path):
    backup(file, tmp_path / "copy.db")
    restore(tmp_path / "copy.db", tmp_path / "new" / "ledger.db")
    assert turns_in(tmp_path / "new" / "ledger.db") == {"t1"}


def test_rights_stay_as_they_were(file, tmp_path, sqlite_ledger):
    backup(file, tmp_path / "copy.db")
    sqlite_ledger.dispose()
    file.chmod(0o600)
    restore(tmp_path / "copy.db", file, force=True)
    assert file.stat().st_mode & 0o777 == 0o600


def test_postgresql_has_tools_of_its_own():
    with pytest.raises(InputError, match="pg_dump") as refused:
        ledger_file("postgresql://somebody:secret@host/name")
    assert "secret" not in str(refused.value)


def test_a_folder_that_is_none_is_named(file, tmp_path):
    for place in (tmp_path / "nope" / "x.db", file / "x.db"):
        with pytest.raises(InputError, match="no such folder") as caught:
            backup(file, place)
        assert caught.value.where == str(place.parent)
    assert not (tmp_path / "nope").exists()
