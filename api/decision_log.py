"""The decision log's writer: a bounded queue, and one thread that empties it into the ledger."""

import asyncio
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import DataError, IntegrityError

from compactuary.errors import LedgerError
from ledger.database import BUSY_SECONDS, writing
from ledger.decisions import DecisionMade, write_decisions
from policy.answer import Answer
from policy.question import Question

__all__ = ["DecisionLog", "LogState", "decision_made"]

#: Rows of one transaction, and how long the first of them waits for others: a transaction costs as
#: much as thirty rows, and each one may make an answer wait for the interpreter.
BATCH_ROWS = 500
BATCH_SECONDS = 0.2
#: Between two attempts on a database that fails: doubled from the first to the second.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
#: What a shutdown gives the last rows; how long an answer waits for room, and how often it looks.
DRAIN_SECONDS = 10.0
LAST_ATTEMPTS = 3
ROOM_CHECK_SECONDS = 0.01
ROOM_SECONDS = float(BUSY_SECONDS)

_LOGGER = logging.getLogger(__name__)


def decision_made(question: Question, answer: Answer, at_ms: int) -> DecisionMade:
    """Return what the log keeps of an answer: numbers, names and codes, and no text.

    Parameters
    ----------
    question, answer : Question, Answer
    at_ms : int
        When it was asked.
    """
    basis, versions = answer.basis, answer.versions
    return DecisionMade(
        answer.decision_id,
        at_ms,
        question.session_id,
        question.turn_id,
        question.role,
        question.model,
        question.unit,
        question.calls,
        question.calls if question.unit == "requests" else None,
        question.context_tokens,
        answer.decision,
        answer.would_decide,
        answer.rule,
        answer.reason.code,
        answer.at,
        answer.mode,
        answer.threshold_tokens,
        answer.expected_remaining_calls,
        answer.expected_remaining_requests,
        answer.continue_probability,
        answer.probability_pays,
        answer.break_even_calls,
        answer.cost,
        answer.saving_per_call,
        answer.expected_net,
        basis.source,
        versions.estimate,
        versions.policy,
        versions.prices,
    )


