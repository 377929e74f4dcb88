"""A running app on each kind of database, and how a test waits for its refresher."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from api.app import create_app
from api.settings import Settings
from ledger.database import reading
from ledger.versions import current_version

PATIENCE_SECONDS = 60.0


@pytest.fixture
def client(ledger: Engine) -> Iterator[TestClient]:
    """Return a client of an app that looks at the ledger when a write wakes it, or in an hour."""
    url = ledger.url.render_as_string(hide_password=False)
    with TestClient(create_app(Settings(url, 3600)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def settled(client: TestClient, ledger: Engine) -> Callable[[], None]:
    """Return what waits until the app answers from the ledger's newest version."""

    def wait() -> None:
        with reading(ledger) as connection:
            newest = current_version(connection)
        _until(lambda: client.get("/status").json()["snapshot"]["version"] == newest)

    return wait


@pytest.fixture
def sqlite_client(sqlite_ledger: Engine) -> Iterator[TestClient]:
    """Return a client of an app whose answers do not depend on the kind of database."""
    settings = Settings(str(sqlite_ledger.url), 3600)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Return what waits for something that another thread brings about."""
    return _until


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


@pytest.fixture
def asked(client: TestClient, settled: Callable[[], None]) -> Callable[..., dict[str, Any]]:
    """Return what asks `/should-compact` once the refresher has caught up."""

    def ask(role: str, calls: int = 0, **more: Any) -> dict[str, Any]:
        settled()
        body = {"role": role, "calls": calls, "cost": 4, "saving": 4} | more
        response = client.post("/should-compact", json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    return ask


@pytest.fixture
def begin(client: TestClient) -> Callable[..., None]:
    """Return what begins a turn."""

    def put(turn_id: str, role: str = "main", **more: Any) -> None:
        body = {"role": role, "session_id": "s"} | more
        response = client.put(f"/turns/{turn_id}", json=body)
        assert response.status_code == 200, response.text

    return put


@pytest.fixture
def told(client: TestClient, begin: Callable[..., None]) -> Callable[..., None]:
    """Return what records a whole turn call by call: one request a call, then the end."""

    def tell(turn_id: str, calls: int, role: str = "main", end: str | None = "ended") -> None:
        begin(turn_id, role, started_at=datetime.now(UTC).isoformat())
        for number in range(calls):
            body = {"request_id": f"{turn_id}:{number}", "usage": {"output": 1}, "tool_calls": 1}
            assert client.post(f"/turns/{turn_id}/requests", json=body).status_code == 200
        if end:
            body = {"status": end}
            assert client.post(f"/turns/{turn_id}/end", json=body).status_code == 200

    return tell
