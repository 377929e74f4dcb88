"""The log's queue: bounded, counted, tried again, drained; the database is a list."""

import asyncio
import threading
import time

import pytest
from sqlalchemy.exc import IntegrityError

from api import decision_log
from api.decision_log import DecisionLog
from compactuary.errors import LedgerError


class Database:
    """Takes rows, or fails, or keeps the writer waiting."""

    def __init__(self):
        self.rows = []
        self.fault = None
        self.open = threading.Event()
        self.open.set()
        self.waiting = threading.Event()

    def write(self, log, batch):
        self.waiting.set()
        assert self.open.wait(10)
        if self.fault is not None:
            raise self.fault
        if "bad" in batch:
            raise LedgerError("the database refused") from IntegrityError("", {}, Exception())
        self.rows += batch


@pytest.fixture
def database(monkeypatch):
    database = Database()
    monkeypatch.setattr(DecisionLog, "_write", lambda log, batch: database.write(log, batch))  # noqa: PLW0108 - replaced later
    monkeypatch.setattr(decision_log, "BATCH_SECONDS", 0.001)
    monkeypatch.setattr(decision_log, "FIRST_PAUSE_SECONDS", 0.001)
    return database


@pytest.fixture
def start():
    """Return what starts a log, and stops it in the end."""
    running = []

    def begin(capacity=100, durability="drop"):
        log = DecisionLog(None, capacity, durability)
        log.start()
        running.append(log)
        return log

    yield begin
    for log in running:
        log.stop()


def until(holds):
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_rows_arrive_in_order_in_batches_of_at_most_500(database, start):
    sizes = []
    write = database.write
    database.write = lambda log, batch: (sizes.append(len(batch)), write(log, batch))
    log = start(5000)
    database.open.clear()
    for number in range(2000):
        assert log.offer(number)
    database.open.set()
    until(lambda: log.state.written == 2000)
    assert database.rows == list(range(2000))
    assert max(sizes) == 500
    assert (log.state.queued, log.state.dropped, log.state.error) == (0, 0, None)


def test_a_full_queue_drops_its_oldest_rows_and_counts_them(database, start):
    log = start(10)
    database.open.clear()
    log.offer("first")
    assert database.waiting.wait(10)  # it is being written, and can't be dropped any more
    for number in range(30):
        assert log.offer(number)
    assert (log.state.queued, log.state.dropped) == (10, 21)
    database.open.set()
    until(lambda: log.state.queued == 0)
    assert database.rows == ["first", *range(21, 30)]
    assert log.state.written == 10


def test_what_the_database_does_not_take_is_tried_again(database, start):
    log = start()
    database.fault = LedgerError("gone", where="db")
    for number in range(20):
        log.offer(number)
    until(lambda: log.state.error == "db: gone")
    assert (log.state.queued, log.state.written) == (20, 0)
    database.fault = None
    until(lambda: log.state.written == 20)
    assert database.rows == list(range(20))
    assert log.state.error is None


def test_while_the_database_is_gone_the_queue_stays_bounded(database, start):
    log = start(10)
    database.fault = OSError("no space")
    for number in range(1000):
        log.offer(number)
    until(lambda: log.state.error == "OSError: no space")
    database.fault = None
    until(lambda: log.state.queued == 0)
    assert database.rows == list(range(990, 1000))
    assert log.state.dropped == 990


def test_a_row_that_is_refused_holds_up_no_other(database, start):
    log = start()
    database.open.clear()
    for row in (1, "bad", 2, 3):
        log.offer(row)
    database.open.set()
    until(lambda: log.state.written == 3)
    assert database.rows == [1, 2, 3]
    assert log.state.refused == 1
    assert "refused" in log.state.error


def test_stopping_writes_what_is_left(database, start):
    log = start(5000)
    for number in range(1200):
        log.offer(number)
    log.stop()
    assert database.rows == list(range(1200))
    log.stop()  # once more changes nothing


def test_stopping_gives_up_on_a_database_that_is_gone_and_says_so(database, caplog):
    log = DecisionLog(None, 100)
    log.start()
    database.fault = LedgerError("gone")
    log.offer(1)
    began = time.monotonic()
    log.stop()
    assert time.monotonic() - began < 5
    assert "1 decisions could not be logged: gone" in caplog.text


def test_a_log_that_never_started_stops(database):
    log = DecisionLog(None, 3)
    log.stop()
    assert log.state.as_payload()["queued"] == 0


def test_with_block_answers_wait_for_room_while_others_go_on(database, start):
    log = start(3, "block")
    database.open.clear()
    for number in range(3):
        assert log.offer(number)
    assert not log.offer("late")
    ticks = []

    async def others():
        while len(ticks) < 20:
            ticks.append(log.state.queued)
            await asyncio.sleep(0.001)
        database.open.set()

    async def both():
        await asyncio.gather(log.wait("late"), others())

    asyncio.run(both())
    assert set(ticks) == {3}
    until(lambda: log.state.written == 4)
    assert database.rows == [0, 1, 2, "late"]
    assert log.state.dropped == 0


def test_an_answer_does_not_wait_for_ever(database, start, monkeypatch):
    monkeypatch.setattr(decision_log, "ROOM_SECONDS", 0.02)
    log = start(3, "block")
    database.open.clear()
    log.offer("first")
    assert database.waiting.wait(10)
    for number in range(2):
        log.offer(number)
    asyncio.run(log.wait("late"))
    assert log.state.dropped == 1
    database.open.set()
    until(lambda: log.state.queued == 0)
    assert database.rows == ["first", 1, "late"]


@pytest.mark.parametrize("durability", ["drop", "block"])
def test_a_queue_that_is_all_in_hand_still_takes_one(database, start, monkeypatch, durability):
    monkeypatch.setattr(decision_log, "ROOM_SECONDS", 0.02)
    log = start(1, durability)
    database.open.clear()
    log.offer("first")
    assert database.waiting.wait(10)
    for row in ("lost", "late"):
        asyncio.run(log.wait(row))
    assert (log.state.queued, log.state.dropped) == (2, 1)
    database.open.set()
    until(lambda: log.state.queued == 0)
    assert database.rows == ["first", "late"]


def test_many_threads_lose_nothing_uncounted(database, start):
    log = start(50)
    threads = [
        threading.Thread(target=lambda: [log.offer(n) for n in range(2000)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: log.state.queued == 0)
    assert log.state.written + log.state.dropped == 8000
    assert len(database.rows) == log.state.written
