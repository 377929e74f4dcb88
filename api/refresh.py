"""The refresher: a thread that keeps a worker's snapshot as new as the ledger."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import orjson
from sqlalchemy import Connection, Engine

from api.drift_watch import watch_drift
from api.estimates import Estimates, build_snapshot, snapshot_of
from compactuary.errors import CompactuaryError
from ledger.builder import sole_builder
from ledger.database import reading, writing
from ledger.snapshots import StoredSnapshot, latest_snapshot, load_tables, store_snapshot
from ledger.versions import current_version
from policy.parameters import Parameters
from policy.role_table import RoleTable
from policy.snapshot import Snapshot, TableKey

__all__ = ["RefreshState", "Refresher"]

_LOGGER = logging.getLogger(__name__)
#: Between two looks for the snapshot that another worker is building, and how long it is waited
#: for: a process that hangs must not keep all others behind.
BUSY_SECONDS = 0.05
PATIENCE_SECONDS = 15.0
#: A rest after each refresh, in times of what that took, so that refreshing has a fifth of a
#: worker's time at most, however often turns end; and the longest one, after a database's hiccup.
REST = 4.0
LONGEST_REST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RefreshState:
    """What the refresher has, and how it fares; replaced as a whole, never changed."""

    snapshot: Snapshot
    built_ms: int | None = None
    checked_ms: int | None = None
    error: str | None = None
    refreshes: int = 0
    drift_alarms: int = 0


class Refresher:
    """Keeps ``state.snapshot`` as new as the ledger, in a thread of its own.

    A worker that finds the ledger ahead of the stored snapshot builds and stores the next one;
    the others wait for it, and load it. The last good snapshot stays when the database fails.

    Parameters
    ----------
    engine : Engine
    seconds : float
        How often the version row is looked at.
    now_ms : callable
        The clock.
    on_refresh : callable, optional
        Called after each snapshot with how it was made (``built`` or ``loaded``), when that began
        (nanoseconds since 1970) and its version.
    """

    def __init__(
        self,
        engine: Engine,
        seconds: float,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        on_refresh: Callable[[str, int, int], None] | None = None,
    ) -> None:
        # Before the ledger has been read, answers rest on the standard table alone.
        self.state = RefreshState(Estimates().snapshot(0))
        self._engine = engine
        self._seconds = seconds
        self._now_ms = now_ms
        self._on_refresh = on_refresh
        self._estimates = Estimates()
        self._tables: dict[TableKey, RoleTable] = {}
        self._parameters: dict[TableKey, Parameters] = {}
        self._digests: dict[TableKey, str] = {}
        self._stored_version: int | None = None
        self._waiting_since: float | None = None
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="refresher", daemon=True)

    def start(self) -> None:
        """Have the first snapshot at once, then go on in the background."""
        self.refresh()
        while self._waiting_since is not None and self.state.error is None:
            time.sleep(BUSY_SECONDS)
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
            self._watch()
        except Exception as error:  # noqa: BLE001 - any fault is told, and none may end the thread
            ours = isinstance(error, CompactuaryError)
            told = str(error) if ours else f"{type(error).__name__}: {error}"
            if self.state.error is None:
                _LOGGER.warning("the ledger can't be followed: %s", told)
            self.state = replace(self.state, error=told, checked_ms=self._now_ms())

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(self._seconds if self._waiting_since is None else BUSY_SECONDS)
            self._wake.clear()
            if not self._stopped.is_set():
                began = time.monotonic()
                self.refresh()
                took = time.monotonic() - began
                self._stopped.wait(min(REST * took, LONGEST_REST_SECONDS))

    def _follow(self) -> None:
        """Have the snapshot of the ledger's version, and have it stored."""
        now_ms, began_ns = self._now_ms(), time.time_ns()
        with reading(self._engine) as connection:
            version, how = self._caught_up(connection)
        if how is None:
            version, how = self._built_alone(now_ms)
        if how is None:
            return
        self._waiting_since = None
        if self._stored_version != version:
            self._store(self.state.snapshot, self.state.built_ms or now_ms)
        self.state = replace(self.state, checked_ms=now_ms, error=None)
        if how != "kept" and self._on_refresh is not None:
            self._on_refresh(how, began_ns, version)

    def _caught_up(self, connection: Connection) -> tuple[int, str | None]:
        """Return the ledger's version, and how this worker has its snapshot; None if it has not."""
        version = current_version(connection)
        if self.state.built_ms is not None and version == self.state.snapshot.version:
            return version, "kept"
        stored = latest_snapshot(connection)
        if stored is None or stored.version != version:
            return version, None
        self._take(self._loaded(connection, stored), stored.built_ms)
        self._stored_version = version
        return version, "loaded"

    def _built_alone(self, now_ms: int) -> tuple[int, str | None]:
        """Build the next snapshot and store it, unless another worker is at it: then wait for that.

        A worker that has waited too long for another's builds its own.
        """
        with sole_builder(self._engine) as connection:
            if connection is not None:
                return self._build(connection, now_ms)
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = now
        if now - self._waiting_since < PATIENCE_SECONDS:
            return 0, None
        with reading(self._engine) as connection:
            return self._build(connection, now_ms)

    def _build(self, connection: Connection, now_ms: int) -> tuple[int, str | None]:
        # Another one may have stored it since this worker looked.
        version, how = self._caught_up(connection)
        if how is None:
            if version < self._estimates.version:
                # The database was put back to an earlier state, whose cells are other ones.
                self._estimates = Estimates()
            self._take(self._built(connection, now_ms), now_ms)
            how = "built"
            # While nobody else may build, so that they find it.
            self._store(self.state.snapshot, now_ms)
        return version, how

    def _watch(self) -> None:
        """Show the detectors what this worker's snapshots brought; a fault is tried again."""
        if self._estimates.touched_roles:
            alarms = watch_drift(self._engine, self._estimates.touched_roles)
            self.state = replace(self.state, drift_alarms=self.state.drift_alarms + alarms)
            self._estimates.touched_roles.clear()

    def _built(self, connection: Connection, now_ms: int) -> Snapshot:
        try:
            snapshot = build_snapshot(connection, self._estimates, now_ms)
        except Exception:
            # What was left half-changed is made again from the ledger.
            self._estimates = Estimates()
            raise
        self._tables = dict(self._estimates.tables)
        self._parameters = dict(self._estimates.learning.parameters)
        self._digests = {key: table.digest for key, table in self._estimates.stored.items()}
        return snapshot

    def _loaded(self, connection: Connection, stored: StoredSnapshot) -> Snapshot:
        """Return the stored snapshot, reading only the tables this worker does not have."""
        digests, payloads = load_tables(connection, self._digests)
        self._digests = {TableKey(*place): digest for place, digest in digests.items()}
        tables = {key: table for key, table in self._tables.items() if key in self._digests}
        known = {key: at for key, at in self._parameters.items() if key in self._digests}
        for place, payload in payloads.items():
            key = TableKey(*place)
            if key.shelf.startswith("parameters"):
                known[key] = Parameters.from_payload(orjson.loads(payload))
            else:
                tables[key] = RoleTable.from_payload(orjson.loads(payload))
        self._tables, self._parameters = tables, known
        return snapshot_of(stored.version, stored.built_ms, tables, self._digests, known)

    def _take(self, snapshot: Snapshot, built_ms: int) -> None:
        before = self.state
        self.state = RefreshState(
            snapshot, built_ms, self._now_ms(), None, before.refreshes + 1, before.drift_alarms
        )

    def _store(self, snapshot: Snapshot, built_ms: int) -> None:
        with writing(self._engine) as connection:
            store_snapshot(
                connection,
                StoredSnapshot(snapshot.version, built_ms, snapshot.content_hash),
                self._estimates.stored,
            )
        self._stored_version = snapshot.version
