"""Several workers on one ledger: one builds, the others load what it stored."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from api import refresh
from api.estimates import build_snapshot
from api.refresh import Refresher
from ledger.builder import sole_builder
from ledger.database import reading, writing
from ledger.events import TurnReached, TurnStarted
from ledger.recording import record
from ledger.snapshots import latest_snapshot

WORKERS = 4


def finish(engine, turn_id, calls=3):
    with writing(engine) as connection:
        started = TurnStarted(turn_id, "s", "s", "test", "main")
        record(connection, [started, TurnReached(turn_id, "s", "ended", None, None, calls)])


@pytest.fixture
def builds(monkeypatch):
    """Make builds slow enough to meet, and note who is at it."""
    at_work, most, done = [], [], []

    def slow(connection, estimates, built_ms):
        at_work.append(1)
        most.append(len(at_work))
        try:
            time.sleep(0.3)
            return build_snapshot(connection, estimates, built_ms)
        finally:
            done.append(at_work.pop())

    monkeypatch.setattr(refresh, "build_snapshot", slow)
    return most, done


def _all_at_once(refreshers, *, rounds=40):
    start = threading.Barrier(len(refreshers))

    def work(refresher):
        start.wait()
        for _ in range(rounds):
            refresher.refresh()
            if refresher._waiting_since is None:
                break
            time.sleep(refresh.BUSY_SECONDS)
        assert refresher.state.error is None

    with ThreadPoolExecutor(len(refreshers)) as pool:
        list(pool.map(work, refreshers))


def test_one_builds_and_all_have_it(ledger, builds):
    most, done = builds
    refreshers = [Refresher(ledger, 3600) for _ in range(WORKERS)]
    for number in range(3):
        finish(ledger, f"t{number}", 3 + number)
        _all_at_once(refreshers)
        with reading(ledger) as connection:
            stored = latest_snapshot(connection)
        assert {one.state.snapshot.content_hash for one in refreshers} == {stored.content_hash}
        assert {one.state.snapshot.version for one in refreshers} == {stored.version}
    if ledger.dialect.name == "postgresql":
        assert (max(most), len(done)) == (1, 3)


def test_who_waits_answers_from_what_it_has_and_builds_in_the_end(ledger, monkeypatch):
    if ledger.dialect.name != "postgresql":
        pytest.skip("on SQLite nobody waits")
    finish(ledger, "a")
    refresher = Refresher(ledger, 3600)
    refresher.refresh()
    before = refresher.state
    finish(ledger, "b")
    with sole_builder(ledger) as alone:
        assert alone is not None
        with sole_builder(ledger) as second:
            assert second is None
        refresher.refresh()
        assert (refresher.state.snapshot, refresher.state.error) == (before.snapshot, None)
        assert refresher.state.checked_ms == before.checked_ms
        # Whoever has the lock hangs: after a while it is not waited for any longer.
        monkeypatch.setattr(refresh, "PATIENCE_SECONDS", 0.0)
        refresher.refresh()
        assert refresher.state.snapshot.version > before.snapshot.version
    with sole_builder(ledger) as again:
        assert again is not None
