"""Turns told call by call or in rows, told twice, and told wrongly."""

import pytest
from sqlalchemy import func, select

from ledger.database import reading
from ledger.schema import compactions, histogram, metadata, requests, tool_calls, turns
from tests.integration.api.credibility_by_hand import decayed, decisive, own_share, standard


def everything(engine):
    """All rows of all tables but those that the refresher keeps, and the version."""
    kept = [table for name, table in metadata.tables.items() if name not in _MOVING]
    with reading(engine) as connection:
        return {
            table.name: sorted(map(repr, connection.execute(select(table)).all())) for table in kept
        }


_MOVING = ("snapshots", "snapshot_tables", "drift_states", "ledger_version")


@pytest.fixture
def printed(client, settled):
    """Return what gives the row of age 0 in the role's raw table."""

    def row(role="main"):
        settled()
        return client.get(f"/tables/{role}").json()["rows"][0]

    return row


def test_turns_of_one_two_and_three_calls_have_two_ahead_on_average(told, asked, printed):
    for calls in (1, 2, 3):
        told(f"t{calls}", calls)
    row = printed()
    assert row["m"] == pytest.approx(2)  # (1 + 2 + 3) / 3
    assert (row["at_risk"], row["ends"], row["median"]) == (3, 3, 2)
    answer = asked("main")
    expected = decisive([1, 2, 3])
    assert answer["expected_remaining_calls"] == pytest.approx(expected)
    assert expected > 2  # the standard's turns are longer
    # The next request costs 4 to save 4, so one that remains breaks even.
    assert answer["break_even_calls"] == 1
    assert answer["decision"] == "compact"
    assert answer["expected_net"] == pytest.approx(expected * 4 - 4)
    # The own tail is open from 0 on, so its hazard is 1/m for good; the standard has its own.
    own, ends = decayed([1, 2, 3])
    share = own_share(ends)
    pays = share * (1 - 1 / own) + (1 - share) * standard("main").survival[1]
    assert answer["probability_pays"] == pytest.approx(pays)
    assert answer["basis"]["turns"] == 3
    assert answer["basis"]["ends"] == 3
    assert answer["basis"]["source"] == "role"
    # No more than even does not pay.
    assert asked("main", cost=4.001 * expected)["decision"] == "wait"
    assert asked("main", cost=3.999 * expected)["decision"] == "compact"


def test_a_recorded_turn_changes_the_answer_and_the_version(told, asked, printed):
    told("t1", 1)
    assert printed()["m"] == pytest.approx(1)
    before = asked("main")
    told("t2", 5)
    assert printed()["m"] == pytest.approx(3)  # (1 + 5) / 2
    after = asked("main")
    assert before["expected_remaining_calls"] == pytest.approx(decisive([1]))
    assert after["expected_remaining_calls"] == pytest.approx(decisive([1, 5]))
    assert after["versions"]["estimate"] > before["versions"]["estimate"]


@pytest.mark.parametrize("end", [None, "cut"])
def test_turns_that_are_open_or_cut_count_as_at_risk_only(told, asked, printed, end):
    for calls in (1, 2, 3):
        told(f"t{calls}", calls)
    told("u", 5, end=end)
    # Of u, at least 5 calls are known: at risk for 4 of them, and no end. (1 + 2 + 3 + 4) / 3.
    row = printed()
    assert row["m"] == pytest.approx(10 / 3)
    assert (row["at_risk"], row["ends"]) == (4, 3)
    answer = asked("main")
    expected = decisive([1, 2, 3, 4], [True, True, True, False])
    assert answer["expected_remaining_calls"] == pytest.approx(expected)
    assert answer["basis"]["ends"] == 3
    assert answer["basis"]["at_risk"] == 4


