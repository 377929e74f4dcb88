"""Liveness, readiness, status; a database that goes away and comes back."""

import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from api.app import create_app
from api.settings import Settings
from ledger.database import open_engine, writing
from ledger.versions import lock_version
from migrations.upgrade import upgrade
from tests.integration.api.credibility_by_hand import decisive, standard

REFRESH_SECONDS = 0.05
#: What a decision rests on after one turn of three calls.
THREE = pytest.approx(decisive([3]))


def test_a_worker_that_has_its_snapshot_is_ready(client, settled):
    client.put("/turns/t", json={"role": "main", "session_id": "s"})
    client.post("/turns/t/end", json={"status": "ended", "tool_calls": 3})
    settled()
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready", "reason": None}
    status = client.get("/status").json()
    assert status["snapshot"]["roles"] == 1
    assert status["last_error"] is None
    assert status["snapshot"]["age_seconds"] >= 0
    assert status["uptime_seconds"] >= 0


def test_the_status_hides_the_password(postgres_server):
    secret = "hunter2"
    url = open_engine(postgres_server).url.set(password=secret)
    url = url.update_query_dict({"password": secret})
    app = create_app(Settings(url.render_as_string(hide_password=False), 3600))
    with TestClient(app) as client:
        status = client.get("/status").text
        assert secret not in status
        assert "***" in status


@pytest.fixture
def answering(ledger: Engine, until):
    """Return a client whose app answers from one ended turn of three calls."""
    url = ledger.url.render_as_string(hide_password=False)
    app = create_app(Settings(url, REFRESH_SECONDS))
    with TestClient(app, raise_server_exceptions=False) as client:
        body = [{"turn_id": "t", "role": "main", "tool_calls": 3}]
        assert client.post("/turns", json=body).status_code == 200
        until(lambda: _remaining(client) == THREE)
        yield client


def _remaining(client):
    asked = {"role": "main", "calls": 0, "cost": 1, "saving": 1}
    response = client.post("/should-compact", json=asked)
    assert response.status_code == 200
    return response.json()["expected_remaining_calls"]


def _take_away(ledger: Engine, client: TestClient, kept: Path) -> None:
    if ledger.dialect.name == "sqlite":
        file = Path(ledger.url.database or "")
        served = client.app.state.service.engine
        ledger.dispose()
        served.dispose()
        gone = kept.with_name("gone.db")
        gone.write_text("gone\n" * 1000)
        kept.hardlink_to(file)
        # In one step: where there is no file, whoever looks would make an empty ledger.
        gone.replace(file)
        for end in ("-wal", "-shm"):
            Path(f"{file}{end}").unlink(missing_ok=True)
        served.dispose()  # the refresher may have opened it once more before it was moved
        return
    server = open_engine(ledger.url.set(database="postgres").render_as_string(hide_password=False))
    with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"DROP DATABASE {ledger.url.database} WITH (FORCE)"))
    server.dispose()


def test_decisions_go_on_while_the_database_is_gone(answering, ledger, until, tmp_path):
    kept = tmp_path / "kept.db"
    _take_away(ledger, answering, kept)
    until(lambda: answering.get("/readyz").json()["status"] == "degraded")
    assert answering.get("/readyz").status_code == 200
    assert answering.get("/readyz").json()["reason"]
    assert answering.get("/status").json()["last_error"]
    assert answering.get("/healthz").status_code == 200
    assert _remaining(answering) == THREE
    write = answering.put("/turns/u", json={"role": "main", "session_id": "s"})
    assert write.status_code == 503
    problem = write.json()
    assert problem["type"] == "urn:compactuary:problem:ledger-unavailable"
    assert problem["remedy"]
    if ledger.dialect.name == "sqlite":
        kept.replace(ledger.url.database)
        until(lambda: answering.get("/readyz").json()["status"] == "ready")
        assert answering.get("/status").json()["last_error"] is None


def test_a_ledger_that_is_put_in_its_place_later_is_found(tmp_path, until):
    place, made = tmp_path / "ledger.db", tmp_path / "made.db"
    with TestClient(create_app(Settings(str(place), REFRESH_SECONDS))) as client:
        # Whoever looked has made an empty file there, and still has it open.
        assert client.get("/readyz").status_code == 503
        assert place.exists()
        engine = open_engine(str(made))
        upgrade(engine)
        engine.dispose()
        for end in ("-wal", "-shm"):
            Path(f"{place}{end}").unlink(missing_ok=True)
        made.replace(place)
        until(lambda: client.get("/readyz").json()["status"] == "ready")
        write = client.put("/turns/t", json={"role": "main", "session_id": "s"})
        assert write.status_code == 200


def test_decisions_do_not_wait_for_a_writer(answering, ledger):
    with writing(ledger) as connection:
        lock_version(connection)
        began = time.monotonic()
        for _ in range(20):
            assert _remaining(answering) == THREE
        # A writer that waited here would wait for the busy timeout, 30 s.
        assert time.monotonic() - began < 10


def test_without_a_ledger_a_worker_is_not_ready_but_answers_from_the_standard_table(tmp_path):
    app = create_app(Settings(str(tmp_path / "untouched.db"), 3600))
    with TestClient(app) as client:
        response = client.get("/readyz")
        assert response.status_code == 503
        assert "db upgrade" in response.json()["reason"]
        answer = client.get(
            "/should-compact", params={"role": "main", "calls": 1, "cost": 1, "saving": 1}
        ).json()
        assert (answer["decision"], answer["basis"]["source"]) == ("compact", "standard")
        assert answer["expected_remaining_calls"] == pytest.approx(standard("main").at(1).mean)
