"""Life tables of many roles in one vectorised pass."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compactuary.errors import InputError
from estimator.age_estimates import AgeEstimates, Thresholds, age_estimates
from estimator.exposure import Rows, exposed_cells, rows_of
from estimator.histogram import Histogram
from estimator.life_table import LifeTable, life_table
from estimator.turn_rows import (
    MAX_CALLS,
    MAX_COUNT,
    refuse_ends_before_entry,
    same_length,
    truths,
    weights_with_squares,
    whole_numbers,
)

__all__ = ["LifeTables", "RoleRows", "life_tables"]

# Roles × ages estimated at once: few enough for a processor's cache.
_BLOCK = 1 << 15
# Roles × ages kept; each of the five arrays takes 8 bytes of it.
_MOST = 10**8
_COLUMNS = ("mean", "variance", "ends_effective", "lower", "upper")


@dataclass(frozen=True, slots=True, eq=False)
class RoleRows:
    """Rows of many roles' histograms as columns, the way a database hands them out.

    Parameters
    ----------
    roles : sequence of str
        The roles' names, each once.
    role : array_like of int, shape (rows,)
        Index of each row's role in `roles`. Rows sorted by it are not copied.
    entry, exit, ended, count, squared : array_like, shape (rows,)
        As in `Histogram`; equal rows may repeat.

    Raises
    ------
    InputError
        If a name repeats, an index has no name, or as for `Histogram`.
    """

    roles: Sequence[str]
    role: NDArray[np.int64]
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    ended: NDArray[np.bool_]
    count: NDArray[np.int64] | NDArray[np.float64]
    squared: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        _refuse_repeats(self.roles)
        role = whole_numbers("role", self.role, low=0, high=len(self.roles) - 1)
        columns: dict[str, NDArray[np.generic]] = {
            "role": role,
            "entry": whole_numbers("entry", self.entry, low=0, high=MAX_CALLS),
            "exit": whole_numbers("exit", self.exit, low=-1, high=MAX_CALLS),
            "ended": truths("ended", self.ended),
        }
        if self.squared is None:
            columns["count"] = whole_numbers("count", self.count, low=0, high=MAX_COUNT)
        else:
            columns["count"], columns["squared"] = weights_with_squares(self.count, self.squared)
        same_length(tuple(columns), tuple(columns.values()))
        if np.any(role[1:] < role[:-1]):
            order = np.argsort(role, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        refuse_ends_before_entry(self.entry, self.exit, self.ended)


@dataclass(frozen=True, slots=True, eq=False)
class LifeTables:
    """The life tables of many roles; made by `life_tables`.

    Row r of every array is of `roles[r]`, element i of a row of age i. Rows are as long as the
    largest tail age needs: past its own a role has its numbers at τ, as the model has it.
    `tables[role]` is the whole `LifeTable` of a role, computed on access.

    Parameters
    ----------
    roles : tuple of str
        The roles that have an end at a call: those with the longest turns first.
    without_ends : tuple of str
        The others. They have no table of their own: use that of all roles together.
    tail_age : ndarray of int64, shape (roles,)
        τ of each role, in calls.
    mean : ndarray of float, shape (roles, ages)
        m(i), in calls.
    variance : ndarray of float, shape (roles, ages)
        V(i), in calls².
    ends_effective : ndarray of float, shape (roles, ages)
        D(i), ends beyond the age: their effective number where turns have weights.
    lower, upper : ndarray of float, shape (roles, ages)
        The interval for m(i), in calls.
    thresholds : Thresholds
        What the open intervals and the intervals were made with.
    rows : mapping of str to rows
        What the tables are made from.

    Examples
    --------
    >>> short = Histogram.from_turns([1, 2, 3], [True, True, True])
    >>> tables = life_tables({"explore": short, "plan": Histogram.from_turns([4], [False])})
    >>> tables.mean.tolist(), tables.without_ends, tables["explore"].median(0)
    ([[2.0]], ('plan',), 1)
    """

    roles: tuple[str, ...]
    without_ends: tuple[str, ...]
    tail_age: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    ends_effective: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    thresholds: Thresholds
    rows: Mapping[str, Rows] = field(repr=False)

    def __getitem__(self, role: str) -> LifeTable:
        if role not in self.rows:
            raise InputError(
                "no such role",
                where="role",
                value=role,
                remedy=f"Give one of the {len(self.rows)} that the tables were made of",
            )
        rows = self.rows[role]
        chosen = self.thresholds
        return life_table(
            Histogram(*rows),
            min_at_risk=chosen.min_at_risk,
            min_ends=chosen.min_ends,
            level=chosen.level,
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.roles)

    def __len__(self) -> int:
        return len(self.roles)

    def __contains__(self, role: object) -> bool:
        return role in self.roles


def life_tables(
    histograms: Mapping[str, Histogram] | RoleRows,
    *,
    min_at_risk: int = 20,
    min_ends: int = 3,
    level: float = 0.9,
) -> LifeTables:
    """Estimate m, V, D and the interval of many roles at once.

    Parameters
    ----------
    histograms : mapping of role to Histogram, or RoleRows
        The turns of each role, cut ones included. A role without an end is no error here: it is
        named in `without_ends`.
    min_at_risk, min_ends, level
        As for `life_table`, to which the result is equal role by role.

    Raises
    ------
    InputError
        If a parameter is out of range, or roles × ages are more than a hundred million.

    Notes
    -----
    The model, §2.
    """
    thresholds = Thresholds(min_at_risk, min_ends, level)
    rows = _rows_by_role(histograms)
    ages = {role: int(own.exit.max()) for role, own in rows.items() if _has_end(own)}
    # Roles of like length together, so that little is computed past a role's last age.
    known = sorted(ages, key=lambda role: -ages[role])
    columns = _Columns(len(known))
    for start, stop in _blocks([ages[role] for role in known]):
        block = exposed_cells([rows[role] for role in known[start:stop]])
        columns.take(start, age_estimates(block, thresholds))
    return LifeTables(
        roles=tuple(known),
        without_ends=tuple(role for role in rows if role not in ages),
        tail_age=columns.tail_age,
        thresholds=thresholds,
        rows=rows,
        **columns.by_name,
    )


class _Columns:
    """The columns of all roles, filled block by block and widened as a block needs."""

    def __init__(self, roles: int) -> None:
        self.tail_age = np.zeros(roles, dtype=np.int64)
        self.by_name = {name: np.empty((roles, 1)) for name in _COLUMNS}

    def take(self, start: int, block: AgeEstimates) -> None:
        """Put a block's estimates in the rows from `start` on."""
        rows = slice(start, start + len(block.tail_age))
        self.tail_age[rows] = block.tail_age
        ages = block.mean.shape[1]
        self._widen(ages, start)
        for name, column in self.by_name.items():
            part: NDArray[np.float64] = getattr(block, name)
            column[rows, :ages] = part
            # A role's last number is that of its τ, and holds from there on.
            column[rows, ages:] = part[:, -1:]

    def _widen(self, ages: int, filled: int) -> None:
        roles, width = self.by_name["mean"].shape
        if ages <= width:
            return
        if roles * ages > _MOST:
            raise InputError(
                f"roles times ages are more than {_MOST}",
                where="histograms",
                value=f"{roles} roles of up to {ages} ages",
                remedy="Estimate fewer roles at once, or ask for more turns at risk",
            )
        for name, narrow in self.by_name.items():
            wide = np.empty((roles, ages))
            wide[:filled, :width] = narrow[:filled]
            wide[:filled, width:] = narrow[:filled, -1:]
            self.by_name[name] = wide