def test_calls_before_observation_are_not_counted_as_survived(client, told, asked, begin, printed):
    for calls in (1, 2, 3):
        told(f"t{calls}", calls)
    begin("late", entry_calls=5)
    body = {"request_id": "late:0", "usage": {"output": 1}, "tool_calls": 6}
    assert client.post("/turns/late/requests", json=body).json()["tool_calls"] == 11
    client.post("/turns/late/end", json={"status": "ended"})
    # Seen at risk from call 6 to call 11: 6 calls and one end. (1 + 2 + 3 + 6) / 4.
    assert printed()["m"] == pytest.approx(3)
    assert asked("main")["expected_remaining_calls"] == pytest.approx(decisive([1, 2, 3, 6]))


def test_every_write_may_be_sent_twice(client, ledger):
    writes = [
        ("PUT", "/turns/t", {"role": "main", "session_id": "s", "model": "claude-opus-4-8"}),
        ("POST", "/turns/t/requests", {
            "request_id": "r1", "usage": {"uncached": 3, "output": 2},
            "tool_calls": [{"id": "a", "name": "Read"}, {"id": "b", "name": "Bash"}],
        }),
        ("POST", "/compactions", {
            "compaction_id": "k", "session_id": "s", "turn_id": "t", "context_before": 90_000,
        }),
        ("POST", "/turns/t/requests", {"request_id": "r2", "usage": {}, "tool_calls": 3}),
        ("POST", "/turns/t/requests", {
            "request_id": "k1", "kind": "compaction", "usage": {"output": 5},
        }),
        ("POST", "/turns/t/end", {"status": "ended", "reason": "done"}),
        ("POST", "/turns", [{"turn_id": "x", "role": "main", "tool_calls": 4}]),
        ("POST", "/turns", {"turns": [{"turn_id": "y", "role": "main", "tool_calls": 2,
                                       "status": "cut", "ended_at": "2026-01-01T00:00:00Z"}]}),
    ]  # fmt: skip
    for method, path, body in writes:
        assert client.request(method, path, json=body).status_code == 200
    before = everything(ledger)
    for method, path, body in writes:
        response = client.request(method, path, json=body)
        assert response.status_code == 200, response.text
    assert everything(ledger) == before
    counts = {table: len(rows) for table, rows in before.items()}
    assert counts | {"turns": 3, "requests": 3, "tool_calls": 2, "compactions": 1} == counts
    with reading(ledger) as connection:
        row = connection.execute(select(turns).where(turns.c.turn_id == "t")).one()
        assert (row.tool_calls, row.requests, row.status, row.reason) == (5, 2, "ended", "done")
        # When the compaction was told of again, the turn had made 5 calls; at first it was 2.
        kept = connection.execute(select(compactions)).one()
        assert (kept.calls_before, kept.requests_before) == (2, 1)
        counted = select(func.sum(histogram.c.count)).where(histogram.c.unit == "tool_calls")
        assert connection.scalar(counted) == 3


def test_the_size_after_a_compaction_may_come_later(client, ledger, begin):
    begin("t")
    body = {"compaction_id": "k", "session_id": "s", "turn_id": "t", "context_before": 90_000}
    assert client.post("/compactions", json=body).json()["compactions"] == 1
    assert client.post("/compactions", json=body | {"context_after": 40_000}).json() == {
        "turns": 0,
        "requests": 0,
        "compactions": 0,
    }
    with reading(ledger) as connection:
        row = connection.execute(select(compactions)).one()
    assert (row.context_before, row.context_after) == (90_000, 40_000)


def test_tokens_of_a_request_are_kept_by_class(client, ledger, begin):
    begin("t", model="claude-opus-4-8")
    usage = {
        "input_tokens": 7,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 50,
        "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 25},
        "output_tokens": 9,
    }
    body = {"request_id": "r", "usage": usage, "tool_calls": [{"id": "a", "name": "Read"}]}
    assert client.post("/turns/t/requests", json=body).json()["tool_calls"] == 1
    with reading(ledger) as connection:
        row = connection.execute(select(requests)).one()
        call = connection.execute(select(tool_calls)).one()
    assert (row.uncached, row.cache_read, row.output) == (7, 100, 9)
    assert (row.cache_write_5m, row.cache_write_1h, row.cache_write_other) == (20, 25, 5)
    assert row.model == "claude-opus-4-8"  # the turn's, where the request names none
    assert (call.request_id, call.name, call.turn_id) == ("r", "Read", "t")


