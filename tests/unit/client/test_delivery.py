import gc
import json
import threading
import weakref

import pytest

from compactuary.advice import Unanswered
from compactuary.delivery import Delivery
from compactuary.http_message import Answered
from compactuary.records import Record

PATIENCE_SECONDS = 10.0
AWAY = Unanswered("unreachable", "gone")


def record(number, kind="request"):
    return Record(kind, "POST", f"/{number}", json.dumps(number).encode())


@pytest.fixture
def delivery_to(endpoint, counters, log, monkeypatch):
    monkeypatch.setattr("compactuary.delivery._FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("compactuary.delivery._LONGEST_PAUSE_SECONDS", 0.002)
    made = []

    def make(connections, capacity=100):
        made.append(Delivery(endpoint, connections, counters, log, capacity, 1.0))
        return made[-1]

    yield make
    for delivery in made:
        thread = delivery._thread
        delivery._connections.answers = [Answered(200, {}, b"")]
        delivery.close()
        if thread is not None:
            thread.join(PATIENCE_SECONDS)


def test_records_arrive_in_their_order(delivery_to, scripted, answered, counters):
    server = scripted([answered(200)])
    delivery = delivery_to(server)
    for number in range(50):
        delivery.offer(record(number))
    assert delivery.flush(PATIENCE_SECONDS)
    assert server.heads() == [f"POST /{number}" for number in range(50)]
    assert counters.snapshot()["records_delivered"] == 50


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504, None])
def test_a_server_that_is_away_is_asked_until_it_is_back(
    delivery_to, scripted, answered, counters, status
):
    away = AWAY if status is None else answered(status)
    server = scripted([*[away] * 20, answered(200)])
    delivery = delivery_to(server)
    delivery.offer(record(1))
    delivery.offer(record(2))
    assert delivery.flush(PATIENCE_SECONDS)
    assert server.heads() == [*["POST /1"] * 21, "POST /2"]
    counted = counters.snapshot()
    assert (counted["records_retried"], counted["records_delivered"]) == (20, 2)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_what_is_refused_is_dropped_counted_and_told_once(
    delivery_to, scripted, answered, counters, caplog, status
):
    server = scripted([answered(status, b'{"detail": "why"}')] * 3 + [answered(200)])
    delivery = delivery_to(server)
    for number in range(4):
        delivery.offer(record(number))
    assert delivery.flush(PATIENCE_SECONDS)
    counted = counters.snapshot()
    assert (counted["records_refused"], counted["records_delivered"]) == (3, 1)
    (line,) = caplog.messages
    assert f"{status} " in line
    assert "why" in line


@pytest.mark.parametrize("fault", [500, None])
def test_a_record_that_the_server_fails_at_holds_up_the_others_for_a_while(
    delivery_to, scripted, answered, counters, fault
):
    broken = Unanswered("garbage", "no HTTP") if fault is None else answered(fault)
    server = scripted([lambda request: broken if b" /1 " in request else answered(200)])
    delivery = delivery_to(server)
    delivery.offer(record(1))
    delivery.offer(record(2))
    assert delivery.flush(PATIENCE_SECONDS)
    assert server.heads() == [*["POST /1"] * 8, "POST /2"]
    assert counters.snapshot()["records_refused"] == 1


def test_a_full_queue_loses_the_oldest_but_no_start(delivery_to, scripted, answered, counters):
    held, entered = threading.Event(), threading.Event()

    def wait(request):
        entered.set()
        held.wait(PATIENCE_SECONDS)
        return answered(200)

    server = scripted([wait])
    delivery = delivery_to(server, capacity=4)
    delivery.offer(record(0))
    assert entered.wait(PATIENCE_SECONDS)
    delivery.offer(record(1, "turn"))
    for number in range(2, 8):
        delivery.offer(record(number))
    assert delivery.pending == 5
    held.set()
    assert delivery.flush(PATIENCE_SECONDS)
    assert server.heads() == [f"POST /{number}" for number in (0, 1, 5, 6, 7)]
    counted = counters.snapshot()
    assert (counted["records_dropped"], counted["records_delivered"]) == (3, 5)


def test_starts_go_where_there_is_nothing_else(delivery_to, scripted, answered, counters):
    held, entered = threading.Event(), threading.Event()

    def wait(request):
        entered.set()
        held.wait(PATIENCE_SECONDS)
        return answered(200)

    server = scripted([wait])
    delivery = delivery_to(server, capacity=2)
    delivery.offer(record(0))
    assert entered.wait(PATIENCE_SECONDS)
    for number in range(1, 5):
        delivery.offer(record(number, "turn"))
    held.set()
    assert delivery.flush(PATIENCE_SECONDS)
    assert server.heads() == [f"POST /{number}" for number in (0, 3, 4)]


def test_flushing_waits_no_longer_than_it_may(delivery_to, scripted):
    delivery = delivery_to(scripted([AWAY]))
    assert delivery.flush(0.0)
    delivery.offer(record(1))
    assert not delivery.flush(0.01)
    assert delivery.pending == 1


def test_what_is_given_up_is_counted_and_told(delivery_to, scripted, counters, caplog):
    delivery = delivery_to(scripted([AWAY]))
    for number in range(3):
        delivery.offer(record(number))
    thread = delivery._thread
    delivery.give_up()
    delivery.close()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert counters.snapshot()["records_dropped"] == 3
    assert caplog.messages == ["3 records were not delivered"]


def test_a_fault_of_its_own_costs_one_record(delivery_to, scripted, answered, counters):
    def fail(request):
        raise RuntimeError("a fault")

    server = scripted([fail, answered(200)])
    delivery = delivery_to(server)
    delivery.offer(record(1))
    delivery.offer(record(2))
    assert delivery.flush(PATIENCE_SECONDS)
    assert counters.snapshot()["records_delivered"] == 1


def test_a_closed_one_goes_once_it_is_empty(delivery_to, scripted, answered):
    delivery = delivery_to(scripted([answered(200)]))
    delivery.offer(record(1))
    thread = delivery._thread
    delivery.close()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    assert delivery.pending == 0


def test_a_forked_process_leaves_records_to_its_parent(delivery_to, scripted, answered):
    delivery = delivery_to(scripted([AWAY]))
    delivery._thread = threading.Thread()  # the parent's: it does not run here
    delivery.offer(record(1))
    assert delivery.pending == 1
    delivery.renew()
    assert delivery.pending == 0
    assert delivery._thread is None


def test_nothing_keeps_it_once_it_is_closed(endpoint, counters, log, scripted, answered):
    delivery = Delivery(endpoint, scripted([answered(200)]), counters, log, 9, 1.0)
    delivery.offer(record(1))
    thread, kept = delivery._thread, weakref.ref(delivery)
    delivery.close()
    thread.join(PATIENCE_SECONDS)
    del delivery
    gc.collect()
    assert kept() is None
