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
LATE = Unanswered("timeout", "late")


def record(number, kind="request"):
    return Record(kind, "POST", f"/{number}", json.dumps(number).encode())


@pytest.fixture
def delivery_to(endpoint, counters, log, monkeypatch):
    monkeypatch.setattr("compactuary.delivery._FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("compactuary.delivery._LONGEST_PAUSE_SECONDS", 0.002)
    made = []

    def make(connections, capacity=100, *, batches=False):
        made.append(Delivery(endpoint, connections, counters, log, capacity, 1.0))
        made[-1]._batches = batches
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


class Ingesting:
    """A service that takes batches, but for lines it refuses, and tells what came in which way."""

    def __init__(self, refused=(), first=()):
        self.refused, self.first = refused, list(first)
        self.came, self.batches, self.gate = [], [], threading.Event()

    def __call__(self, request):
        self.gate.wait(PATIENCE_SECONDS)
        head, _, body = request.partition(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        if path != "/ingest":
            self.came.append(path)
            return Answered(422 if path in self.refused else 200, {}, b"{}")
        assert b"Content-Type: application/x-ndjson\r\n" in head
        lines = [json.loads(line) for line in body.splitlines()]
        self.batches.append([(line["event"], line["turn_id"], line["n"]) for line in lines])
        if self.first:
            return self.first.pop(0)
        wrong = [place for place, line in enumerate(lines, 1) if f"/{line['n']}" in self.refused]
        self.came += [f"/{line['n']}" for line in lines if f"/{line['n']}" not in self.refused]
        told = {"recorded": len(lines) - len(wrong), "known": 0, "refused": len(wrong)}
        more = {"status": "refused", "field": "role", "problem": "is wrong", "remedy": "Mend it."}
        told["results"] = [{"line": place, "value": None} | more for place in wrong]
        return Answered(200, {}, json.dumps(told).encode())


def line(number, size=0):
    body = json.dumps({"n": number, "filler": "x" * size}).encode()
    return Record("request", "POST", f"/{number}", body, "t1")


@pytest.fixture
def gathered(delivery_to, scripted):
    """Return what offers records while the first is on its way, and delivers them."""

    def deliver(server, records):
        delivery = delivery_to(scripted([server]), 10_000, batches=True)
        delivery.offer(line(0))
        while delivery._waiting:
            threading.Event().wait(0.001)
        for each in records:
            delivery.offer(each)
        server.gate.set()
        assert delivery.flush(PATIENCE_SECONDS)
        return delivery

    return deliver


def test_what_gathers_while_another_is_sent_goes_together(gathered, counters):
    server = Ingesting()
    gathered(server, map(line, range(1, 1201)))
    assert [len(batch) for batch in server.batches] == [500, 500, 200]
    assert server.batches[0][0] == ("request", "t1", 1)
    assert server.came == [f"/{number}" for number in range(1201)]
    assert counters.snapshot()["records_delivered"] == 1201


def test_a_batch_is_no_longer_than_a_megabyte(gathered):
    server = Ingesting()
    gathered(server, [line(number, 250_000) for number in range(1, 10)])
    assert [len(batch) for batch in server.batches] == [4, 4]
    assert server.came == [f"/{number}" for number in range(10)]


def test_a_refused_line_does_not_hold_up_the_rest(gathered, counters, caplog):
    server = Ingesting(refused=("/2", "/5"))
    gathered(server, map(line, range(1, 7)))
    assert server.came == [f"/{number}" for number in (0, 1, 3, 4, 6)]
    counted = counters.snapshot()
    assert (counted["records_delivered"], counted["records_refused"]) == (5, 2)
    (told,) = caplog.messages
    assert "role is wrong. Mend it." in told


@pytest.mark.parametrize("status", [404, 405, 415, 501])
def test_a_server_that_knows_no_batches_gets_records_one_by_one(gathered, counters, status):
    server = Ingesting(first=[Answered(status, {}, b"{}")])
    delivery = gathered(server, map(line, range(1, 701)))
    delivery.offer(line(701))
    delivery.offer(line(702))
    assert delivery.flush(PATIENCE_SECONDS)
    assert len(server.batches) == 1
    assert server.came == [f"/{number}" for number in range(703)]
    assert counters.snapshot()["records_delivered"] == 703


@pytest.mark.parametrize(
    "said",
    [Answered(500, {}, b""), Answered(401, {}, b""), Answered(413, {}, b""),
     Unanswered("garbage", "no HTTP"), Answered(200, {}, b""), Answered(200, {}, b"[]"),
     Answered(200, {}, b'{"recorded": 1, "known": 0, "refused": 0, "results": []}'),
     Answered(200, {}, b'{"recorded": 1, "known": 0, "refused": 1, "results": []}'),
     Answered(200, {}, b'{"recorded": 1, "known": 0, "refused": 1, "results": [{"line": 4,'
              b' "field": "", "problem": "", "remedy": ""}]}')],
)  # fmt: skip
def test_a_batch_that_fails_as_a_whole_goes_one_by_one_and_the_next_together(
    gathered, counters, said
):
    server = Ingesting(refused=("/2",), first=[said])
    gathered(server, [line(1), line(2), line(3, 2**20), line(4), line(5)])
    assert [[number for *_, number in batch] for batch in server.batches] == [[1, 2], [4, 5]]
    assert server.came == ["/0", "/1", "/2", "/3", "/4", "/5"]
    counted = counters.snapshot()
    assert (counted["records_delivered"], counted["records_refused"]) == (5, 1)


def test_a_batch_waits_for_a_server_that_is_away_and_keeps_its_order(gathered, counters):
    server = Ingesting(first=[AWAY, Answered(503, {}, b""), AWAY])
    gathered(server, map(line, range(1, 4)))
    assert len(server.batches) == 4
    assert server.came == ["/0", "/1", "/2", "/3"]
    counted = counters.snapshot()
    assert (counted["records_retried"], counted["records_delivered"]) == (9, 4)


class Slow(Ingesting):
    """A service that takes at most so many lines in time; what is too slow may have arrived."""

    def __init__(self, most, late=LATE):
        super().__init__()
        self.most, self.late = most, late

    def __call__(self, request):
        before = list(self.came)
        said = super().__call__(request)
        if b"POST /ingest" not in request or len(self.batches[-1]) <= self.most:
            return said
        self.came = before
        return self.late


@pytest.mark.parametrize("late", [LATE, Answered(504, {}, b""), Answered(408, {}, b"")])
def test_batches_that_take_too_long_get_smaller_and_stay_so_a_while(gathered, counters, late):
    server = Slow(130, late)
    gathered(server, map(line, range(1, 1501)))
    # 500 and 250 are too many; four times 125 are 500 records in time, so 250 are tried again.
    sizes = [500, 250, 125, 125, 125, 125, 250, 125, 125, 125, 125, 250, 125, 125, 125, 125]
    assert [len(batch) for batch in server.batches] == sizes
    assert server.came == [f"/{number}" for number in range(1501)]
    counted = counters.snapshot()
    # 500, 250, 250 and 250 records were on their way in vain.
    assert (counted["records_delivered"], counted["records_retried"]) == (1501, 1250)


def test_batches_grow_again_once_they_are_in_time(gathered):
    server = Ingesting(first=[LATE] * 3)
    gathered(server, map(line, range(1, 3501)))
    # A size doubles once it brought 500: 62 · 8 + 4, 124 · 5, 248 · 3, 496 · 2, and 500 is most.
    grown = [*[62] * 8, 4, *[124] * 5, *[248] * 3, *[496] * 2, 500, 144]
    assert [len(batch) for batch in server.batches] == [500, 250, 125, *grown]
    assert server.came == [f"/{number}" for number in range(3501)]


@pytest.mark.parametrize("count", [2, 3, 4, 700])
def test_a_server_that_takes_no_batch_in_time_gets_records_one_by_one(gathered, counters, count):
    server = Slow(1)
    gathered(server, map(line, range(1, count + 1)))
    sizes = [len(batch) for batch in server.batches]
    expected = {
        2: [2],
        3: [3],
        4: [4, 2],
        # The 500 alone let two be tried together, once.
        700: [500, 250, 125, 62, 31, 15, 7, 3, 2],
    }
    assert sizes == expected[count]
    assert server.came == [f"/{number}" for number in range(count + 1)]
    assert counters.snapshot()["records_delivered"] == count + 1
    assert counters.snapshot()["records_refused"] == 0


def test_what_is_given_up_between_smaller_batches_is_counted(delivery_to, scripted, counters):
    server = Slow(1)
    delivery = delivery_to(scripted([server]), batches=True)
    told = delivery._rest
    delivery._rest = lambda pause: (delivery.give_up(), told(pause))
    delivery.offer(line(0))
    while delivery._waiting:
        threading.Event().wait(0.001)
    for number in range(1, 9):
        delivery.offer(line(number))
    server.gate.set()
    assert delivery.flush(PATIENCE_SECONDS)
    counted = counters.snapshot()
    assert (counted["records_dropped"], counted["records_delivered"]) == (8, 1)


def test_a_batch_that_is_given_up_is_counted(delivery_to, scripted, counters):
    server = Ingesting(first=[AWAY] * 10**4)
    delivery = delivery_to(scripted([server]), batches=True)
    delivery.offer(line(0))
    while delivery._waiting:
        threading.Event().wait(0.001)
    for number in range(1, 4):
        delivery.offer(line(number))
    server.gate.set()
    while not server.batches:
        threading.Event().wait(0.001)
    delivery.give_up()
    assert delivery.flush(PATIENCE_SECONDS)
    counted = counters.snapshot()
    assert (counted["records_dropped"], counted["records_delivered"]) == (3, 1)


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
