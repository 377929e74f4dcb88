"""Keys, sizes and rates at a running app, on each kind of database."""

import logging
import time

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from api.access import is_public
from api.app import create_app
from api.limits import Limits
from api.settings import Settings
from ledger.database import writing
from ledger.keys import create_key, revoke_key

REFRESH_SECONDS = 0.05
ASKED = {"role": "main", "calls": 1, "cost": 1, "saving": 1}


def _now_ms():
    return time.time_ns() // 1_000_000


@pytest.fixture
def make(ledger):
    """Return what makes a key and the header that sends it."""

    def create(name, *scopes, seconds=None):
        expires_ms = None if seconds is None else _now_ms() + int(seconds * 1000)
        with writing(ledger) as connection:
            _, token = create_key(connection, name, scopes, now_ms=_now_ms(), expires_ms=expires_ms)
        return {"authorization": f"Bearer {token}"}

    return create


@pytest.fixture
def started(ledger):
    """Return what starts an app on the ledger."""
    running = []

    def start(**settings):
        url = ledger.url.render_as_string(hide_password=False)
        app = create_app(Settings(url, REFRESH_SECONDS, **settings))
        client = TestClient(app, raise_server_exceptions=False).__enter__()
        running.append(client)
        return client

    yield start
    for client in running:
        client.__exit__(None, None, None)


def _refused(response, status, kind):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"] == f"urn:compactuary:problem:{kind}"
    assert problem["status"] == status
    assert problem["remedy"]
    return response


def test_every_operation_but_health_wants_a_key(make, started):
    make("ci", "decide")
    client = started()
    document = client.app.openapi()
    places = [
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    ]
    assert len(places) >= 20
    places += [("GET", "/docs"), ("GET", "/redoc"), ("GET", "/openapi.json"), ("GET", "/no-such")]
    for method, path in places:
        response = client.request(method, path.replace("{", "").replace("}", ""))
        if is_public(path):
            assert response.status_code == 200
        else:
            refused = _refused(response, 401, "key-missing")
            assert refused.headers["www-authenticate"] == 'Bearer realm="compactuary"'


def test_each_scope_opens_its_own_and_no_other(make, started):
    keys = {scope: make(scope, scope) for scope in ("decide", "write", "read", "admin")}
    client = started()
    turn = [{"turn_id": "t", "role": "main", "tool_calls": 3}]
    asks = {
        "decide": lambda headers: client.post("/should-compact", json=ASKED, headers=headers),
        "write": lambda headers: client.post("/turns", json=turn, headers=headers),
        "read": lambda headers: client.get("/status", headers=headers),
    }
    for needed, ask in asks.items():
        for scope, headers in keys.items():
            response = ask(headers)
            if scope in {needed, "admin"}:
                assert response.status_code == 200, (needed, scope)
            else:
                refused = _refused(response, 403, "key-scope")
                assert repr(needed) in refused.json()["detail"]
                assert f'scope="{needed}"' in refused.headers["www-authenticate"]
    for path in ("/docs", "/openapi.json", "/metrics", "/tables"):
        assert client.get(path, headers=keys["read"]).status_code == 200
        _refused(client.get(path, headers=keys["write"]), 403, "key-scope")


def test_wrong_and_expired_keys_are_told_apart(make, started):
    good = make("good", "read")
    short = make("short", "read", seconds=0.4)
    client = started()
    for wrong in ("Bearer nonsense", good["authorization"][:-1] + "~", "Bearer \xff\xfe"):
        headers = {"authorization": wrong.encode("latin-1")}
        refused = _refused(client.get("/status", headers=headers), 401, "key-unknown")
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
    for other in ("Basic abc", good["authorization"].removeprefix("Bearer ")):
        headers = {"authorization": other}
        _refused(client.get("/status", headers=headers), 401, "key-missing")
    time.sleep(0.45)
    _refused(client.get("/status", headers=short), 401, "key-expired")
    assert client.get("/status", headers=good).status_code == 200


def test_a_revoked_key_stops_within_the_rhythm_and_the_last_one_does_not_open_the_door(
    make, started, ledger, until
):
    key = make("ci", "admin")
    client = started()
    assert client.get("/status", headers=key).status_code == 200
    with writing(ledger) as connection:
        revoke_key(connection, "ci", now_ms=_now_ms())
    revoked = time.monotonic()
    until(lambda: client.get("/status", headers=key).status_code == 401)
    assert time.monotonic() - revoked < REFRESH_SECONDS + 1
    _refused(client.get("/status", headers=key), 401, "key-revoked")
    _refused(client.get("/status"), 401, "key-missing")


