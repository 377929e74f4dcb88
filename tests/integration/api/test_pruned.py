"""A pruned ledger takes in nothing again that is counted already, and says so."""

import json
import time

import pytest

from ledger.pruning import Kept, prune

OLD, NEW = "2026-01-05T10:00:00Z", "2026-03-05T10:00:00Z"


@pytest.fixture
def pruned(client, ledger, settled):
    rows = [
        {"turn_id": f"t{day}", "role": "main", "tool_calls": day, "started_at": f"2026-01-{day:02}"}
        for day in range(1, 11)
    ]
    assert client.post("/turns", json=rows).json()["turns"] == 10
    settled()
    tables = client.get("/tables").json()
    now_ms = time.time_ns() // 1_000_000
    assert prune(ledger, now_ms, Kept(2, 1)).turns == 8
    settled()
    assert client.get("/tables").json() == tables
    return rows


def test_what_was_pruned_is_refused_and_the_rest_is_taken(client, pruned):
    refused = client.post("/turns", json=pruned[:1])
    assert (refused.status_code, refused.json()["field"]) == (422, "turns.0.started_at")
    assert "pruned up to 2026-01-08T00:00:00.001Z" in refused.json()["detail"]
    body = {"role": "main", "session_id": "s", "started_at": OLD}
    assert client.put("/turns/t3", json=body).json()["field"] == "started_at"
    assert client.post("/turns/t3/end", json={"status": "ended"}).status_code == 404
    # The latest two are there still: they may be told again.
    assert client.post("/turns", json=pruned[8:]).json()["turns"] == 0
    assert client.put("/turns/new", json=body | {"started_at": NEW}).status_code == 200
    assert client.put("/turns/now", json={"role": "main", "session_id": "s"}).status_code == 200


def test_a_stream_leaves_out_the_same_lines(client, pruned):
    lines = [{"event": "finished_turn", **row} for row in pruned]
    begun = {"event": "turn", "role": "main", "session_id": "s"}
    lines += [begun | {"turn_id": "t3", "started_at": OLD}]
    lines += [begun | {"turn_id": "new", "started_at": NEW}]
    answer = client.post(
        "/ingest",
        content="\n".join(map(json.dumps, lines)),
        headers={"content-type": "application/x-ndjson"},
    ).json()
    assert (answer["recorded"], answer["known"], answer["refused"]) == (1, 2, 9)
    assert [one["line"] for one in answer["results"]] == [*range(1, 9), 11]
    assert {one["field"] for one in answer["results"]} == {"started_at"}
