"""Values nobody should send: refused by name, or stored as they came; never a 500."""

import json
from urllib.parse import quote

import pytest
from sqlalchemy import select

from ledger.database import reading
from ledger.schema import turns

STRANGE = [
    'it\'s "quoted"',
    "'; DROP TABLE turns; --",
    "sessions/2026/agent-a1",
    "emoji 🦊 and é",
    "100% of it",
    "../../etc/passwd",
    "a/../../b?c#d",
    "trailing/requests",
    "ten\ttabs",
    "x" * 500,
]


def test_any_text_may_be_a_name(client, ledger):
    for name in STRANGE:
        path = f"/turns/{quote(name, safe='')}"
        body = {"role": name, "session_id": name, "model": name}
        assert client.put(path, json=body).json()["turn_id"] == name
        calls = [{"id": name, "name": name}]
        request = {"request_id": name, "usage": {"output": 1}, "tool_calls": calls}
        assert client.post(f"{path}/requests", json=request).json()["tool_calls"] == 1
        assert client.post(f"{path}/end", json={"status": "ended"}).json()["status"] == "ended"
        asked = {"role": name, "calls": 1, "cost": 1, "saving": 1, "turn_id": name}
        assert client.post("/should-compact", json=asked).status_code == 200
    with reading(ledger) as connection:
        rows = connection.execute(select(turns.c.turn_id, turns.c.role, turns.c.tool_calls))
        assert set(rows.all()) == {(name, name, 1) for name in STRANGE}


NUL = "a\x00b"
UNSTORABLE = [
    ("PUT", "/turns/%00", {"role": "r", "session_id": "s"}, "turn_id"),
    ("PUT", "/turns/t", {"role": NUL, "session_id": "s"}, "role"),
    ("PUT", "/turns/t", {"role": "r", "session_id": NUL}, "session_id"),
    ("PUT", "/turns/t", {"role": "r", "session_id": "s", "model": "\ud800"}, "model"),
    ("PUT", "/turns/t", {"role": "r" * 1_000_000, "session_id": "s"}, "role"),
    ("PUT", "/turns/t", {"role": "", "session_id": "s"}, "role"),
    ("PUT", "/turns/" + "t" * 501, {"role": "r", "session_id": "s"}, "turn_id"),
    ("POST", "/turns/known/requests", {"request_id": NUL, "usage": {}}, "request_id"),
    ("POST", "/turns/known/requests",
     {"request_id": "r", "usage": {}, "tool_calls": [{"id": "i", "name": NUL}]},
     "tool_calls.0.name"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": {NUL: 1}}, f"usage.{NUL}"),
    ("POST", "/turns/known/end", {"status": "ended", "reason": NUL}, "reason"),
    ("POST", "/turns", [{"turn_id": NUL, "role": "r", "tool_calls": 1}], "0.turn_id"),
    ("POST", "/compactions", {"compaction_id": NUL, "session_id": "s", "context_before": 1},
     "compaction_id"),
    ("POST", "/should-compact", {"role": NUL, "calls": 1, "cost": 1, "saving": 1}, "role"),
    ("POST", "/should-compact", {"role": "\udfff", "calls": 1, "cost": 1, "saving": 1}, "role"),
    ("POST", "/should-compact", {"role": "r", "calls": 1, "context_tokens": 90_000,
                                 "weights": {"\ud800": 1}}, "weights.\ud800"),
]  # fmt: skip

COUNTS = [
    ("POST", "/should-compact", {"role": "r", "calls": -1, "cost": 1, "saving": 1}, "calls"),
    ("POST", "/should-compact", {"role": "r", "calls": 10**30, "cost": 1, "saving": 1}, "calls"),
    ("POST", "/should-compact", {"role": "r", "calls": 1, "cost": -1, "saving": 1}, "cost"),
    ("POST", "/should-compact", {"role": "r", "calls": 1, "cost": 1, "saving": 0}, "saving"),
    ("POST", "/should-compact", {"role": "r", "calls": 1}, "model"),
    ("POST", "/should-compact", {"role": "r", "calls": 1, "model": "claude-opus-4-8"},
     "context_tokens"),
    ("POST", "/should-compact", {"role": "r", "cost": 1, "saving": 1}, "calls"),
    ("POST", "/should-compact", {"role": "r", "calls": "1", "cost": 1, "saving": 1}, "calls"),
    ("POST", "/should-compact", {"role": "r", "calls": True, "cost": 1, "saving": 1}, "calls"),
    ("POST", "/turns/known/end", {"status": "ended", "tool_calls": False}, "tool_calls"),
    ("POST", "/should-compact", {"role": "r", "calls": 1, "cost": 1, "saving": 1, "rule": "x"},
     "rule"),
    ("POST", "/should-compact", {"role": "r", "calls": 1, "cost": 1, "saving": 1, "no": 1}, "no"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": {"uncached": -3}},
     "usage.uncached"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": {"output": 1.5}},
     "usage.output"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": {"tokens": 3}}, "usage.tokens"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": [3]}, "usage"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": {}, "tool_calls": -1},
     "tool_calls"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": {}, "tool_calls": 10**9},
     "tool_calls"),
    ("POST", "/turns/known/requests", {"request_id": "r", "usage": {}, "at": "noon"}, "at"),
    ("POST", "/turns/known/end", {"status": "open"}, "status"),
    ("POST", "/turns/known/end", {"status": "ended", "tool_calls": -2}, "tool_calls"),
    ("PUT", "/turns/t", {"role": "r", "session_id": "s", "entry_calls": -1}, "entry_calls"),
    ("POST", "/turns", [{"turn_id": "t", "role": "r", "tool_calls": 10**9}], "0.tool_calls"),
    ("POST", "/turns", {"turns": [{"turn_id": "t", "role": "r"}]}, "turns.0.tool_calls"),
    ("POST", "/turns", {"turns": {}}, "turns"),
    ("POST", "/turns", 5, "body"),
    ("POST", "/compactions", {"compaction_id": "k", "session_id": "s", "context_before": -5},
     "context_before"),
]  # fmt: skip


