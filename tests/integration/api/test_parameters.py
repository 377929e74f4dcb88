"""What the ledger teaches, over HTTP: from memory, with sources, on both databases."""

from datetime import UTC, datetime, timedelta

import pytest

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def compacted(client, begin):
    """Record a turn of two requests with a compaction between them."""

    def tell(turn_id, minute, after, *, role="main", model="claude-opus-5"):
        def at(more):
            return (BEGUN + timedelta(minutes=minute + more)).isoformat()

        def post(path, body):
            response = client.post(path, json=body)
            assert response.status_code == 200, response.text

        begin(turn_id, role, started_at=at(0), model=model)
        usage = {"uncached": 10, "cache_write": 41_990}
        request = {"request_id": f"{turn_id}:0", "usage": usage, "at": at(0), "tool_calls": 1}
        post(f"/turns/{turn_id}/requests", request)
        told = {"compaction_id": turn_id, "session_id": "s", "turn_id": turn_id, "at": at(1)}
        post("/compactions", told | {"context_before": 150_000})
        usage = {"uncached": 10, "cache_read": 20_000, "cache_write": after - 20_010}
        post(
            f"/turns/{turn_id}/requests",
            {"request_id": f"{turn_id}:1", "usage": usage, "at": at(1)},
        )
        post(f"/turns/{turn_id}/end", {"status": "ended", "at": at(1)})

    return tell


def test_an_empty_ledger_assumes(client):
    assert client.get("/parameters").json() == {"version": 0, "roles": []}
    told = client.get("/parameters/main").json()
    assert (told["role"], told["model"], told["source"], told["version"]) == (
        "main",
        None,
        "assumed",
        0,
    )
    assert told["growth_tokens"] == {
        "value": 1100,
        "source": "assumed",
        "observations": 0,
        "credibility": 0.0,
        "median": None,
        "lower_quartile": None,
        "upper_quartile": None,
    }
    assert told["pauses"] == []
    assert told["cold_probability"] == {"300": None, "3600": None}


def test_what_was_recorded_is_learned(client, compacted, settled):
    for number, after in enumerate((40_000, 44_000, 60_000)):
        compacted(f"t{number}", 10 * number, after)
    settled()
    told = client.get("/parameters/main").json()
    [summary] = told["compactions"]
    found = summary["context_after_tokens"]
    assert (found["median"], found["source"], found["observations"]) == (44_000, "role", 3)
    assert summary["cached_after_tokens"]["median"] == 20_000
    # Turns begin 9 minutes after the last one's end.
    assert told["gap_seconds"]["median"] == 540
    assert told["cold_probability"]["300"] == pytest.approx(1.0)
    assert told["cold_probability"]["3600"] == 0.0
    assert client.get("/parameters/main?model=nobody's").json()["model"] == "nobody's"
    assert [row["role"] for row in client.get("/parameters").json()["roles"]] == ["main"]


def test_a_role_behind_a_project_and_an_unknown_one_borrow(client, compacted, settled):
    compacted("t", 0, 44_000)
    settled()
    for role in ("shop/main", "scout"):
        told = client.get(f"/parameters/{role}").json()
        assert (told["role"], told["source"]) == (role, "all_roles")


def test_models_are_told_apart_where_there_are_several(client, compacted, settled):
    compacted("a", 0, 40_000)
    compacted("b", 10, 60_000, model="claude-haiku-5")
    settled()
    rows = client.get("/parameters").json()["roles"]
    assert [row["model"] for row in rows] == [None, "claude-haiku-5", "claude-opus-5"]
    medians = [row["compactions"][0]["context_after_tokens"]["median"] for row in rows]
    assert medians == [50_000, 60_000, 40_000]
    told = client.get("/parameters/main", params={"model": "claude-haiku-5"}).json()
    assert told["source"] == "model"
    assert told | {"version": 0} == rows[1] | {"version": 0}


def test_another_worker_loads_what_one_has_learned(client, compacted, settled, ledger, until):
    from api.refresh import Refresher  # noqa: PLC0415 - beside the client's own

    compacted("a", 0, 44_000)
    settled()
    other = Refresher(ledger, 3600)

    def caught_up():
        # While the app still stores what it has built, nobody else may build it.
        other.refresh()
        return other.state.built_ms is not None

    until(caught_up)
    assert other.state.error is None
    mine = other.state.snapshot
    known = mine.parameters_of("main")
    assert known.compaction().context_after_tokens.median == 44_000
    assert known.described("main") | {"version": mine.version} == (
        client.get("/parameters/main").json()
    )
    assert mine.content_hash == client.get("/status").json()["snapshot"]["content_hash"]


def test_answers_need_no_database(client, compacted, settled, ledger):
    compacted("a", 0, 44_000)
    settled()
    before = client.get("/parameters/main").json()
    ledger.dispose()
    assert client.get("/parameters/main").json() == before
