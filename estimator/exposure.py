"""Exposure: turns at risk and ended at every age, of one role or of many at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimator.histogram import Histogram

# Of weights, what is left of a sum after others were taken from it may be rounding alone.
_ROUNDING = 1e-12


_Sizes = NDArray[np.int64] | NDArray[np.float64]


class Rows(NamedTuple):
    """The columns of one role's histogram, or of rows that it could be made of.

    Parameters
    ----------
    entry, exit, ended, squared : ndarray, shape (rows,)
        As in `Histogram`.
    weight : ndarray of int or float, shape (rows,)
        Its `count`: turns, or Σw.
    """

    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    ended: NDArray[np.bool_]
    weight: _Sizes
    squared: NDArray[np.float64] | None


class Cells(NamedTuple):
    """Rows of histograms that carry exposure (exit > entry), and the role each belongs to.

    Parameters
    ----------
    role : ndarray of int, shape (cells,)
        Index of the cell's role, from 0 to `roles` − 1.
    entry, exit, ended : ndarray, shape (cells,)
        As in `Histogram`.
    weight : ndarray of int or float, shape (cells,)
        Its `count`: turns, or Σw.
    squared : ndarray of float, shape (cells,), or None
        Σw² of each cell; None where every turn weighs 1.
    roles : int
        How many roles there are.
    """

    role: NDArray[np.int64]
    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    ended: NDArray[np.bool_]
    weight: _Sizes
    squared: NDArray[np.float64] | None
    roles: int


class Exposure(NamedTuple):
    """Exposure by role and age; element i of a row is of age i, in turns or their weight.

    Parameters
    ----------
    at_risk, ended, ends : ndarray of float, shape (roles, ages)
        n_{i+1}, d_{i+1} and D, the ends beyond age i.
    at_risk_effective, ends_effective : ndarray of float, shape (roles, ages)
        Effective sizes (Σw)²/Σw² of n and D; the same arrays where every turn weighs 1.
    """

    at_risk: NDArray[np.float64]
    ended: NDArray[np.float64]
    ends: NDArray[np.float64]
    at_risk_effective: NDArray[np.float64]
    ends_effective: NDArray[np.float64]

    def until(self, ages: int) -> "Exposure":
        """Return the first ages only."""
        return Exposure(*(column[:, :ages] for column in self))


def rows_of(histogram: Histogram) -> Rows:
    """Return the columns of a histogram."""
    return Rows(
        histogram.entry, histogram.exit, histogram.ended, histogram.count, histogram.squared
    )


def exposed_cells(roles: Sequence[Rows]) -> Cells:
    """Put the rows of several roles together, without those that carry no exposure.

    Parameters
    ----------
    roles : sequence of Rows
        One a role, in the order of their indices; at least one.
    """
    weighted = any(rows.squared is not None for rows in roles)
    role = np.repeat(np.arange(len(roles)), [rows.entry.size for rows in roles])
    entry = np.concatenate([rows.entry for rows in roles])
    exit_ = np.concatenate([rows.exit for rows in roles])
    ended = np.concatenate([rows.ended for rows in roles])
    weight: _Sizes = np.concatenate([rows.weight for rows in roles])
    squared = None
    if weighted:
        squared = np.concatenate(
            [rows.weight if rows.squared is None else rows.squared for rows in roles]
        ).astype(np.float64, copy=False)
    exposed = exit_ > entry
    if not exposed.all():
        role, entry, exit_, ended = role[exposed], entry[exposed], exit_[exposed], ended[exposed]
        weight = weight[exposed]
        squared = None if squared is None else squared[exposed]
    return Cells(role, entry, exit_, ended, weight, squared, len(roles))


def exposure_by_age(cells: Cells) -> Exposure:
    """Count who is at risk and who ends at every age below the largest exit.

    Parameters
    ----------
    cells : Cells
        At least one.

    Notes
    -----
    The model, §2: a turn is at risk for call j iff entry < j ≤ exit.
    """
    ages = int(cells.exit.max())
    at_risk, ended, ends = _sums(cells, cells.weight, ages)
    if cells.squared is None:
        return Exposure(at_risk, ended, ends, at_risk, ends)
    # At an age that only ends are left at, the last one must be certain.
    at_risk = np.where(at_risk - ended <= _ROUNDING * at_risk, ended, at_risk)
    squared_at_risk, _, squared_ends = _sums(cells, cells.squared, ages)
    return Exposure(
        at_risk,
        ended,
        ends,
        _effective(at_risk, squared_at_risk),
        _effective(ends, squared_ends),
    )


def hazard_by_age(ended: NDArray[np.float64], at_risk: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give d/n, 0 where nobody was at risk."""
    return np.divide(ended, at_risk, out=np.zeros(ended.shape), where=at_risk > 0)


def _sums(
    cells: Cells, size: _Sizes, ages: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """At risk, ended, and ended beyond, by role and age."""
    late = cells.entry > 0
    first = cells.role * ages
    last = first + cells.exit - 1
    exits = _by_age(last, size, cells.roles, ages)
    ended = _by_age(last[cells.ended], size[cells.ended], cells.roles, ages)
    at_risk, ends = _from_here_on(exits), _from_here_on(ended)
    if late.any():
        start, stop = first[late] + cells.entry[late], first[late] + cells.exit[late]
        if cells.squared is None:
            at_risk -= _from_here_on(_by_age(start - 1, size[late], cells.roles, ages))
        else:
            early = _by_age(last[~late], size[~late], cells.roles, ages)
            passing = _covering(start, stop, size[late], cells.roles * ages)
            at_risk = _from_here_on(early) + passing.reshape(cells.roles, ages)
    return at_risk, ended, ends


def _by_age(
    place: NDArray[np.int64],
    size: _Sizes,
    roles: int,
    ages: int,
) -> NDArray[np.float64]:
    sums = np.bincount(place, size, roles * ages).astype(np.float64, copy=False)
    return sums.reshape(roles, ages)


def _from_here_on(by_age: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cumsum(by_age[:, ::-1], axis=1)[:, ::-1]


def _covering(
    start: NDArray[np.int64], stop: NDArray[np.int64], weight: _Sizes, places: int
) -> NDArray[np.float64]:
    """Σ of the weights whose interval start ≤ place < stop covers a place.

    Taking weights out of a running sum would leave rounding where nobody is at risk, so every
    interval is cut into aligned blocks of 1, 2, 4 … places, and a place adds up its blocks.
    """
    blocks = []
    while start.size:
        block = np.zeros(places)
        odd_start, odd_stop = start % 2 == 1, stop % 2 == 1
        block += np.bincount(start[odd_start], weight[odd_start], places)
        block += np.bincount(stop[odd_stop] - 1, weight[odd_stop], places)
        blocks.append(block)
        start, stop = (start + 1) // 2, stop // 2
        left = start < stop
        start, stop, weight = start[left], stop[left], weight[left]
        places = (places + 1) // 2
    total = np.zeros(0)
    for block in reversed(blocks):
        doubled = np.repeat(total, 2)[: block.size]
        block[: doubled.size] += doubled
        total = block
    return total


def _effective(weight: NDArray[np.float64], squared: NDArray[np.float64]) -> NDArray[np.float64]:
    """(Σw)²/Σw², and 0 of nothing; equal to the number where every weight is 1."""
    found = squared > 0
    return weight * np.divide(weight, squared, out=np.zeros_like(weight), where=found)