def _refused(client, response, field):
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["field"] == field
    assert problem["field"] in problem["detail"]
    assert problem["remedy"]
    assert len(problem["detail"]) < 500


def test_what_no_database_can_hold_is_refused_by_name(client, ledger):
    client.put("/turns/known", json={"role": "r", "session_id": "s"})
    for method, path, body, field in [*UNSTORABLE, *COUNTS]:
        # Escapes, as a client may send them, because UTF-8 can't hold a lone surrogate.
        content = _json(body)
        headers = {"content-type": "application/json"}
        response = client.request(method, path, content=content, headers=headers)
        _refused(client, response, field)
    with reading(ledger) as connection:
        assert connection.execute(select(turns.c.turn_id, turns.c.tool_calls)).all() == [
            ("known", 0)
        ]


def _json(body):
    return json.dumps(body).encode()


def test_a_usage_object_of_wrong_shapes_is_refused(sqlite_client):
    sqlite_client.put("/turns/known", json={"role": "r", "session_id": "s"})
    for name, value in [
        ("cache_creation", 3),
        ("cache_creation", [3]),
        ("iterations", 5),
        ("iterations", [1, 2]),
        ("output_tokens_details", "x"),
    ]:
        body = {"request_id": "r", "usage": {"input_tokens": 1, name: value}}
        response = sqlite_client.post("/turns/known/requests", json=body)
        assert response.status_code == 422, (name, value)
        assert response.json()["field"].startswith("usage.")


UNREADABLE = [b'{"role": "\xff"}', b"[" * 100_000, b'{"calls": ' + b"9" * 5000 + b"}"]


@pytest.mark.parametrize(
    "content", [b"", b"[1, 2", b"\xff\xfe", b'"text"', b"null", b"[]", *UNREADABLE]
)
def test_a_body_that_is_no_object_is_refused(sqlite_client, content):
    for method, path in [("POST", "/should-compact"), ("PUT", "/turns/t")]:
        headers = {"content-type": "application/json"}
        response = sqlite_client.request(method, path, content=content, headers=headers)
        assert response.status_code == 422
        assert response.json()["field"] == "body"


def test_a_body_of_another_type_is_told_which_to_send(sqlite_client):
    body = b'{"role": "main", "calls": 1, "cost": 1, "saving": 1}'
    response = sqlite_client.post(
        "/should-compact", content=body, headers={"content-type": "text/plain"}
    )
    assert response.status_code == 422
    assert "application/json" in response.json()["remedy"]


def test_an_unknown_path_is_a_problem_too(sqlite_client):
    for response, status in [
        (sqlite_client.get("/nope"), 404),
        (sqlite_client.delete("/roles"), 405),
    ]:
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"
        assert response.headers.get("allow") == (None if status == 404 else "GET")
        assert "/docs" in response.json()["remedy"]


def test_a_turn_longer_than_any_life_table_does_not_stop_the_others(client, ledger, settled):
    client.put("/turns/long", json={"role": "odd", "session_id": "s", "entry_calls": 10**6})
    body = {"request_id": "r", "usage": {}, "tool_calls": 10_000}
    assert client.post("/turns/long/requests", json=body).json()["tool_calls"] == 1_010_000
    client.post("/turns/long/end", json={"status": "ended"})
    client.post("/turns", json=[{"turn_id": "u", "role": "other", "tool_calls": 3}])
    settled()
    assert client.get("/status").json()["last_error"] is None
    assert client.get("/tables/other").json()["rows"][0]["m"] == pytest.approx(3)
