"""Ledger → life tables and parameters → snapshot: the one place where a snapshot is built."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import orjson
from sqlalchemy import Connection

from api.decisive import Lives, decisive_tables, standards
from api.learning import LEARNED_TURNS, Learning
from api.role_tables import ALL_ROLES, raw_table
from estimator.decay import DEFAULT_HALF_LIFE, weights
from estimator.histogram import MAX_CALLS, Histogram
from estimator.life_table import LifeTable, life_table
from ledger.clock import iso
from ledger.estimates import Changes, Pace, changes_since
from ledger.histogram import UNITS, Cell, Place
from ledger.recent import RecentTurn, recent_turns
from ledger.snapshots import StoredTable
from policy.parameters import Parameters
from policy.role_table import RoleTable
from policy.snapshot import Snapshot, TableKey

__all__ = [
    "ALL_ROLES",
    "RECENT_TURNS",
    "Estimates",
    "build_snapshot",
    "learned_pace",
    "snapshot_of",
    "within_horizon",
]

#: Ended turns that tell both tool calls and requests before their ratio is believed.
MIN_PACE_TURNS = 5
#: Beyond seven half-lives all turns together weigh less than a hundredth: they are not read again.
RECENT_TURNS = int(7 * DEFAULT_HALF_LIFE)

_Key = tuple[str, str]


@dataclass(slots=True)
class Estimates:
    """Histograms, tables and parameters of the roles as of ``version``.

    The raw tables of roles that changed are made again, and every table that decides, because they
    all borrow from those.

    Parameters
    ----------
    version : int
        Of the ledger that the tables were made from; 0 before the first reading.
    """

    version: int = 0
    cells: dict[_Key, dict[Cell, int]] = field(default_factory=dict)
    open_cells: dict[_Key, Counter[Cell]] = field(default_factory=dict)
    paces: dict[str, dict[str, Pace]] = field(default_factory=dict)
    places: dict[str, Counter[tuple[int, int, bool]]] = field(default_factory=dict)
    lives: dict[str, Lives] = field(default_factory=dict)
    tables: dict[TableKey, RoleTable] = field(default_factory=dict)
    learning: Learning = field(default_factory=Learning)
    stored: dict[TableKey, StoredTable] = field(default_factory=dict)
    touched_roles: set[str] = field(default_factory=set)

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
        for (role, model), pace in changes.paces.items():
            self.paces.setdefault(role, {})[model] = pace
        paced = {role for role, _ in changes.paces}
        touched |= {(key.unit, key.role) for key in self.tables if key.role in paced}
        self.version = changes.version
        return touched

    def _shift(self, cell: Cell, change: int) -> None:
        """Keep the cells of all roles together, so that they need not be added up each time."""
        places = self.places.setdefault(cell.unit, Counter())
        places[within_horizon((cell.entry, cell.exit, cell.ended))] += change

    def pace(self, role: str | None) -> float | None:
        """Return a role's requests per tool call, of all roles for None, or None if unknown."""
        if role is not None:
            return learned_pace(self.paces.get(role, {}).values())
        return learned_pace(pace for models in self.paces.values() for pace in models.values())

    def estimate(self, touched: Iterable[_Key], recent: Callable[[str], list[RecentTurn]]) -> None:
        """Make the tables again that the pairs named touch.

        Parameters
        ----------
        recent : callable
            ``role -> turns``, its latest, oldest first.
        """
        touched = set(touched)
        roles = {role for _, role in touched}
        for unit, role in touched:
            histogram = Histogram.from_rows(self._rows(unit, role))
            self._keep(TableKey("raw", unit, role), self._raw(role, unit, histogram))
        for role in roles:
            turns = recent(role)
            for unit in UNITS:
                decayed = _decayed_lives(turns, unit)
                counts = {model: self._on_model(unit, role, model) for model in decayed if model}
                self.lives.setdefault(unit, Lives()).take(role, decayed, counts)
        for unit in {unit for unit, _ in touched}:
            places = self.places.get(unit, Counter())
            whole = Histogram.from_rows((*place, count) for place, count in places.items() if count)
            self._keep(TableKey("portfolio", unit), self._raw(None, unit, whole))
        self.touched_roles |= roles
        decided = {key.unit for key in self.tables if key.shelf == "fallback"}
        # A role's turns are weighed by their order, and a change in one unit may move it in both.
        for unit in UNITS if touched else set(UNITS) - decided:
            self._decide(unit)

    def _rows(
        self, unit: str, role: str, model: str | None = None
    ) -> Iterator[tuple[int, int, bool, int]]:
        """Yield the role's cells, those of one model if it is named, as rows of a histogram."""
        own = chain(
            self.cells.get((unit, role), {}).items(),
            self.open_cells.get((unit, role), {}).items(),
        )
        for cell, count in own:
            if count and model in (None, cell.model):
                yield *within_horizon((cell.entry, cell.exit, cell.ended)), count

    def _on_model(self, unit: str, role: str, model: str) -> LifeTable:
        return life_table(Histogram.from_rows(self._rows(unit, role, model)))

    def _raw(self, role: str | None, unit: str, histogram: Histogram) -> RoleTable | None:
        if not histogram.ends:
            return None
        return raw_table(role or ALL_ROLES, unit, life_table(histogram), self.pace(role))

    def _decide(self, unit: str) -> None:
        """Make the tables that decide: decayed, and blended with what they borrow from."""
        tables = decisive_tables(unit, self.lives.get(unit, Lives()), self.tables, self.pace)
        gone = [
            key
            for key in self.tables
            if key.unit == unit and key.shelf in ("decisive", "fallback") and key not in tables
        ]
        for key in gone:
            self._keep(key, None)
        for key, table in tables.items():
            self._keep(key, table)

    def _keep(self, key: TableKey, table: RoleTable | None) -> None:
        """Take a table, with its bytes and their hash, or forget it."""
        self.tables.pop(key, None)
        self.stored.pop(key, None)
        if table is not None:
            self.tables[key] = table
            self._store(key, orjson.dumps(table.to_payload()))

    def _store(self, key: TableKey, payload: bytes) -> None:
        self.stored[key] = StoredTable(hashlib.sha256(payload).hexdigest(), payload)

    def learn(self, connection: Connection, latest: Mapping[str, Sequence[RecentTurn]]) -> None:
        """Bring the parameters up to what the ledger holds.

        Parameters
        ----------
        latest : mapping of str to sequence of RecentTurn
            Latest turns of the roles that changed, oldest first.
        """
        before = self.learning.parameters
        made = self.learning.follow(connection, latest)
        for key in before.keys() - made.keys():
            del self.stored[key]
        for key, known in made.items():
            if known is not before.get(key):
                self._store(key, orjson.dumps(known))

    def snapshot(self, built_ms: int) -> Snapshot:
        """Return the tables as a snapshot; without any turn, those of the standard alone."""
        if not self.tables:
            self.estimate((), lambda _role: [])
        digests = {key: table.digest for key, table in self.stored.items()}
        return snapshot_of(self.version, built_ms, self.tables, digests, self.learning.parameters)


