"""What docs/operations.md says of each failure: what happens, and where one sees it."""

import sqlite3
import threading
import time

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, func, select, text

from api import health
from api.app import create_app
from api.settings import Settings
from ledger import database as databases
from ledger.database import open_engine, reading, writing
from ledger.schema import histogram, ledger_version, snapshots, turns
from migrations.upgrade import upgrade

TURN = {"role": "main", "session_id": "s"}
ASK = {"role": "main", "calls": 3, "cost": 4, "saving": 4}


@pytest.fixture
def file(tmp_path):
    engine = open_engine(str(tmp_path / "ledger.db"))
    upgrade(engine)
    engine.dispose()
    return tmp_path / "ledger.db"


@pytest.fixture
def client(file):
    with TestClient(create_app(Settings(str(file), 0.05)), raise_server_exceptions=False) as client:
        yield client


def until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ready(client):
    answer = client.get("/readyz")
    return answer.status_code, answer.json()["status"]


def answers_as_before(client):
    begun = time.monotonic()
    answer = client.post("/should-compact", json=ASK)
    assert answer.status_code == 200
    # One that waited for the database would wait for the busy timeout, 30 s.
    assert time.monotonic() - begun < 10
    return True


def test_locked(client, file, monkeypatch):
    monkeypatch.setattr(databases, "BUSY_SECONDS", 0.3)
    with TestClient(create_app(Settings(str(file), 0.05)), raise_server_exceptions=False) as one:
        holder = sqlite3.connect(file)
        holder.execute("BEGIN IMMEDIATE")
        answer = one.put("/turns/a", json=TURN)
        assert answer.status_code == 503
        assert answer.json()["detail"].find("another process holds the database") > 0
        # Reading goes on under WAL, so decisions are made from what is current.
        assert answers_as_before(one)
        assert ready(one) == (200, "ready")
        until(lambda: one.get("/status").json()["decision_log"]["error"])
        holder.rollback()
        holder.close()
        assert one.put("/turns/a", json=TURN).status_code == 200
        until(lambda: not one.get("/status").json()["decision_log"]["error"])


def test_slow(client, file):
    """A writer that holds the ledger for a second delays writes, and nothing else."""
    holder = sqlite3.connect(file, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    threading.Timer(1.0, holder.rollback).start()
    assert answers_as_before(client)
    assert client.put("/turns/a", json=TURN).status_code == 200
    assert time.monotonic() - begun > 0.8
    assert ready(client) == (200, "ready")


def test_full(client, file):
    service = client.app.state.service
    with service.engine.connect() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
    full = threading.Event()
    full.set()

    def no_room(connection, _record, _proxy):
        limit = pages if full.is_set() else 2**30
        connection.execute(f"PRAGMA max_page_count={limit}")

    event.listen(service.engine, "checkout", no_room)
    answer = None
    for number in range(2000):
        answer = client.put(f"/turns/{number}", json=TURN | {"session_id": "s" * 400})
        if answer.status_code != 200:
            break
    assert (answer.status_code, "the disk is full" in answer.json()["detail"]) == (503, True)
    assert answers_as_before(client)
    with reading(service.engine) as connection:
        assert connection.scalar(select(func.count()).select_from(turns)) == number
    full.clear()
    assert client.put(f"/turns/{number}", json=TURN).status_code == 200


def test_gone_and_back(client):
    assert client.put("/turns/a", json=TURN).status_code == 200
    until(lambda: ready(client) == (200, "ready"))
    gone = threading.Event()
    gone.set()

    def no_file(connection):
        if gone.is_set():
            connection.exec_driver_sql("ATTACH '/nowhere/at/all.db' AS gone")

    event.listen(client.app.state.service.engine, "begin", no_file, insert=True)
    until(lambda: ready(client) == (200, "degraded"))
    assert "can't be opened" in client.get("/status").json()["last_error"]
    assert client.put("/turns/b", json=TURN).status_code == 503
    assert answers_as_before(client)
    assert client.get("/healthz").status_code == 200
    gone.clear()
    until(lambda: ready(client) == (200, "ready"))
    assert client.get("/status").json()["last_error"] is None
    # The answer given meanwhile is logged now.
    until(lambda: client.get("/status").json()["decision_log"]["queued"] == 0)
    assert client.put("/turns/b", json=TURN).status_code == 200


@pytest.mark.postgres
@pytest.mark.enable_socket
def test_a_server_gone_and_back(own_postgres):
    engine = open_engine(own_postgres.url)
    upgrade(engine)
    engine.dispose()
    app = create_app(Settings(own_postgres.url, 0.05))
    with TestClient(app, raise_server_exceptions=False) as client:
        assert client.put("/turns/a", json=TURN).status_code == 200
        own_postgres.crash()
        until(lambda: ready(client) == (200, "degraded"))
        answer = client.put("/turns/b", json=TURN)
        assert (answer.status_code, answer.json()["title"]) == (503, "The ledger can't be used")
        assert answers_as_before(client)
        assert client.get("/healthz").status_code == 200
        own_postgres.start()
        until(lambda: ready(client) == (200, "ready"))
        assert client.put("/turns/b", json=TURN).status_code == 200
        until(lambda: client.get("/status").json()["decision_log"]["queued"] == 0)


def test_never_there(tmp_path):
    (tmp_path / "ledger.db").write_text("this is no database" * 100)
    app = create_app(Settings(str(tmp_path / "ledger.db"), 0.05))
    with TestClient(app, raise_server_exceptions=False) as client:
        assert ready(client) == (503, "not ready")
        assert client.get("/healthz").status_code == 200


def test_the_clock_jumps(client, monkeypatch):
    clock = {"ms": time.time_ns() // 1_000_000}
    refresher = client.app.state.service.refresher
    refresher._now_ms = lambda: clock["ms"]
    monkeypatch.setattr(health.time, "time", lambda: clock["ms"] / 1000)
    for jump in (-86_400_000, 2 * 86_400_000):
        clock["ms"] += jump
        begun = refresher.state.checked_ms
        until(lambda begun=begun: refresher.state.checked_ms != begun)
        assert ready(client) == (200, "ready")
        assert answers_as_before(client)
    turn = {"started_at": "2026-05-01T12:00:00Z"} | TURN
    assert client.put("/turns/a", json=turn).status_code == 200
    body = {"request_id": "r", "usage": {}, "tool_calls": 1, "at": "2026-05-01T11:00:00Z"}
    assert client.post("/turns/a/requests", json=body).status_code == 200
    end = {"status": "ended", "at": "2026-05-01T10:00:00Z"}
    answer = client.post("/turns/a/end", json=end).json()
    assert (answer["status"], answer["tool_calls"]) == ("ended", 1)


def test_the_database_is_put_back_to_an_earlier_state(client):
    """Versions that go back are built anew, from nothing."""
    engine = client.app.state.service.engine
    for number, calls in enumerate((3, 5, 7)):
        row = {"turn_id": f"t{number}", "role": "main", "tool_calls": calls}
        assert client.post("/turns", json=[row]).status_code == 200
    until(lambda: _mean(client) == 5)
    with writing(engine) as connection:
        connection.execute(histogram.delete().where(histogram.c.exit > 3))
        connection.execute(ledger_version.update().values(version=1))
        connection.execute(snapshots.delete())
    until(lambda: _mean(client) == 3)


def _mean(client):
    rows = client.get("/tables/main").json().get("rows")
    return rows[0]["m"] if rows else None
