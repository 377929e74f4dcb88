"""Pruning, backup and restore by the command line, beside a service and after it."""

import json
import shutil
import signal

import pytest

from ledger.database import open_engine

pytestmark = pytest.mark.enable_socket  # loopback only


@pytest.fixture
def db(example_ledger, tmp_path, compactuary):
    done = compactuary("backup", tmp_path / "ledger.db", "--db", example_ledger)
    assert (done.code, "verified" in done.out) == (0, True)
    return tmp_path / "ledger.db"


def test_a_service_answers_alike_before_and_after_a_pruning(compactuary, serve, example, db):
    client, _ = serve(db)
    tables, parameters = client.get("/tables").json(), client.get("/parameters").json()
    would = json.loads(compactuary("prune", "--older-than", "1d", "--dry-run", "--json",
                                   "--db", db).out)  # fmt: skip
    done = compactuary("prune", "--older-than", "1d", "--json", "--db", db)
    told = json.loads(done.out)
    assert done.code == 0
    assert told["turns"] == would["turns"]
    assert (would["dry_run"], told["dry_run"]) == (True, False)
    again = compactuary("prune", "--older-than", "1d", "--db", db)
    assert again.out.startswith("0 turns, 0 requests, 0 tool calls, 0 compactions, 0 decisions")
    assert client.get("/tables").json() == tables
    other, _ = serve(db)
    assert other.get("/tables").json() == tables
    after = other.get("/parameters").json()
    assert after == parameters
    imported = compactuary("import", example, "--reread", "--db", db)
    assert ": 0 new turns, 0 requests" in imported.out


def test_a_backup_is_restored_once_the_service_has_stopped(compactuary, serve, db, tmp_path):
    client, process = serve(db)
    copy = tmp_path / "copy.db"
    done = compactuary("backup", copy, "--json", "--db", db)
    told = json.loads(done.out)
    assert (told["file"], told["bytes"]) == (str(copy), copy.stat().st_size)
    assert compactuary("backup", copy, "--db", db).code == 2
    assert client.put("/turns/later", json={"role": "r", "session_id": "s"}).status_code == 200
    busy = compactuary("restore", copy, "--force", "--db", db)
    assert (busy.code, "Stop the service" in busy.err) == (1, True)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert compactuary("restore", copy, "--db", db).code == 2
    done = compactuary("restore", copy, "--force", "--db", db)
    assert (done.code, "is what" in done.out) == (0, True)
    restarted, _ = serve(db)
    assert restarted.post("/turns/later/end", json={"status": "ended"}).status_code == 404


def test_a_copy_of_a_newer_version_is_refused(compactuary, db, tmp_path):
    newer = tmp_path / "newer.db"
    shutil.copy(db, newer)
    engine = open_engine(str(newer))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '2999_01_01_0001'")
    engine.dispose()
    done = compactuary("restore", newer, "--force", "--db", db)
    assert (done.code, "Use a newer compactuary" in done.err) == (1, True)


@pytest.mark.parametrize("given", ["90", "d", "-3d", "soon", "2999-01-01", "999999d"])
def test_an_age_that_is_none(compactuary, db, given):
    done = compactuary("prune", f"--older-than={given}", "--db", db)
    assert (done.code, "--older-than: neither" in done.err) == (2, True)


def test_postgresql_has_its_own_tools(compactuary, tmp_path):
    url = "postgresql://somebody:secret@127.0.0.1:9/none"
    for words in (["backup", tmp_path / "x.db"], ["restore", tmp_path / "x.db"]):
        done = compactuary(*words, "--db", url)
        assert (done.code, "pg_dump" in done.err, "secret" in done.err) == (2, True, False)
    assert not (tmp_path / "x.db").exists()
