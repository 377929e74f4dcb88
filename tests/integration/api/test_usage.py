"""Raw usage objects posted as they came: read, split into requests, or refused and not written."""

import pytest
from sqlalchemy import func, select

from ledger.database import reading
from ledger.schema import requests

MESSAGE = {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}
COMPACTION = {
    "type": "compaction",
    "input_tokens": 500,
    "cache_read_input_tokens": 179_500,
    "output_tokens": 3_500,
}


@pytest.fixture
def begun(client):
    assert client.put(
        "/turns/t", json={"role": "main", "session_id": "s", "model": "claude-opus-4-8"}
    ).is_success


def _rows(ledger):
    with reading(ledger) as connection:
        return connection.execute(select(requests).order_by(requests.c.request_id)).all()


@pytest.mark.usefixtures("begun")
def test_a_compaction_inside_a_request_is_recorded_beside_it(client, ledger):
    usage = {
        "input_tokens": 23_000,
        "output_tokens": 1_000,
        "iterations": [COMPACTION, COMPACTION | {"output_tokens": 9, "model": "other"}, MESSAGE],
    }
    body = {"request_id": "r", "usage": usage, "tool_calls": 2}
    for _ in range(2):
        answer = client.post("/turns/t/requests", json=body).json()
        assert (answer["requests"], answer["tool_calls"]) == (1, 2)
    told = [
        (row.request_id, row.kind, row.turn_id, row.model, row.uncached, row.output)
        for row in _rows(ledger)
    ]
    assert told == [
        ("r", "agent", "t", "claude-opus-4-8", 23_000, 1_000),
        ("r/compaction-1", "compaction", None, "claude-opus-4-8", 500, 3_500),
        ("r/compaction-2", "compaction", None, "other", 500, 9),
    ]
    assert [row.cache_read for row in _rows(ledger)] == [0, 179_500, 179_500]


@pytest.mark.usefixtures("begun")
def test_a_compaction_on_demand_is_its_own_request(client, ledger):
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [COMPACTION]}
    body = {"request_id": "k", "usage": usage, "kind": "compaction"}
    assert client.post("/turns/t/requests", json=body).json()["tool_calls"] == 0
    (row,) = _rows(ledger)
    assert (row.request_id, row.kind, row.cache_read, row.output) == (
        "k", "compaction", 179_500, 3_500,
    )  # fmt: skip


@pytest.mark.usefixtures("begun")
def test_what_the_fields_leave_open_is_answered_by_naming_it(client, ledger):
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 40,
        "completion_tokens_details": {"reasoning_tokens": 10},
    }
    body = {"request_id": "r", "usage": usage}
    refused = client.post("/turns/t/requests", json=body)
    assert refused.status_code == 422
    assert "openai_chat or xai_chat" in refused.json()["remedy"]
    wrong = client.post("/turns/t/requests", json=body | {"convention": "grok"})
    assert (wrong.status_code, wrong.json()["field"]) == (422, "convention")
    with reading(ledger) as connection:
        assert connection.scalar(select(func.count()).select_from(requests)) == 0
    named = client.post("/turns/t/requests", json=body | {"convention": "xai_chat"})
    assert named.status_code == 200
    (row,) = _rows(ledger)
    assert (row.uncached, row.output, row.reasoning) == (100, 50, 10)


@pytest.mark.parametrize(
    ("usage", "field"),
    [
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 6}}, "prompt_tokens"),
        ({"promptTokenCount": -5}, "promptTokenCount"),
        ({"inputTokens": 10**30}, "inputTokens"),
        ({"input_tokens": 1, "iterations": [{"type": ["compaction"]}]}, "iterations.type"),
    ],
)
@pytest.mark.usefixtures("begun")
def test_a_miscounted_object_is_refused_and_nothing_written(client, ledger, usage, field):
    response = client.post("/turns/t/requests", json={"request_id": "r", "usage": usage})
    assert (response.status_code, response.json()["field"]) == (422, f"usage.{field}")
    assert not _rows(ledger)