def _rows_by_role(histograms: Mapping[str, Histogram] | RoleRows) -> dict[str, Rows]:
    if not isinstance(histograms, RoleRows):
        return {role: rows_of(histogram) for role, histogram in histograms.items()}
    given = histograms
    starts = np.searchsorted(given.role, np.arange(len(given.roles) + 1)).tolist()
    squared = given.squared
    by_role = {}
    for place, role in enumerate(given.roles):
        own = slice(starts[place], starts[place + 1])
        by_role[role] = Rows(
            given.entry[own],
            given.exit[own],
            given.ended[own],
            given.count[own],
            None if squared is None else squared[own],
        )
    return by_role


def _has_end(rows: Rows) -> bool:
    return bool((rows.weight[rows.ended & (rows.exit > rows.entry)] > 0).any())


def _blocks(ages: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Part roles, the longest first, into blocks of a bounded number of roles × ages."""
    start = 0
    while start < len(ages):
        stop = min(start + max(1, _BLOCK // ages[start]), len(ages))
        yield start, stop
        start = stop


def _refuse_repeats(roles: Sequence[str]) -> None:
    seen: set[str] = set()
    for place, role in enumerate(roles):
        if role in seen:
            raise InputError(
                "a role is named twice",
                where=f"roles[{place}]",
                value=role,
                remedy="Give each name once, and its index in every row of it",
            )
        seen.add(role)