def test_a_key_made_while_serving_closes_the_door(make, started, until):
    client = started()
    assert client.get("/status").json()["access"]["keys_required"] is False
    key = make("ci", "read")
    until(lambda: client.get("/status").status_code == 401)
    access = client.get("/status", headers=key).json()["access"]
    assert (access["keys_required"], access["keys_in_force"]) == (True, 1)


def test_rows_taken_from_the_table_do_not_open_the_door(make, started, ledger, until):
    key = make("ci", "read")
    client = started()
    assert client.get("/status", headers=key).status_code == 200
    with writing(ledger) as connection:
        connection.execute(text("DELETE FROM keys"))
    until(lambda: client.get("/status", headers=key).status_code == 401)
    _refused(client.get("/status"), 401, "key-missing")


def test_keys_hold_while_the_database_is_gone(make, started, ledger, until):
    key = make("ci", "read")
    client = started()
    with writing(ledger) as connection:
        connection.execute(text("ALTER TABLE keys RENAME TO mislaid"))
        connection.execute(text("CREATE TABLE keys (other INTEGER)"))
    until(lambda: client.get("/status", headers=key).json()["access"]["error"] is not None)
    _refused(client.get("/status"), 401, "key-missing")


def test_nobody_is_let_in_before_the_keys_could_be_read(tmp_path):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"no database at all" * 100)
    with TestClient(create_app(Settings(str(broken), 3600))) as client:
        _refused(client.get("/status"), 503, "key-unreadable")
        _refused(client.post("/should-compact", json=ASKED), 503, "key-unreadable")
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 503


def test_without_keys_a_public_address_is_not_served(started, make):
    client = started()
    outside = TestClient(client.app, base_url="http://10.0.0.7:8338")
    _refused(outside.get("/status"), 401, "key-remote")
    assert outside.get("/healthz").status_code == 200
    inside = TestClient(client.app, base_url="http://127.0.0.1:8338")
    assert inside.get("/status").status_code == 200
    _refused(inside.get("/status", headers={"host": "evil.example"}), 401, "key-remote")


def test_nobody_of_another_origin_is_let_in_by_a_browser(started):
    client = started()
    response = client.get("/status", headers={"origin": "https://evil.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]
    asks = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    preflight = client.options("/turns", headers=asks)
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_a_body_that_is_too_large_is_refused_told_or_not(started):
    client = started(limits=Limits(max_body_bytes=1000))
    fits = b'{"role": "main", "calls": 1, "cost": 1, "saving": 1}'
    headers = {"content-type": "application/json"}

    def chunked(body):
        yield body[:10]
        yield body[10:]

    for body in (fits.ljust(1000), chunked(fits.ljust(1000))):
        response = client.post("/should-compact", content=body, headers=headers)
        assert response.status_code == 200
    for body in (fits.ljust(1001), chunked(fits.ljust(1001))):
        response = client.post("/should-compact", content=body, headers=headers)
        _refused(response, 413, "too-large")
        assert "1,000 bytes" in response.json()["detail"]
    access = client.get("/status").json()["access"]
    assert (access["too_large"], access["max_body_bytes"]) == (2, 1000)


def test_who_asks_too_often_waits_and_others_do_not(started, make):
    one, other = make("one", "read"), make("other", "read")
    client = started(limits=Limits(requests_per_second=0.5, burst=3))
    statuses = [client.get("/status", headers=one).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    refused = _refused(client.get("/status", headers=one), 429, "too-many-requests")
    assert refused.headers["retry-after"] == "2"
    assert client.get("/status", headers=other).json()["access"]["rate_limited"] == 2
    # Guessing is limited too, by address; whether the process lives may be asked at any rate.
    guesses = [client.get("/status").status_code for _ in range(4)]
    assert guesses == [401, 401, 401, 429]
    assert {client.get("/healthz").status_code for _ in range(20)} == {200}


def test_no_key_is_in_the_log_or_the_status(started, make, caplog):
    caplog.set_level(logging.DEBUG)
    headers = make("ci", "read")
    token = headers["authorization"].removeprefix("Bearer ")
    secret = token.split("_", 2)[2]
    client = started()
    texts = [client.get(path, headers=headers).text for path in ("/status", "/metrics")]
    client.post("/turns", json=[], headers=headers)
    wrong = f"compactuary_000000000000_{secret}"
    client.get("/status", headers={"authorization": f"Bearer {wrong}"})
    records = [str(record.__dict__) for record in caplog.records]
    assert any("a request was refused" in record for record in records)
    for told in (*texts, *records):
        assert secret not in told
        assert token not in told
