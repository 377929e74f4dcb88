"""The refresher: builds once, loads what others built, keeps the last good one, never forgets."""

import pytest

from api import estimates, refresh
from api.estimates import build_snapshot
from api.refresh import Refresher
from compactuary.errors import LedgerError
from ledger.database import open_engine, reading, writing
from ledger.drift_states import read_drift_states
from ledger.events import TurnReached, TurnStarted
from ledger.recording import record
from ledger.snapshots import latest_snapshot

NOW_MS = 1_800_000_000_000


def finished(turn_id, calls, role="main", status="ended", requests=None):
    return [
        TurnStarted(turn_id, "s", "s", "test", role),
        TurnReached(turn_id, "s", status, None, None, calls, requests),
    ]


def tell(engine, events):
    with writing(engine) as connection:
        record(connection, events)


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.ms = NOW_MS

    def __call__(self):
        return self.ms


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def refresher(sqlite_ledger, clock):
    return Refresher(sqlite_ledger, 3600, clock)


@pytest.fixture
def builds(monkeypatch):
    """Count how often a snapshot is built rather than loaded."""
    counted = []

    def counting(connection, estimates, built_ms):
        counted.append(estimates.version)
        return build_snapshot(connection, estimates, built_ms)

    monkeypatch.setattr(refresh, "build_snapshot", counting)
    return counted


def remaining(refresher, role="main", age=0, unit="tool_calls"):
    """m(i) as printed: the plain mean, of all roles for None."""
    snapshot = refresher.state.snapshot
    table = snapshot.tables.get(unit, {}).get(role) if role else snapshot.portfolio.get(unit)
    return None if table is None else table.remaining(age).expected


def test_an_empty_ledger_has_a_snapshot_of_the_standard_table_alone(refresher, clock):
    assert refresher.state.built_ms is None
    before = refresher.state.snapshot
    refresher.refresh()
    assert refresher.state.built_ms == NOW_MS
    assert refresher.state.error is None
    assert remaining(refresher) is remaining(refresher, None) is None
    snapshot = refresher.state.snapshot
    assert (snapshot.tables, snapshot.portfolio, snapshot.decisive) == ({}, {}, {})
    for unit in ("tool_calls", "requests"):
        assert snapshot.lookup(unit, "main").table.source == "standard"
    # Even before the ledger has been read, that is what answers.
    assert before.content_hash == snapshot.content_hash


def test_the_same_version_is_looked_at_and_not_built_again(sqlite_ledger, refresher, clock, builds):
    tell(sqlite_ledger, finished("a", 4))
    refresher.refresh()
    snapshot = refresher.state.snapshot
    clock.ms += 700
    refresher.refresh()
    assert len(builds) == 1
    assert refresher.state.snapshot is snapshot
    assert (refresher.state.built_ms, refresher.state.checked_ms) == (NOW_MS, NOW_MS + 700)
    assert refresher.state.refreshes == 1


def test_a_snapshot_that_another_worker_stored_is_loaded(sqlite_ledger, refresher, clock, builds):
    tell(sqlite_ledger, [*finished("a", 4), *finished("b", 8, "Plan")])
    refresher.refresh()
    clock.ms += 5_000
    other = Refresher(sqlite_ledger, 3600, clock)
    other.refresh()
    assert len(builds) == 1
    assert other.state.snapshot == refresher.state.snapshot
    assert other.state.built_ms == NOW_MS  # when it was built, not when it was loaded
    # A worker that has loaded so far builds the next one itself, and the first one loads it.
    tell(sqlite_ledger, finished("c", 6))
    other.refresh()
    refresher.refresh()
    assert len(builds) == 2
    assert remaining(other) == remaining(refresher) == pytest.approx(5)  # (4 + 6) / 2
    assert remaining(refresher, "Plan") == pytest.approx(8)


