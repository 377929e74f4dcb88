"""Writers and refreshers at the same time: nothing is counted twice, nothing is missed."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from api.estimates import Estimates, build_snapshot
from ledger import estimates as ledger_estimates
from ledger.database import reading, writing
from ledger.events import TurnReached, TurnStarted
from ledger.recording import record
from ledger.schema import histogram, requests, turns
from ledger.versions import current_version
from tests.integration.api.credibility_by_hand import decisive


def test_requests_of_one_turn_from_many_threads_each_sent_twice(client, ledger, asked):
    client.put("/turns/t", json={"role": "main", "session_id": "s"})

    def send(number):
        body = {"request_id": str(number % 30), "usage": {"output": 1}, "tool_calls": 1}
        return client.post("/turns/t/requests", json=body).status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(send, range(60))) == {200}
        ends = threads.map(
            lambda _: client.post("/turns/t/end", json={"status": "ended"}).status_code, range(8)
        )
        assert set(ends) == {200}
    with reading(ledger) as connection:
        row = connection.execute(select(turns)).one()
        places = connection.scalars(select(requests.c.position)).all()
        counted = connection.scalar(
            select(func.sum(histogram.c.count)).where(histogram.c.unit == "tool_calls")
        )
    assert (row.tool_calls, row.requests, row.status) == (30, 30, "ended")
    assert sorted(places) == list(range(30))
    assert counted == 1
    assert asked("main")["expected_remaining_calls"] == pytest.approx(decisive([30]))
    assert client.get("/tables/main").json()["rows"][0]["m"] == pytest.approx(30)


def _finish(engine, turn_id, calls):
    with writing(engine) as connection:
        started = TurnStarted(turn_id, "s", "s", "test", "main")
        record(connection, [started, TurnReached(turn_id, "s", "ended", None, None, calls)])


def test_a_turn_that_lands_while_an_estimate_is_read_is_in_the_next_one(ledger, monkeypatch):
    _finish(ledger, "a", 2)
    late = iter([("b", 4)])

    def version_after_another_commit(connection):
        for turn_id, calls in late:
            _finish(ledger, turn_id, calls)
        return current_version(connection)

    monkeypatch.setattr(ledger_estimates, "current_version", version_after_another_commit)
    kept = Estimates()
    for remaining in (2, 3):  # without b, then with it: (2 + 4) / 2
        with reading(ledger) as connection:
            snapshot = build_snapshot(connection, kept, 0)
        table = snapshot.tables["tool_calls"]["main"]
        assert table.remaining(0).expected == pytest.approx(remaining)
