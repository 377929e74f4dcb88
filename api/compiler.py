"""The compiler: a thread that compiles rules into thresholds, for what questions ask."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from compactuary.errors import CompactuaryError
from policy.prices import PriceBook
from policy.question import Question
from policy.snapshot import Snapshot
from policy.threshold_book import Compiled, ThresholdKey, compile_thresholds

__all__ = ["Compiler", "CompilerState"]

#: Price sets and roles kept compiled; what was first asked for longest ago goes first.
MOST_KEYS = 1_000
#: Thresholds follow the life tables at least so many seconds apart: one turn moves them little.
SECONDS_BETWEEN = 30.0


@dataclass(frozen=True, slots=True)
class CompilerState:
    """How the compiler fares; replaced as a whole, never changed."""

    keys: int = 0
    version: int | None = None
    compiled_ms: int | None = None
    error: str | None = None


@dataclass(slots=True)
class _Entry:
    question: Question
    compiled: Compiled | None = None
    asked: bool = True


@dataclass(slots=True)
class Compiler:
    """Keeps thresholds for the roles and prices that are asked about, in a thread of its own.

    The first question of a kind finds none and is answered by 'reorder'; the thread then compiles
    what it asked for, and again whenever a newer snapshot is there.

    Parameters
    ----------
    snapshot : callable
        Returns the worker's snapshot.
    price_book : PriceBook
    seconds : float
        Least time between two compilations for newer snapshots.
    """

    snapshot: Callable[[], Snapshot]
    price_book: PriceBook
    seconds: float = SECONDS_BETWEEN
    state: CompilerState = field(default_factory=CompilerState)
    _entries: dict[ThresholdKey, _Entry] = field(default_factory=dict)
    _wake: threading.Event = field(default_factory=threading.Event)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to compile in the background."""
        self._thread = threading.Thread(target=self._run, name="compiler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopped.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()

    def find(self, key: ThresholdKey, question: Question) -> Compiled | None:
        """Return the thresholds of a key; those not there yet are compiled for the next time."""
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(_sample(question))
            self._wake.set()
            return None
        entry.asked = True
        return entry.compiled

    def compile(self, key: ThresholdKey, question: Question) -> Compiled:
        """Return the thresholds of a key, compiled now if nobody has; not for the event loop."""
        entry = self._entries.setdefault(key, _Entry(_sample(question)))
        if entry.compiled is None:
            entry.compiled = self._compiled(key, entry.question, self.snapshot())
        return entry.compiled

    def refresh(self) -> None:
        """Compile what is missing, and all that is asked for where the snapshot is newer."""
        snapshot = self.snapshot()
        newer = self.state.version != snapshot.version
        error = None
        for key, entry in list(self._entries.items()):
            if self._stopped.is_set():
                return
            if entry.compiled is not None and not (newer and entry.asked):
                continue
            entry.asked = False
            try:
                entry.compiled = self._compiled(key, entry.question, snapshot)
            except CompactuaryError as failure:
                error = str(failure)
        self._forget()
        now_ms = time.time_ns() // 1_000_000
        self.state = CompilerState(len(self._entries), snapshot.version, now_ms, error)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopped.is_set():
            woken = self._wake.wait(1.0)
            self._wake.clear()
            stale = self.snapshot().version != self.state.version
            if self._stopped.is_set() or not (woken or (stale and time.monotonic() >= due)):
                continue
            self._guarded_refresh()
            due = time.monotonic() + self.seconds

    def _guarded_refresh(self) -> None:
        try:
            self.refresh()
        except Exception as failure:  # noqa: BLE001 - any fault is told, none may end the thread
            self.state = replace(self.state, error=f"{type(failure).__name__}: {failure}")

    def _compiled(self, key: ThresholdKey, question: Question, snapshot: Snapshot) -> Compiled:
        now = datetime.now(UTC)
        made = compile_thresholds(key.rule, question, snapshot, self.price_book, at=now)
        return Compiled(made, snapshot.version)

    def _forget(self) -> None:
        for key in list(self._entries)[: max(0, len(self._entries) - MOST_KEYS)]:
            del self._entries[key]


def _sample(question: Question) -> Question:
    """Return a question like this one, without what belongs to its one request."""
    return replace(question, turn_id=None, session_id=None, explain=False, quotes=False)