def test_one_new_turn_is_picked_up_from_the_version_known(sqlite_ledger, refresher, builds):
    tell(sqlite_ledger, [*finished("a", 4), *finished("p", 9, "Plan")])
    refresher.refresh()
    known = refresher.state.snapshot.version
    tell(sqlite_ledger, finished("b", 8))
    refresher.refresh()
    assert builds == [0, known]
    assert remaining(refresher) == pytest.approx(6)
    assert remaining(refresher, "Plan") == pytest.approx(9)
    assert remaining(refresher, None) == pytest.approx(7)  # (4 + 8 + 9) / 3


def test_the_last_good_snapshot_stays_when_the_database_fails(
    sqlite_ledger, refresher, clock, monkeypatch
):
    tell(sqlite_ledger, finished("a", 4))
    refresher.refresh()
    tell(sqlite_ledger, finished("b", 8))

    def fails(_connection):
        raise LedgerError("another process holds the database")

    with monkeypatch.context() as patched:
        patched.setattr(refresh, "current_version", fails)
        clock.ms += 900
        refresher.refresh()
    assert remaining(refresher) == pytest.approx(4)
    assert refresher.state.error == "another process holds the database"
    assert refresher.state.checked_ms == NOW_MS + 900
    refresher.refresh()
    assert refresher.state.error is None
    assert remaining(refresher) == pytest.approx(6)


def test_a_failure_half_way_loses_no_change(sqlite_ledger, refresher, monkeypatch):
    tell(sqlite_ledger, finished("a", 4))
    refresher.refresh()
    tell(sqlite_ledger, finished("b", 8))

    def fails(_histogram):
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(estimates, "life_table", fails)
        refresher.refresh()
    assert refresher.state.error == "MemoryError: "
    assert remaining(refresher) == pytest.approx(4)
    tell(sqlite_ledger, finished("p", 9, "Plan"))  # another role: b is no news any more
    refresher.refresh()
    assert refresher.state.error is None
    assert remaining(refresher) == pytest.approx(6)


def test_a_ledger_without_tables_is_told_and_survived(tmp_path, clock):
    engine = open_engine(str(tmp_path / "none.db"))
    refresher = Refresher(engine, 3600, clock)
    refresher.refresh()
    assert "db upgrade" in (refresher.state.error or "")
    assert refresher.state.built_ms is None
    engine.dispose()


def test_requests_per_call_is_learned_from_five_turns_that_tell_both(sqlite_ledger, refresher):
    tell(sqlite_ledger, finished("untold", 50))
    tell(sqlite_ledger, finished("cut", 50, status="cut", requests=1))
    for number in range(4):
        tell(sqlite_ledger, finished(f"t{number}", 8, requests=6))
    refresher.refresh()
    assert refresher.state.snapshot.tables["tool_calls"]["main"].requests_per_call is None
    tell(sqlite_ledger, finished("t4", 18, requests=9))
    refresher.refresh()
    table = refresher.state.snapshot.tables["tool_calls"]["main"]
    assert table.requests_per_call == pytest.approx((4 * 6 + 9) / (4 * 8 + 18))


def test_a_failure_to_store_is_told_and_every_role_is_watched_once_it_is_over(
    sqlite_ledger, refresher, monkeypatch
):
    for number, role in enumerate(("main", "Plan")):
        events = finished(role, 4, role)
        tell(sqlite_ledger, [events[0], TurnReached(role, "s", "ended", None, NOW_MS + number, 4)])

    def fails(_connection, _roles):
        raise LedgerError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(refresh, "watch_drift", fails)
        refresher.refresh()
    assert refresher.state.error == "the disk is full"
    assert remaining(refresher) == pytest.approx(4)
    tell(sqlite_ledger, finished("b", 8))
    refresher.refresh()
    assert refresher.state.error is None
    with reading(sqlite_ledger) as connection:
        assert set(read_drift_states(connection)) == {"main", "Plan"}


