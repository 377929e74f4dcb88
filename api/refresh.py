"""Ledger → life tables → snapshot: the one place where a snapshot is built."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import orjson
from sqlalchemy import Connection, Engine

from compactuary.errors import CompactuaryError
from estimator.histogram import Histogram, merge
from estimator.life_table import LifeTable, life_table
from ledger.clock import iso
from ledger.database import reading, writing
from ledger.estimates import Changes, Pace, changes_since
from ledger.histogram import Cell
from ledger.snapshots import (
    StoredSnapshot,
    latest_snapshot,
    latest_snapshot_version,
    store_snapshot,
)
from ledger.versions import current_version
from policy.snapshot import RoleTable, Snapshot

__all__ = ["ALL_ROLES", "Estimates", "Refresher", "build_snapshot"]

#: Name under which the table of all roles together is shown.
ALL_ROLES = "all roles"
#: Ended turns that tell both tool calls and requests before their ratio is believed.
MIN_PACE_TURNS = 5

_Key = tuple[str, str]


@dataclass(slots=True)
class Estimates:
    """Histograms and tables of the roles as of ``version``; only what changed is computed again.

    Parameters
    ----------
    version : int
        Of the ledger that the tables were made from; 0 before the first reading.
    """

    version: int = 0
    cells: dict[_Key, dict[Cell, int]] = field(default_factory=dict)
    open_cells: dict[_Key, Counter[Cell]] = field(default_factory=dict)
    paces: dict[tuple[str, str], Pace] = field(default_factory=dict)
    histograms: dict[_Key, Histogram] = field(default_factory=dict)
    tables: dict[_Key, RoleTable] = field(default_factory=dict)

    def apply(self, changes: Changes) -> set[_Key]:
        """Take in what changed, and return the (unit, role) pairs it touches."""
        touched: set[_Key] = set()
        for cell, count in changes.cells.items():
            key = (cell.unit, cell.role)
            self.cells.setdefault(key, {})[cell] = count
            touched.add(key)
        opened: dict[_Key, Counter[Cell]] = {}
        for cell, count in changes.open_cells.items():
            opened.setdefault((cell.unit, cell.role), Counter())[cell] = count
        touched |= {
            key
            for key in opened.keys() | self.open_cells.keys()
            if opened.get(key) != self.open_cells.get(key)
        }
        self.open_cells = opened
        self.paces |= changes.paces
        paced = {role for role, _ in changes.paces}
        touched |= {key for key in self.tables if key[1] in paced}
        self.version = changes.version
        return touched

    def pace(self, role: str | None) -> float | None:
        """Return a role's requests per tool call, of all roles for None, or None if unknown."""
        own = sum((pace for (name, _), pace in self.paces.items() if role in (None, name)), Pace())
        if own.turns < MIN_PACE_TURNS or not own.tool_calls:
            return None
        return own.requests / own.tool_calls

    def estimate(self, touched: set[_Key]) -> None:
        """Make the tables of the pairs named again."""
        for unit, role in touched:
            key = (unit, role)
            rows: Counter[Cell] = Counter(self.cells.get(key, {}))
            rows.update(self.open_cells.get(key, Counter()))
            histogram = Histogram.from_rows(
                (cell.entry, cell.exit, cell.ended, count) for cell, count in rows.items() if count
            )
            self.histograms[key] = histogram
            self.tables.pop(key, None)
            if histogram.ends:
                table = life_table(histogram)
                self.tables[key] = role_table(role, unit, table, self.pace(role))

    def portfolio(self, unit: str) -> RoleTable | None:
        """Return the table of all roles together, or None where no turn has ended yet."""
        parts = [histogram for (of, _), histogram in self.histograms.items() if of == unit]
        whole = merge(*parts) if parts else None
        if whole is None or not whole.ends:
            return None
        return role_table(ALL_ROLES, unit, life_table(whole), self.pace(None))


