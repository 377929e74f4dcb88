"""Delivery: records wait in memory and arrive in their order, each at least once.

One that waits alone is sent to its own endpoint; those that gathered meanwhile go together, through
``POST /ingest``. Where a batch takes too long, halves of it are sent; where it fails as a whole
otherwise, its records are sent one by one.

They are not spilled to disk: what a killed process had not delivered is lost, and so is what a
server stays away for longer than the process lives.
"""

import atexit
import os
import threading
import time
from collections import OrderedDict, deque
from typing import Any, Literal
from weakref import WeakSet

from compactuary.advice import Unanswered
from compactuary.batch import MOST_BYTES, BatchSize, batch_bytes, refusals_in
from compactuary.connection import Connections
from compactuary.counters import Counters
from compactuary.endpoint import Endpoint
from compactuary.http_message import Answered, request_bytes
from compactuary.log_once import LOGGER, LogOnce
from compactuary.records import Record

__all__ = ["Delivery"]

_SEND_SECONDS = 10.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
#: A record that the server fails at so often, with a 500, would hold up all others for ever.
_MOST_FAULTS = 8
#: Statuses of a server, or of what is before it, that will do better later.
_LATER = (408, 425, 429, 502, 503, 504)
#: Those that say that a request took too long: for a batch that may be its size.
_TOO_SLOW = (408, 504)
#: Statuses of a server that knows no batches.
_NO_SUCH_THING = (404, 405, 415, 501)

_Outcome = Literal["delivered", "refused", "fault", "later"]
#: What a batch's records need: nothing more, to go alone, or to go in smaller batches.
_Left = Literal["nothing", "alone", "smaller"]