def test_a_turn_longer_than_any_life_table_is_cut_there(sqlite_ledger, refresher):
    started = TurnStarted("long", "s", "s", "test", "odd", entry_calls=999_999)
    reached = TurnReached("long", "s", "ended", None, None, 1_500_000)
    tell(sqlite_ledger, [started, reached, *finished("a", 4)])
    refresher.refresh()
    assert refresher.state.error is None
    assert remaining(refresher) == pytest.approx(4)


def test_the_thread_looks_again_and_stops_when_told(sqlite_ledger):
    refresher = Refresher(sqlite_ledger, 3600)
    refresher.start()
    tell(sqlite_ledger, finished("a", 4))
    refresher.wake()
    for _ in range(1000):
        if remaining(refresher) is not None:
            break
        refresher._thread.join(0.01)
    refresher.stop()
    assert remaining(refresher) == pytest.approx(4)
    assert not refresher._thread.is_alive()


@pytest.mark.parametrize(("took", "rest"), [(0.001, 0.004), (0.5, 2.0), (40.0, 5.0)])
def test_after_a_refresh_the_thread_rests_four_times_as_long_whoever_wakes_it(
    refresher, monkeypatch, took, rest
):
    now, rests = [0.0], []

    class Stopped:
        def is_set(self):
            return len(rests) == 3

        def wait(self, seconds):
            rests.append(seconds)

    def slow():
        now[0] += took
        refresher.wake()

    monkeypatch.setattr(refresh.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(refresher, "_stopped", Stopped())
    monkeypatch.setattr(refresher, "refresh", slow)
    refresher.wake()
    refresher._run()
    assert rests == pytest.approx([rest] * 3)


def test_a_failed_store_is_told_until_it_succeeds(sqlite_ledger, refresher, monkeypatch):
    tell(sqlite_ledger, finished("a", 4))

    def fails(*_arguments):
        raise LedgerError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(refresh, "store_snapshot", fails)
        for _ in range(2):
            refresher.refresh()
            assert refresher.state.error == "the disk is full"
            assert remaining(refresher) == pytest.approx(4)
    refresher.refresh()
    assert refresher.state.error is None
    with reading(sqlite_ledger) as connection:
        stored = latest_snapshot(connection)
    assert stored is not None
    assert stored.content_hash == refresher.state.snapshot.content_hash


def test_a_fault_of_the_watch_costs_no_estimates_and_is_tried_again(
    sqlite_ledger, refresher, monkeypatch
):
    started, _ = finished("a", 4)
    tell(sqlite_ledger, [started, TurnReached("a", "s", "ended", None, NOW_MS, 4)])

    def fails(_engine, _roles):
        raise KeyError("detector")

    with monkeypatch.context() as patched:
        patched.setattr(refresh, "watch_drift", fails)
        refresher.refresh()
        kept = refresher._estimates
    assert refresher.state.error == "KeyError: 'detector'"
    refresher.refresh()
    assert refresher.state.error is None
    assert refresher._estimates is kept
    with reading(sqlite_ledger) as connection:
        assert set(read_drift_states(connection)) == {"main"}


def test_a_table_that_another_worker_changed_meanwhile_is_stored_again(sqlite_ledger, clock):
    """It is as this worker had it before, but no longer as it is stored."""
    one, other, third = (Refresher(sqlite_ledger, 3600, clock) for _ in range(3))
    started, reached = finished("a", 4)
    tell(sqlite_ledger, [started, reached])
    one.refresh()
    for calls, worker in ((9, other), (4, one)):
        tell(sqlite_ledger, [TurnReached("a", "s", "ended", None, None, calls)])
        worker.refresh()
        assert remaining(worker) == pytest.approx(calls)
    third.refresh()
    assert remaining(third) == pytest.approx(4)
    assert third.state.snapshot.tables == one.state.snapshot.tables
    assert third.state.snapshot.decisive == one.state.snapshot.decisive
