"""Ledger → life tables → snapshot: the one place where a snapshot is built."""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import orjson
from sqlalchemy import Connection, Engine

from compactuary.errors import CompactuaryError
from estimator.histogram import MAX_CALLS, Histogram
from estimator.life_table import LifeTable, life_table
from ledger.clock import iso
from ledger.database import reading, writing
from ledger.estimates import Changes, Pace, changes_since
from ledger.histogram import Cell
from ledger.snapshots import (
    StoredSnapshot,
    StoredTable,
    latest_snapshot,
    load_tables,
    store_snapshot,
)
from ledger.versions import current_version
from policy.snapshot import RoleTable, Snapshot

__all__ = ["ALL_ROLES", "Estimates", "Refresher", "build_snapshot"]

#: Name under which the table of all roles together is shown.
ALL_ROLES = "all roles"
#: Ended turns that tell both tool calls and requests before their ratio is believed.
MIN_PACE_TURNS = 5

#: The same table's name among the stored ones, where no role can have it.
PORTFOLIO = ""

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
    places: dict[str, Counter[tuple[int, int, bool]]] = field(default_factory=dict)
    tables: dict[_Key, RoleTable] = field(default_factory=dict)
    stored: dict[_Key, StoredTable] = field(default_factory=dict)
    unsaved: set[_Key] = field(default_factory=set)

    def apply(self, changes: Changes) -> set[_Key]:
        """Take in what changed, and return the (unit, role) pairs it touches."""
        touched: set[_Key] = set()
        for cell, count in changes.cells.items():
            key = (cell.unit, cell.role)
            own = self.cells.setdefault(key, {})
            self._shift(cell, count - own.get(cell, 0))
            own[cell] = count
            touched.add(key)
        opened: dict[_Key, Counter[Cell]] = {}
        for cell, count in changes.open_cells.items():
            opened.setdefault((cell.unit, cell.role), Counter())[cell] = count
        for key in opened.keys() | self.open_cells.keys():
            now, before = opened.get(key, Counter()), self.open_cells.get(key, Counter())
            if now != before:
                touched.add(key)
                for cell in now | before:
                    self._shift(cell, now[cell] - before[cell])
        self.open_cells = opened
        self.paces |= changes.paces
        paced = {role for role, _ in changes.paces}
        touched |= {key for key in self.tables if key[1] in paced}
        self.version = changes.version
        return touched

    def _shift(self, cell: Cell, change: int) -> None:
        """Keep the cells of all roles together, so that they need not be added up each time."""
        places = self.places.setdefault(cell.unit, Counter())
        places[_within_horizon(cell)] += change

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
            own = chain(self.cells.get(key, {}).items(), self.open_cells.get(key, {}).items())
            histogram = Histogram.from_rows(
                (*_within_horizon(cell), count) for cell, count in own if count
            )
            table = None
            if histogram.ends:
                table = role_table(role, unit, life_table(histogram), self.pace(role))
            self._keep(key, table)
        for unit in {unit for unit, _ in touched}:
            self._keep((unit, PORTFOLIO), self._portfolio(unit))

    def _portfolio(self, unit: str) -> RoleTable | None:
        """Return the table of all roles together, or None where no turn has ended yet."""
        places = self.places.get(unit, Counter())
        whole = Histogram.from_rows((*place, count) for place, count in places.items() if count)
        if not whole.ends:
            return None
        return role_table(ALL_ROLES, unit, life_table(whole), self.pace(None))

    def _keep(self, key: _Key, table: RoleTable | None) -> None:
        """Take a table, with its bytes and their hash, or forget it."""
        self.tables.pop(key, None)
        self.stored.pop(key, None)
        if table is not None:
            payload = orjson.dumps(table.to_payload())
            self.tables[key] = table
            self.stored[key] = StoredTable(hashlib.sha256(payload).hexdigest(), payload)
            self.unsaved.add(key)


def _within_horizon(cell: Cell) -> tuple[int, int, bool]:
    """Return entry, exit and end of a cell; a turn longer than any life table is cut at its end.

    One absurd turn must not keep every role's table from being made.
    """
    if cell.exit <= MAX_CALLS:
        return cell.entry, cell.exit, cell.ended
    return min(cell.entry, MAX_CALLS), MAX_CALLS, False


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
    estimates.estimate(estimates.apply(changes_since(connection, estimates.version)))
    digests = {key: table.digest for key, table in estimates.stored.items()}
    return snapshot_of(estimates.version, built_ms, estimates.tables, digests)


def snapshot_of(
    version: int, built_ms: int, tables: Mapping[_Key, RoleTable], digests: Mapping[_Key, str]
) -> Snapshot:
    """Return a snapshot of tables that are named by unit and role."""
    by_unit: dict[str, dict[str, RoleTable]] = {}
    for (unit, role), table in sorted(tables.items()):
        if role != PORTFOLIO:
            by_unit.setdefault(unit, {})[role] = table
    portfolio = {unit: table for (unit, role), table in tables.items() if role == PORTFOLIO}
    return Snapshot.of(version, iso(built_ms) or "", by_unit, portfolio, digests)


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
        self._tables: dict[_Key, RoleTable] = {}
        self._digests: dict[_Key, str] = {}
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
        except Exception as error:  # noqa: BLE001 - any fault is told, and none may end the thread
            ours = isinstance(error, CompactuaryError)
            told = str(error) if ours else f"{type(error).__name__}: {error}"
            # What was left half-changed is made again from the ledger.
            self._estimates = Estimates()
            self._tables, self._digests = {}, {}
            self.state = replace(self.state, error=told, checked_ms=self._now_ms())

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
            if self.state.built_ms is not None and version == self.state.snapshot.version:
                self.state = replace(self.state, checked_ms=now_ms, error=None)
                return
            stored = latest_snapshot(connection)
            if stored is not None and stored.version == version:
                self._take(self._loaded(connection, stored), stored.built_ms)
                return
            snapshot = build_snapshot(connection, self._estimates, now_ms)
        self._tables = dict(self._estimates.tables)
        self._digests = {key: table.digest for key, table in self._estimates.stored.items()}
        self._take(snapshot, now_ms)
        self._store(snapshot, now_ms)

    def _loaded(self, connection: Connection, stored: StoredSnapshot) -> Snapshot:
        """Return the stored snapshot, reading only the tables this worker does not have."""
        self._digests, payloads = load_tables(connection, self._digests)
        tables = {key: table for key, table in self._tables.items() if key in self._digests}
        for key, payload in payloads.items():
            tables[key] = RoleTable.from_payload(orjson.loads(payload))
        self._tables = tables
        return snapshot_of(stored.version, stored.built_ms, tables, self._digests)

    def _take(self, snapshot: Snapshot, built_ms: int) -> None:
        self.state = RefreshState(
            snapshot, built_ms, self._now_ms(), refreshes=self.state.refreshes + 1
        )

    def _store(self, snapshot: Snapshot, built_ms: int) -> None:
        changed = {
            key: self._estimates.stored[key]
            for key in self._estimates.unsaved
            if key in self._estimates.stored
        }
        with writing(self._engine) as connection:
            store_snapshot(
                connection,
                StoredSnapshot(snapshot.version, built_ms, snapshot.content_hash),
                self._digests,
                changed,
            )
        # A snapshot that another worker outran leaves its tables to be stored with the next one.
        self._estimates.unsaved.clear()