class Delivery:
    """A bounded queue of records, and the thread that delivers them.

    Parameters
    ----------
    capacity : int
        Records that may wait. When it is full the oldest goes; a turn's start only where nothing
        else is left, since the server takes no other record of a turn without it.
    exit_seconds : float
        How long the end of the process waits for what is still to be delivered.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        connections: Connections,
        counters: Counters,
        log: LogOnce,
        capacity: int,
        exit_seconds: float,
    ) -> None:
        self._endpoint, self._connections = endpoint, connections
        self._counters, self._log = counters, log
        self._capacity, self.exit_seconds = capacity, exit_seconds
        self._number = 0
        self._closed = False
        self.given_up = False
        self._batches = True
        self._size = BatchSize()
        self.renew()
        _ALL.add(self)

    def renew(self) -> None:
        """Begin anew in a forked process: what was waiting is for the parent to deliver."""
        self._changed = threading.Condition()
        self._waiting: OrderedDict[int, Record] = OrderedDict()
        self._droppable: deque[int] = deque()
        self._sending: list[Record] = []
        self._hurried = False
        self._thread: threading.Thread | None = None

    @property
    def pending(self) -> int:
        """How many records are not delivered yet."""
        return len(self._waiting) + len(self._sending)

    def offer(self, record: Record) -> None:
        """Have a record delivered; never waits for the server."""
        self._counters.count("records_queued")
        with self._changed:
            if len(self._waiting) >= self._capacity:
                self._drop_oldest()
            self._number += 1
            self._waiting[self._number] = record
            if record.kind != "turn":
                self._droppable.append(self._number)
            self._start()
            self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until everything is delivered; return whether it was in time.

        A pause after a failure is cut short once.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            self._hurried = True
            if self._waiting:
                self._start()
            self._changed.notify_all()
            while self.pending:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return True

    def close(self) -> None:
        """Let the thread end once nothing is waiting."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def give_up(self) -> None:
        """Drop what is not delivered yet, and say how much that is."""
        with self._changed:
            lost = self.pending
            self.given_up = True
            for _ in range(len(self._waiting)):
                self._counters.count("records_dropped")
            self._waiting.clear()
            self._droppable.clear()
            self._changed.notify_all()
        if lost:
            LOGGER.warning("%d records were not delivered", lost)

    def _start(self) -> None:
        """Start the thread unless there is one; whoever calls holds the lock."""
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._run, name="compactuary-records", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # Too many threads, or the process is ending: the next record tries again.
            self._log.tell("no thread", f"Records wait for a thread: {error}.")
        else:
            self._thread = thread

    def _drop_oldest(self) -> None:
        self._counters.count("records_dropped")
        self._log.tell("dropped", f"More than {self._capacity} records wait; the oldest goes.")
        while self._droppable:
            if self._waiting.pop(self._droppable.popleft(), None) is not None:
                return
        self._waiting.popitem(last=False)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._sending = []
                self._changed.notify_all()
                while not self._waiting:
                    if self._closed:
                        self._thread = None
                        return
                    self._changed.wait()
                records = self._sending = self._taken()
            self._deliver_all(records)

    def _taken(self) -> list[Record]:
        """Take the next records to send: one, or what fits into a batch."""
        taken: list[Record] = []
        size = 0
        while self._waiting and len(taken) < (self._size.most if self._batches else 1):
            number = next(iter(self._waiting))
            size += len(self._waiting[number].body)
            if taken and size > MOST_BYTES:
                break
            taken.append(self._waiting.pop(number))
            if self._droppable and self._droppable[0] == number:
                self._droppable.popleft()
        return taken

    def _deliver_all(self, records: list[Record]) -> None:
        """Send records that were taken, in batches that grow smaller where they take too long."""
        begun = 0
        while begun < len(records):
            if begun and self.given_up:
                self._counters.count_more("records_dropped", len(records) - begun)
                return
            part = records[begun : begun + self._size.most]
            left = self._deliver_together(part)
            if left == "smaller":
                continue
            if left == "alone":
                self._deliver_each(part)
            begun += len(part)
            with self._changed:
                self._sending = records[begun:]

    def _deliver_together(self, records: list[Record]) -> _Left:
        """Send a batch, if it is one, and tell what is left to do for its records."""
        try:
            return self._deliver_batch(records) if len(records) > 1 else "alone"
        except Exception as error:  # noqa: BLE001 - the thread must outlive a fault of its own
            self._log.tell(("batch", type(error)), f"A batch met a fault: {error!r}.")
            return "alone"

    def _deliver_each(self, records: list[Record]) -> None:
        together = len(records) > 1
        for record in records:
            if together and self.given_up:
                self._counters.count("records_dropped")
                continue
            try:
                self._deliver(record)
            except Exception as error:  # noqa: BLE001 - as above
                self._counters.count("records_refused")
                self._log.tell(("delivery", type(error)), f"A record was lost: {error!r}.")
            with self._changed:
                self._sending = self._sending[1:]

    def _deliver_batch(self, records: list[Record]) -> _Left:
        """Send records together until the server has them, or takes too long or none that way."""
        request = batch_bytes(self._endpoint, records)
        pause = _FIRST_PAUSE_SECONDS
        while True:
            said = self._connections.exchange(request, time.monotonic() + _SEND_SECONDS)
            outcome = _outcome(said)
            if outcome == "delivered" and isinstance(said, Answered):
                return "nothing" if self._account_for(records, said) else "alone"
            if outcome != "later":
                self._batches = isinstance(said, Unanswered) or said.status not in _NO_SUCH_THING
                return "alone"
            self._counters.count_more("records_retried", len(records))
            self._rest(pause)
            if self.given_up:
                self._counters.count_more("records_dropped", len(records))
                return "nothing"
            if _took_too_long(said):
                self._size.too_slow(len(records))
                return "smaller"
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _account_for(self, records: list[Record], said: Answered) -> bool:
        """Count what became of a batch; False where the server does not tell."""
        refusals = refusals_in(said, len(records))
        if refusals is None:
            return False
        self._size.in_time(len(records))
        self._counters.count_more("records_delivered", len(records) - len(refusals))
        for refusal in refusals:
            self._counters.count("records_refused")
            kind = records[refusal.place].kind
            self._log.tell((kind, "line"), f"The server refused a record ({kind}): {refusal.text}")
        return True

    def _deliver(self, record: Record) -> None:
        """Send a record until the server has it, or will never take it."""
        request = request_bytes(self._endpoint, record.method, record.path, record.body)
        pause, faults = _FIRST_PAUSE_SECONDS, 0
        while True:
            said = self._connections.exchange(request, time.monotonic() + _SEND_SECONDS)
            outcome = _outcome(said)
            if outcome == "delivered":
                self._size.in_time(1)
                self._counters.count("records_delivered")
                return
            faults += outcome == "fault"
            if outcome == "refused" or faults >= _MOST_FAULTS:
                self._counters.count("records_refused")
                self._tell_refused(record, said)
                return
            self._counters.count("records_retried")
            self._rest(pause)
            if self.given_up:
                self._counters.count("records_dropped")
                return
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _tell_refused(self, record: Record, said: Answered | Unanswered) -> None:
        if isinstance(said, Unanswered):
            kind: tuple[Any, ...] = (record.kind, said.code)
            text = said.text
        else:
            kind = (record.kind, said.status)
            text = f"{said.status} {said.body[:300].decode('utf-8', 'replace')}"
        self._log.tell(kind, f"The server refused a record ({record.kind}): {text}")

    def _rest(self, pause_seconds: float) -> None:
        """Wait before the next try, unless somebody is in a hurry."""
        # Many clients of one server that came back must not all come at once.
        until = time.monotonic() + pause_seconds * (0.5 + os.urandom(1)[0] / 512)
        with self._changed:
            while not (self._hurried or self.given_up) and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            self._hurried = False


def _took_too_long(said: Answered | Unanswered) -> bool:
    if isinstance(said, Unanswered):
        return said.code == "timeout"
    return said.status in _TOO_SLOW


def _outcome(said: Answered | Unanswered) -> _Outcome:
    """Return what an answer means for the record that was sent."""
    if isinstance(said, Unanswered):
        return "fault" if said.code == "garbage" else "later"
    if 200 <= said.status < 300:
        return "delivered"
    if said.status in _LATER:
        return "later"
    return "fault" if said.status >= 500 else "refused"


_ALL: WeakSet[Delivery] = WeakSet()


def _flush_at_exit() -> None:
    """Deliver what every client still has, all of them within the longest time one allows."""
    begun = time.monotonic()
    for delivery in list(_ALL):
        left = begun + delivery.exit_seconds - time.monotonic()
        if not (delivery.flush(max(0.0, left)) or delivery.given_up):
            delivery.give_up()


atexit.register(_flush_at_exit)