def learned_pace(paces: Iterable[Pace]) -> float | None:
    """Return requests per tool call over all of these, or None where too few turns tell both."""
    own = sum(paces, Pace())
    if own.turns < MIN_PACE_TURNS or not own.tool_calls:
        return None
    return own.requests / own.tool_calls


def within_horizon(place: Place) -> Place:
    """Return where a turn stands; one that is longer than any life table is cut at its end.

    One absurd turn must not keep every role's table from being made.
    """
    entry, exit_, _ = place
    if exit_ <= MAX_CALLS:
        return place
    return min(entry, MAX_CALLS), MAX_CALLS, False


def _decayed_lives(turns: Iterable[RecentTurn], unit: str) -> dict[str, LifeTable]:
    """Return the decayed life tables of a role: all of its turns under "", and by model.

    A role that ended turns on one model only has no table by model: it would say the same twice.
    """
    placed = [(turn.place(unit), turn.model) for turn in turns]
    rows = [(*within_horizon(place), model) for place, model in placed if place is not None]
    if not rows:
        return {}
    count = len(rows)
    entry = np.fromiter((row[0] for row in rows), np.int64, count)
    exit_ = np.fromiter((row[1] for row in rows), np.int64, count)
    ended = np.fromiter((row[2] for row in rows), np.bool_, count)
    weight = weights(count, DEFAULT_HALF_LIFE)
    lives: dict[str, LifeTable] = {}
    models = {row[3] for row in rows if row[3] and row[2] and row[1] > row[0]}
    for model in ["", *sorted(models)] if len(models) > 1 else [""]:
        own = np.fromiter((not model or row[3] == model for row in rows), np.bool_, count)
        histogram = Histogram(
            entry[own], exit_[own], ended[own], weight[own], np.square(weight[own])
        )
        if histogram.ends:
            lives[model] = life_table(histogram)
    return lives


def build_snapshot(connection: Connection, estimates: Estimates, built_ms: int) -> Snapshot:
    """Bring the estimates up to the ledger's version, and return them as a snapshot.

    Costs what changed and the number of roles, not what the ledger holds: a role that changed is
    read back to seven half-lives, and no further.
    """
    touched = estimates.apply(changes_since(connection, estimates.version))
    latest: dict[str, list[RecentTurn]] = {}

    def recent(role: str) -> list[RecentTurn]:
        turns = recent_turns(connection, role, RECENT_TURNS)
        latest[role] = turns[-LEARNED_TURNS:]
        return turns

    estimates.estimate(touched, recent)
    estimates.learn(connection, latest)
    return estimates.snapshot(built_ms)


def snapshot_of(
    version: int,
    built_ms: int,
    tables: Mapping[TableKey, RoleTable],
    digests: Mapping[TableKey, str],
    parameters: Mapping[TableKey, Parameters],
) -> Snapshot:
    """Return a snapshot of tables and parameters by where they stand."""
    built_at = iso(built_ms) or ""
    return Snapshot.of(version, built_at, tables, digests, standards(), parameters)
