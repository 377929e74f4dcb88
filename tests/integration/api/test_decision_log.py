"""Answers that are logged, and held against what their turns then did."""

import shutil
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, func, select

from api.app import create_app
from api.settings import Settings
from ledger.database import open_engine, reading, writing
from ledger.schema import decisions
from ledger.versions import current_version, lock_version


@pytest.fixture
def logged(client, until):
    """Return what waits until as many decisions are in the ledger, and returns them."""

    def wait(many, **wanted):
        until(lambda: client.get("/status").json()["decision_log"]["written"] >= many)
        return client.get("/decisions", params=wanted).json()

    return wait


def ask(client, **more):
    body = {"role": "main", "calls": 0, "cost": 12, "saving": 2, "session_id": "s"} | more
    response = client.post("/should-compact", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def end(client, turn_id, status="ended"):
    assert client.post(f"/turns/{turn_id}/end", json={"status": status}).status_code == 200


def test_an_answer_is_logged_as_it_was_given(client, logged):
    asked = {"calls": 5, "turn_id": "t", "context_tokens": 150_000, "model": "claude-opus-4-8"}
    answer = ask(client, **asked, cost=None, saving=None)
    (row,) = logged(1)
    for name in (
        "decision_id", "decision", "would_decide", "rule", "mode", "threshold_tokens",
        "expected_remaining_calls", "expected_remaining_requests", "continue_probability",
        "probability_pays", "break_even_calls", "cost", "saving_per_call", "expected_net",
    ):  # fmt: skip
        assert row[name] == answer[name], name
    assert {name: row[name] for name in asked} == asked
    assert (row["role"], row["session_id"], row["unit"]) == ("main", "s", "tool_calls")
    assert (row["reason"], row["source"]) == (answer["reason"]["code"], answer["basis"]["source"])
    versions = answer["versions"]
    assert (row["policy_version"], row["snapshot_version"]) == (
        versions["policy"],
        versions["estimate"],
    )
    assert row["prices_source"] == versions["prices"]
    assert (row["moment"], row["outcome"]) == ("call", None)


def test_no_text_of_a_prompt_can_get_in(client, logged):
    secret = "my prompt"
    for extra in ({"messages": [secret]}, {"prompt": secret}, {"unit": secret}, {"rule": secret}):
        body = {"role": "main", "calls": 0, "cost": 1, "saving": 1} | extra
        assert client.post("/should-compact", json=body).status_code == 422
    ask(client, explain=True, weights={secret: 1})
    (row,) = logged(1)
    names = {"role", "session_id", "turn_id", "model", "decision_id"}
    kinds = {"unit", "decision", "would_decide", "rule", "reason", "moment", "mode", "source"}
    texts = {name for name, value in row.items() if isinstance(value, str)}
    assert texts <= names | kinds | {"at", "policy_version", "prices_source"}
    assert secret not in str(row)


def test_ask_finish_the_turn_and_see_what_happened(client, told, logged):
    ask(client, turn_id="t", calls=2)
    told("t", 9)
    (row,) = logged(1)
    outcome = row["outcome"]
    # One request a call: 9 − 2 remained, and 7·2 − 12 would have been saved.
    assert (outcome["status"], outcome["calls"], outcome["requests"]) == ("ended", 7, 7)
    assert (outcome["paid"], outcome["net_tokens"]) == (True, 2)
    summary = client.get("/decisions/summary").json()
    assert (summary["decisions"], summary["joined"], summary["ended"]) == (1, 1, 1)


def test_the_flat_question_is_logged_too(client, logged):
    asked = {"role": "main", "calls": 1, "cost": 1, "saving": 1}
    assert client.get("/should-compact", params=asked).status_code == 200
    assert logged(1)[0]["calls"] == 1


def test_logging_moves_no_version(client, ledger, logged):
    with reading(ledger) as connection:
        before = current_version(connection)
    for _ in range(20):
        ask(client)
    logged(20)
    with reading(ledger) as connection:
        assert current_version(connection) == before


def test_the_summary_by_hand(client, told, settled, logged):
    # Compact at calls 0 and 3 of 10 (only the first counts), of 4, and of an open one at 1 of 1.
    for turn_id, calls in (("a", 0), ("a", 3), ("b", 0), ("c", 1)):
        answer = ask(client, turn_id=turn_id, calls=calls)
        assert answer["decision"] == "compact"
    # Wait at calls 5 of 10 and of 5, at C/s = 600; one without a turn, one of no turn we know.
    waits = {"cost": 1200, "calls": 5}
    for turn_id in ("a", "d", None, "of no ledger"):
        assert ask(client, turn_id=turn_id, **waits)["decision"] == "wait"
    ask(client, turn_id="d", calls=6)  # more than it made
    told("a", 10)
    told("b", 4)
    told("c", 1, end=None)
    told("d", 5)
    settled()
    assert ask(client, turn_id="a", **waits)["decision"] == "wait"  # again, from a newer snapshot
    logged(10)
    summary = client.get("/decisions/summary").json()
    assert (summary["decisions"], summary["judged"], summary["joined"]) == (10, 6, 8)
    assert summary["not_judged"] == {
        "no_turn_id": 1, "unknown_turn": 1, "between_turns": 0, "contradicted": 1, "asked_again": 1,
    }  # fmt: skip
    assert summary["by_answer"] == {"compact": 5, "wait": 5}
    assert (summary["ended"], summary["cut"]) == (5, 1)
    compact, wait = summary["compact"], summary["wait"]
    # 10 of 6 paid, 4 of 6 did not, one at least 1 of 6 may yet: net 20 − 12 + 8 − 12, 1·2 − 12.
    assert (compact["turns"], compact["ended"], compact["forced"]) == (3, 2, 0)
    assert (compact["paid"]["paid"], compact["paid"]["unpaid"]) == (1, 1)
    assert compact["paid"]["share"] == 0.5
    assert (compact["net_tokens"], compact["cut_net_tokens"]) == (4, 2 - 12)
    # 5 and 0 remained of 600: none paid; avoided 1200 − 10 and 1200.
    assert (wait["decisions"], wait["would_have_paid"]["share"]) == (2, 0)
    assert (wait["missed_tokens"], wait["avoided_tokens"]) == (0, 1195)
    (row,) = summary["by_role"]
    assert (row["role"], row["unit"], row["judged"]) == ("main", "tool_calls", 6)
    # 10, 7, 5 and 4 remained; of d none did, and of the open one none is known to have.
    assert (row["remaining"]["decisions"], row["remaining"]["observed"]) == (4, 6.5)
    assert (row["no_further_call"]["decisions"], row["no_further_call"]["ended"]) == (5, 1)
    deciles = summary["probability_deciles"]
    assert sum(one["paid"]["decisions"] for one in deciles) == 4
    assert client.get("/decisions/summary", params={"role": "Plan"}).json()["decisions"] == 0
    later = {"since": "2999-01-01"}
    assert client.get("/decisions/summary", params=later).json()["decisions"] == 0
    assert client.get("/decisions", params={"turn_id": "b"}).json()[0]["outcome"]["calls"] == 4


def test_an_empty_log_has_an_empty_summary(client):
    summary = client.get("/decisions/summary").json()
    assert (summary["decisions"], summary["from"], summary["by_role"]) == (0, None, [])
    assert summary["compact"]["paid"]["share"] is None
    assert client.get("/decisions").json() == []


@pytest.mark.parametrize("path", ["/decisions", "/decisions/summary"])
def test_a_wrong_time_is_refused_by_name(sqlite_client, path):
    response = sqlite_client.get(path, params={"since": "yesterday"})
    assert response.status_code == 422
    assert response.json()["field"] == "since"


@pytest.mark.parametrize("limit", [0, -1, 50_001, "all"])
@pytest.mark.parametrize("path", ["/decisions", "/decisions/summary"])
def test_a_wrong_limit_is_refused(sqlite_client, path, limit):
    response = sqlite_client.get(path, params={"limit": limit})
    assert response.status_code == 422


def test_a_summary_of_the_latest_says_that_there_are_more(client, logged):
    for calls in range(3):
        ask(client, calls=calls)
    logged(3)
    told = [client.get("/decisions/summary", params={"limit": n}).json() for n in (2, 3)]
    assert [(one["decisions"], one["truncated"]) for one in told] == [(2, True), (3, False)]


def _count(engine):
    with reading(engine) as connection:
        return connection.scalar(select(func.count()).select_from(decisions))


def test_stopping_drains_the_log(ledger):
    url = ledger.url.render_as_string(hide_password=False)
    with TestClient(create_app(Settings(url, 3600))) as client:
        for _ in range(50):
            ask(client)
    assert _count(ledger) == 50


def test_while_the_ledger_is_locked_answers_go_on_and_rows_arrive_later_once(client, ledger, until):
    with writing(ledger) as connection:
        lock_version(connection)
        if ledger.dialect.name == "postgresql":
            connection.exec_driver_sql("LOCK TABLE decisions")
        for calls in range(30):
            ask(client, calls=calls)
        state = client.get("/status").json()["decision_log"]
        assert (state["written"], state["queued"]) == (0, 30)
    until(lambda: client.get("/status").json()["decision_log"]["written"] == 30)
    rows = client.get("/decisions").json()
    assert sorted(row["calls"] for row in rows) == list(range(30))


def test_while_the_database_is_gone_rows_are_kept(sqlite_ledger: Engine, until, tmp_path: Path):
    file, kept = Path(sqlite_ledger.url.database or ""), tmp_path / "kept.db"
    with TestClient(create_app(Settings(str(sqlite_ledger.url), 3600))) as client:

        def state():
            return client.get("/status").json()["decision_log"]

        ask(client)
        until(lambda: state()["written"] == 1)
        sqlite_ledger.dispose()
        client.app.state.service.engine.dispose()
        shutil.move(file, kept)
        file.write_text("gone\n" * 1000)
        for _ in range(40):
            ask(client)
        until(lambda: state()["error"] is not None)
        assert "no SQLite database" in state()["error"]
        assert (state()["written"], state()["dropped"]) == (1, 0)
        shutil.move(kept, file)
        until(lambda: state()["written"] == 41)
        assert state()["error"] is None
    engine = open_engine(str(file))
    assert _count(engine) == 41
    engine.dispose()


def test_a_full_queue_is_told_of(sqlite_ledger: Engine, until):
    settings = Settings(str(sqlite_ledger.url), 3600, log_queue=5)
    with TestClient(create_app(settings)) as client:
        with writing(sqlite_ledger) as connection:
            lock_version(connection)
            for _ in range(20):
                ask(client)
            state = client.get("/status").json()["decision_log"]
            assert (state["queued"], state["capacity"], state["dropped"]) == (5, 5, 15)
        until(lambda: client.get("/status").json()["decision_log"]["queued"] == 0)
    assert _count(sqlite_ledger) == 5


def test_without_a_log_nothing_is_kept(sqlite_ledger: Engine):
    with TestClient(create_app(Settings(str(sqlite_ledger.url), 3600, log=False))) as client:
        ask(client)
        assert client.get("/status").json()["decision_log"] is None
        assert client.get("/decisions").json() == []
