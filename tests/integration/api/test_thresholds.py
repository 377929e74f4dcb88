"""Thresholds over HTTP: for deciding locally, with an ETag; modes; questions asked twice."""

import pytest
from fastapi.testclient import TestClient

from api.app import create_app
from api.modes import modes_of
from api.settings import Settings

WEIGHED = {"cost": 6, "saving": 3}
PRICED = {"role": "main", "calls": 3, "context_tokens": 150_000, "model": "claude-opus-4-8"}


def thresholds(client, role="main", headers=None, **query):
    asked = {"model": "claude-opus-4-8"} | query
    return client.get(f"/thresholds/{role}", params=asked, headers=headers)


def test_a_role_is_compiled_when_it_is_asked_for(sqlite_client):
    said = thresholds(sqlite_client).json()
    # Nothing is learned in an empty ledger.
    assert (said["rule"], said["versions"]["thresholds"]) == ("reorder", 0)
    assert said["requests_per_call"] == 1
    # 1,000,000 − 1,100 − 5,000
    assert said["hard_limit_tokens"] == 993_900
    assert said["setting"]["context_after_tokens"] == 51_000
    assert said["mode"] == "enforce"
    decided = sqlite_client.post("/should-compact", json=PRICED).json()
    assert decided["threshold_tokens"] == said["at_call"][3]
    assert decided["versions"]["thresholds"] == 0


def test_thresholds_that_have_not_changed_are_not_sent_again(sqlite_client):
    first = thresholds(sqlite_client)
    again = thresholds(sqlite_client, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = thresholds(sqlite_client, ttl="1h", headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


@pytest.mark.parametrize("rule", ["renewal", "idle", "break-even", "occupancy", "never"])
def test_every_rule_can_be_had(sqlite_client, rule):
    said = thresholds(sqlite_client, rule=rule)
    assert (said.status_code, said.json()["rule"]) == (200, rule)


def test_a_role_with_slashes_and_one_nobody_knows(sqlite_client):
    assert thresholds(sqlite_client, "web/main").json()["role"] == "web/main"
    assert thresholds(sqlite_client, "no one").json()["at_call"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"model": "no-such-model"}, "model"),
        ({"rule": "coin"}, "rule"),
        ({"ttl": "2h"}, "ttl"),
        ({"growth_tokens": -1}, "growth_tokens"),
        ({"context_tokens": 0}, "context_tokens"),
        ({"unknown": 1}, "unknown"),
        ({"kind": "separate"}, "summary_model"),
    ],
)
def test_wrong_queries_are_named(sqlite_client, query, field):
    answer = thresholds(sqlite_client, **query)
    assert answer.status_code == 422
    assert answer.json()["field"] == field


@pytest.mark.parametrize(
    "fields",
    [
        {"growth_tokens": 0},
        {"context_after_tokens": 900_000},
        {"window_tokens": 1},
        {"growth_tokens": 0, "context_after_tokens": 0, "prefix_tokens": 0},
        {"miss_probability": 1},
        {"resume_probability": 1, "requests_after_turn": 10**9},
    ],
)
@pytest.mark.parametrize("rule", ["reorder", "renewal", "idle", "eoq", "break-even"])
def test_degenerate_inputs_have_defined_answers(sqlite_client, rule, fields):
    said = thresholds(sqlite_client, rule=rule, **fields)
    assert said.status_code == 200, said.text
    answer = sqlite_client.post("/should-compact", json=PRICED | fields | {"rule": rule})
    assert answer.status_code == 200, answer.text
    assert answer.json()["decision"] in ("compact", "wait")


def test_asked_twice_about_one_request_the_answer_is_the_same(sqlite_client):
    asked = PRICED | {"turn_id": "t"}
    first = sqlite_client.post("/should-compact", json=asked).json()
    again = sqlite_client.post("/should-compact", json=asked | {"context_tokens": 40_000}).json()
    assert again == first
    later = sqlite_client.post("/should-compact", json=asked | {"calls": 4}).json()
    assert later["decision_id"] != first["decision_id"]
    unnamed = [sqlite_client.post("/should-compact", json=PRICED).json() for _ in range(2)]
    assert unnamed[0]["decision_id"] != unnamed[1]["decision_id"]


def test_modes_hold_by_role(sqlite_ledger):
    settings = Settings(str(sqlite_ledger.url), 3600, modes=modes_of("shadow,main=enforce,x=off"))
    with TestClient(create_app(settings)) as client:
        said = {}
        for role in ("main", "Explore", "x"):
            asked = {"role": role, "calls": 3} | WEIGHED
            answer = client.post("/should-compact", json=asked).json()
            said[role] = (answer["decision"], answer["would_decide"], answer["mode"])
            assert thresholds(client, role).json()["mode"] == answer["mode"]
    assert said == {
        "main": ("compact", "compact", "enforce"),
        "Explore": ("wait", "compact", "shadow"),
        "x": ("wait", "compact", "off"),
    }


def _told(client, settled, turns):
    rows = [
        {"turn_id": f"{role}{number}", "role": role, "session_id": "s", "status": "ended"}
        | {"tool_calls": calls}
        | ({"requests": 2 * calls} if requests else {})
        for role, requests, lives in turns
        for number, calls in enumerate(lives)
    ]
    if rows:
        assert client.post("/turns", json=rows).status_code == 200
    settled()


@pytest.mark.parametrize("unit", ["tool_calls", "requests"])
@pytest.mark.parametrize(
    "turns",
    [
        [],
        [("main", False, range(150, 400))],
        [("main", False, [1, 2, 3, 4] * 60)],
        [("main", True, range(150, 400))],
        [("main", False, range(150, 400)), ("Plan", True, [1, 2, 3] * 60)],
    ],
)
def test_what_is_compiled_rests_on_the_table_that_the_answer_tells(client, settled, turns, unit):
    # Before anything is compiled, `reorder` is worked out for the one age from m itself.
    _told(client, settled, turns)
    asked = PRICED | {"unit": unit, "rule": "reorder", "requests_after_turn": 0}
    first = client.post("/should-compact", json=asked).json()
    said = thresholds(client, unit=unit, rule="reorder", requests_after_turn=0).json()
    made = round(3 * said["requests_per_call"])
    again = client.post("/should-compact", json=asked).json()
    assert again["versions"]["thresholds"] is not None
    compiled = said["at_call"][min(made, len(said["at_call"]) - 1)]
    same = compiled if compiled is None else pytest.approx(compiled, rel=1e-9)
    assert first["threshold_tokens"] == same
    assert again["threshold_tokens"] == compiled
    assert again["decision"] == first["decision"]