@dataclass(frozen=True, slots=True)
class LogState:
    """How the log fares.

    Parameters
    ----------
    queued, capacity : int
        Rows that wait, and how many may.
    durability : {'drop', 'block'}
    written : int
        Rows that this worker has handed to the database.
    dropped : int
        Rows lost because the queue was full.
    refused : int
        Rows the database refused for what they hold.
    error : str or None
        Why the last attempt failed; None once one succeeds.
    """

    queued: int
    capacity: int
    durability: str
    written: int
    dropped: int
    refused: int
    error: str | None

    def as_payload(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {name: getattr(self, name) for name in LogState.__slots__}


class DecisionLog:
    """Takes decisions at the cost of one append, and writes them in batches from its own thread.

    Rows that the database does not take are tried again, with pauses that grow to 5 s, for as long
    as the queue holds them. A full queue loses its oldest rows, which are counted; with `block`
    answers wait for room instead, and only after 30 s go on at the oldest rows' cost.

    Parameters
    ----------
    engine : Engine
    capacity : int
        Rows that may wait.
    durability : {'drop', 'block'}
    """

    def __init__(self, engine: Engine, capacity: int, durability: str = "drop") -> None:
        self._engine = engine
        self._capacity = capacity
        self._durability = durability
        self._rows: deque[DecisionMade] = deque()
        self._in_hand = 0
        self._written = 0
        self._dropped = 0
        self._refused = 0
        self._error: str | None = None
        self._counting = threading.Lock()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="decision-log", daemon=True)

    @property
    def state(self) -> LogState:
        """How the log fares now."""
        return LogState(
            len(self._rows) + self._in_hand,
            self._capacity,
            self._durability,
            self._written,
            self._dropped,
            self._refused,
            self._error,
        )

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def offer(self, made: DecisionMade) -> bool:
        """Take a decision; False where there is no room, and answers are to wait for it."""
        if len(self._rows) + self._in_hand >= self._capacity:
            if self._durability == "block":
                return False
            self._make_room()
        self._append(made)
        return True

    async def wait(self, made: DecisionMade) -> None:
        """Take a decision once there is room; other answers go on meanwhile."""
        deadline = time.monotonic() + ROOM_SECONDS
        while not self.offer(made):
            if time.monotonic() > deadline:
                self._make_room()
                self._append(made)
                return
            await asyncio.sleep(ROOM_CHECK_SECONDS)

    def stop(self) -> None:
        """Write what is left, and end the thread; what can't be written is lost, and told."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(DRAIN_SECONDS)
        lost = len(self._rows) + self._in_hand
        if lost:
            _LOGGER.warning("%d decisions could not be logged: %s", lost, self._error)

    def _append(self, made: DecisionMade) -> None:
        self._rows.append(made)
        if not self._wake.is_set():
            self._wake.set()

    def _make_room(self) -> None:
        """Drop the oldest rows, but none that is being written, until one more fits."""
        with self._counting:
            while self._rows and len(self._rows) + self._in_hand >= self._capacity:
                try:
                    self._rows.popleft()
                except IndexError:  # the writer was faster
                    break
                self._dropped += 1

    def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopped.is_set():
            self._wake.wait()
            self._stopped.wait(BATCH_SECONDS)
            self._wake.clear()
            while self._rows and not self._stopped.is_set():
                if self._write_some():
                    pause = FIRST_PAUSE_SECONDS
                else:
                    self._stopped.wait(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        self._drain()

    def _drain(self) -> None:
        """Write what is left when the service stops; a database that stays away is given up."""
        deadline, attempts = time.monotonic() + DRAIN_SECONDS, LAST_ATTEMPTS
        while self._rows and attempts and time.monotonic() < deadline:
            if not self._write_some():
                attempts -= 1
                time.sleep(FIRST_PAUSE_SECONDS)

    def _write_some(self) -> bool:
        """Write a batch; where the database fails it goes back to the head of the queue."""
        batch = self._take()
        try:
            self._write(batch)
        except Exception as error:  # noqa: BLE001 - any fault is told, and none may end the thread
            if _is_about_rows(error):
                self._write_each(batch)
                return True
            self._error = _told(error)
            # In this order no row is ever uncounted, so that no room seems to be where none is.
            self._rows.extendleft(reversed(batch))
            self._in_hand = 0
            return False
        self._done(len(batch))
        return True

    def _take(self) -> list[DecisionMade]:
        batch: list[DecisionMade] = []
        while len(batch) < BATCH_ROWS:
            self._in_hand = len(batch) + 1
            try:
                batch.append(self._rows.popleft())
            except IndexError:  # the queue is empty, or its oldest row was dropped meanwhile
                break
        self._in_hand = len(batch)
        return batch

    def _write(self, batch: list[DecisionMade]) -> None:
        with writing(self._engine) as connection:
            write_decisions(connection, batch)

    def _write_each(self, batch: list[DecisionMade]) -> None:
        """Write rows one by one, and leave out those that the database refuses."""
        refused = 0
        for index, made in enumerate(batch):
            try:
                self._write([made])
            except Exception as error:  # noqa: BLE001 - as above
                self._error = _told(error)
                if not _is_about_rows(error):
                    self._rows.extendleft(reversed(batch[index:]))
                    batch = batch[:index]
                    break
                refused += 1
        self._refused += refused
        self._in_hand = 0
        self._written += len(batch) - refused

    def _done(self, rows: int) -> None:
        self._in_hand = 0
        self._written += rows
        self._error = None


def _is_about_rows(error: Exception) -> bool:
    """Tell a fault of a row's values from one of the database."""
    if isinstance(error, LedgerError):
        return isinstance(error.__cause__, DataError | IntegrityError)
    return isinstance(error, ValueError | OverflowError | TypeError)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, LedgerError) else f"{type(error).__name__}: {error}"