def test_many_rows_are_recorded_or_none(client, ledger):
    rows = [{"turn_id": f"t{n}", "role": "main", "tool_calls": n} for n in range(5)]
    wrong = [*rows, {"turn_id": "w", "role": "main", "tool_calls": 1, "entry_calls": 2}]
    refused = client.post("/turns", json=wrong)
    assert refused.status_code == 422
    assert refused.json()["field"] == "turns.5.tool_calls"
    late = client.post("/turns", json=[*rows, {**rows[0], "turn_id": "w", "ended_at": "noon"}])
    assert (late.status_code, late.json()["field"]) == (422, "turns.5.ended_at")
    with reading(ledger) as connection:
        assert connection.scalar(select(func.count()).select_from(turns)) == 0
    assert client.post("/turns", json={"turns": rows}).json()["turns"] == 5
    assert client.post("/turns", json=rows).json()["turns"] == 0


def test_an_end_can_state_what_no_request_told(client, ledger, begin):
    begin("t")
    assert client.post("/turns/t/end", json={"status": "cut"}).json()["tool_calls"] == 0
    stated = client.post("/turns/t/end", json={"status": "cut", "tool_calls": 8}).json()
    assert (stated["tool_calls"], stated["status"]) == (8, "cut")
    ended = client.post("/turns/t/end", json={"status": "ended"}).json()
    assert (ended["tool_calls"], ended["status"]) == (8, "ended")


def test_what_contradicts_the_ledger_is_a_conflict(client, begin):
    begin("t", role="main")
    begin("u", role="main")
    body = {"request_id": "r", "usage": {}}
    assert client.post("/turns/t/requests", json=body).status_code == 200
    client.post("/compactions", json={"compaction_id": "k", "session_id": "s", "context_before": 5})
    cases = [
        ("PUT", "/turns/t", {"role": "Plan", "session_id": "s"}, "role", "Plan"),
        ("PUT", "/turns/t", {"role": "main", "session_id": "z"}, "session_id", "z"),
        ("POST", "/turns/u/requests", body, "request_id", "r"),
        ("POST", "/turns", [{"turn_id": "t", "role": "Plan", "tool_calls": 1}], "turns.0.role",
         "Plan"),
        ("POST", "/turns", [{"turn_id": "n", "role": "a", "tool_calls": 1},
                            {"turn_id": "n", "role": "b", "tool_calls": 1}], "turns.1.role", "b"),
        ("POST", "/compactions", {"compaction_id": "k", "session_id": "z", "context_before": 5},
         "session_id", "z"),
    ]  # fmt: skip
    for method, path, sent, field, value in cases:
        response = client.request(method, path, json=sent)
        problem = response.json()
        assert response.status_code == 409, problem
        assert response.headers["content-type"] == "application/problem+json"
        assert (problem["field"], problem["value"]) == (field, value)
        assert problem["remedy"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/turns/none/requests", {"request_id": "r", "usage": {}}),
        ("/turns/none/end", {"status": "ended"}),
        ("/compactions", {"compaction_id": "k", "session_id": "s", "turn_id": "none",
                          "context_before": 1}),
    ],
)  # fmt: skip
def test_an_unknown_turn_is_not_found(client, path, body):
    response = client.post(path, json=body)
    assert response.status_code == 404
    problem = response.json()
    assert (problem["field"], problem["value"]) == ("turn_id", "none")
    assert "PUT /turns/{turn_id}" in problem["remedy"]


def test_finished_rows_of_a_turn_told_live_keep_its_session(client, ledger, begin):
    begin("t", session_id="s7")
    row = {"turn_id": "t", "role": "main", "tool_calls": 6, "requests": 5}
    assert client.post("/turns", json=[row]).status_code == 200
    with reading(ledger) as connection:
        kept = connection.execute(select(turns)).one()
    assert (kept.session_id, kept.status, kept.tool_calls, kept.requests) == ("s7", "ended", 6, 5)
