"""`GET /drift`: what the detectors that the refresher feeds know, on each kind of database."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from cli.drift import drift_command

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
#: Ten turns a day.
STEP = timedelta(hours=2.4)

Post = Callable[..., None]
Watched = Callable[..., None]


@pytest.fixture
def post(client: TestClient) -> Post:
    """Return what posts whole turns of these lives, one every `STEP`."""

    def posted(lives: list[int], role: str = "main", first: int = 0) -> None:
        rows = [
            {
                "turn_id": f"{role}-{number:05}",
                "role": role,
                "tool_calls": calls,
                "ended_at": (BEGIN + number * STEP).isoformat(),
            }
            for number, calls in enumerate(lives, start=first)
        ]
        response = client.post("/turns", json=rows)
        assert response.status_code == 200, response.text

    return posted


@pytest.fixture
def watched(client: TestClient, until: Callable[[Callable[[], bool]], None]) -> Watched:
    """Return what waits until detectors of the roles named are there; they follow a snapshot."""

    def wait(*roles: str) -> None:
        until(lambda: set(drift(client)) == set(roles))

    return wait


def drift(client: TestClient) -> dict[str, dict[str, Any]]:
    response = client.get("/drift")
    assert response.status_code == 200, response.text
    return {row["role"]: row for row in response.json()}


def lives(mean: float, count: int, seed: int) -> list[int]:
    draw = random.Random(seed)
    return [1 + int(draw.expovariate(1 / (mean - 0.5))) for _ in range(count)]


def test_an_empty_ledger_has_no_detector(client: TestClient) -> None:
    assert drift(client) == {}


def test_a_change_is_told_with_both_tables(
    client: TestClient, post: Post, settled: Callable[[], None], watched: Watched
) -> None:
    told = lives(20, 400, seed=1) + lives(8, 150, seed=2)
    post(told)
    post([5] * 10, role="Plan")
    settled()
    watched("main", "Plan")
    report = drift(client)
    assert list(report) == ["Plan", "main"]
    plan = report["Plan"]
    assert (plan["status"], plan["reference_turns"]) == ("gathering a reference", 10)
    [alarm] = report["main"]["alarms"]
    raised = int(alarm["turn_id"].removeprefix("main-"))
    assert raised >= 400
    assert alarm["direction"] == "shorter"
    assert datetime.fromisoformat(alarm["at"]) == BEGIN + raised * STEP
    assert alarm["before"]["m"]["0"] == pytest.approx(fmean(told[:300]))
    began = raised + 1 - alarm["after"]["turns"]
    assert abs(began - 400) <= 20
    assert alarm["after"]["m"]["0"] == pytest.approx(fmean(told[began : raised + 1]))


def test_every_refresh_shows_what_is_new_and_nothing_twice(
    client: TestClient,
    post: Post,
    settled: Callable[[], None],
    watched: Watched,
    until: Callable[[Callable[[], bool]], None],
) -> None:
    post([10] * 310)
    settled()
    watched("main")
    assert drift(client)["main"]["turns_watched"] == 10
    post([10] * 4, first=310)
    post([10] * 2, first=0)  # told again
    settled()
    until(lambda: drift(client)["main"]["turns_watched"] == 14)


def test_the_command_says_the_same(
    client: TestClient,
    ledger: Engine,
    post: Post,
    settled: Callable[[], None],
    watched: Watched,
    capsys: pytest.CaptureFixture[str],
) -> None:
    post(lives(20, 400, seed=3) + lives(8, 150, seed=4))
    settled()
    watched("main")
    served = client.get("/drift").json()
    assert len(served[0]["alarms"]) == 1
    drift_command(ledger.url.render_as_string(hide_password=False), as_json=True)
    assert json.loads(capsys.readouterr().out) == served