def role_table(role: str, unit: str, table: LifeTable, pace: float | None) -> RoleTable:
    """Return a life table as the snapshot keeps it."""
    return RoleTable(
        role=role,
        unit=unit,
        turns=int(table.turns_with_a_call),
        tail_age=table.tail_age,
        at_risk=tuple(table.at_risk.tolist()),
        ends=tuple(table.ends.tolist()),
        expected=tuple(table.mean.tolist()),
        lower=tuple(table.lower.tolist()),
        upper=tuple(table.upper.tolist()),
        survival=tuple(table.survival.tolist()),
        continue_probability=tuple(table.continue_probability.tolist()),
        level=table.level,
        requests_per_call=pace,
    )


def build_snapshot(connection: Connection, estimates: Estimates, built_ms: int) -> Snapshot:
    """Bring the estimates up to the ledger's version, and return them as a snapshot.

    Costs what changed, not what the ledger holds: no closed turn is read again.
    """
    touched = estimates.apply(changes_since(connection, estimates.version))
    estimates.estimate(touched)
    tables: dict[str, dict[str, RoleTable]] = {}
    for (unit, role), table in sorted(estimates.tables.items()):
        tables.setdefault(unit, {})[role] = table
    units = {unit for unit, _ in estimates.histograms}
    whole = {unit: estimates.portfolio(unit) for unit in sorted(units)}
    portfolio = {unit: table for unit, table in whole.items() if table is not None}
    return Snapshot.of(estimates.version, iso(built_ms) or "", tables, portfolio)


@dataclass(frozen=True, slots=True)
class RefreshState:
    """What the refresher has, and how it fares; replaced as a whole, never changed."""

    snapshot: Snapshot
    built_ms: int | None = None
    checked_ms: int | None = None
    error: str | None = None
    refreshes: int = 0


EMPTY = Snapshot.of(0, "", {}, {})


class Refresher:
    """Keeps ``state.snapshot`` as new as the ledger, in a thread of its own.

    A worker that finds the ledger ahead of the stored snapshot builds and stores the next one;
    the others load it. The last good snapshot stays when the database fails.

    Parameters
    ----------
    engine : Engine
    seconds : float
        How often the version row is looked at.
    now_ms : callable
        The clock.
    """

    def __init__(
        self,
        engine: Engine,
        seconds: float,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.state = RefreshState(EMPTY)
        self._engine = engine
        self._seconds = seconds
        self._now_ms = now_ms
        self._estimates = Estimates()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refresher", daemon=True)

    def start(self) -> None:
        """Make the first snapshot at once, then go on in the background."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        """Look at the ledger now instead of when the time is up."""
        self._wake.set()

    def refresh(self) -> None:
        """Load or build the snapshot of the ledger's version; a failure is kept in ``state``."""
        try:
            self._follow()
        except CompactuaryError as error:
            self.state = replace(self.state, error=str(error), checked_ms=self._now_ms())

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(self._seconds)
            self._wake.clear()
            if not self._stopped.is_set():
                self.refresh()

    def _follow(self) -> None:
        now_ms = self._now_ms()
        with reading(self._engine) as connection:
            version = current_version(connection)
            known = self.state.snapshot.version
            if self.state.built_ms is not None and version == known:
                self.state = replace(self.state, checked_ms=now_ms, error=None)
                return
            if latest_snapshot_version(connection) == version:
                stored = latest_snapshot(connection)
                if stored is not None and stored.version == version:
                    snapshot = Snapshot.from_payload(orjson.loads(stored.payload))
                    self._take(snapshot, stored.built_ms)
                    return
            snapshot = build_snapshot(connection, self._estimates, now_ms)
        self._take(snapshot, now_ms)
        self._store(snapshot, now_ms)

    def _take(self, snapshot: Snapshot, built_ms: int) -> None:
        self.state = RefreshState(
            snapshot, built_ms, self._now_ms(), refreshes=self.state.refreshes + 1
        )

    def _store(self, snapshot: Snapshot, built_ms: int) -> None:
        payload = orjson.dumps(snapshot.to_payload())
        with writing(self._engine) as connection:
            store_snapshot(
                connection,
                StoredSnapshot(snapshot.version, built_ms, snapshot.content_hash, payload),
            )
