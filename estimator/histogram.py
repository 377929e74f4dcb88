"""The histogram of turns: the sufficient statistic of every estimate in this room."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError
from estimator.turn_rows import (
    MAX_CALLS,
    MAX_COUNT,
    MIN_WEIGHT,
    refuse_ends_before_entry,
    same_length,
    truths,
    weights,
    weights_with_squares,
    whole_numbers,
)

__all__ = ["MAX_CALLS", "MAX_COUNT", "Histogram", "merge"]

_Sizes = NDArray[np.int64] | NDArray[np.float64]
_NAMES = ("entry", "exit", "ended", "count", "squared")


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Turns counted by what is known of them: (entry, exit, ended) → count.

    A turn is at risk for call j iff entry < j ≤ exit, j ≥ 1. It is at risk for "call 0", the
    question whether the turn makes a call at all, iff entry = 0 and exit ≥ 0; it ended there iff
    it ended with exit = 0. A row with exit ≤ entry carries no exposure beyond call 0: it is
    counted in `turns` only.

    Parameters
    ----------
    entry : array_like of int, shape (k,)
        Calls made before observation began (left truncation); 0 for a turn seen from its start.
    exit : array_like of int, shape (k,)
        The last call the turn was at risk for. Of an ended turn: N, its calls. Of a cut turn in
        tool calls: the calls issued − 1, for only N ≥ issued is known; −1 where none was issued.
    ended : array_like of bool, shape (k,)
        False for a cut turn (interrupted, failed, or still open).
    count : array_like of int, shape (k,)
        Turns of this kind; with `squared`, the sum Σw of their weights, of float.
    squared : array_like of float, shape (k,), optional
        Σw², the sum of their squared weights. By default every turn weighs 1 and counts are
        whole.

    Attributes
    ----------
    entry, exit : ndarray of int64, shape (cells,)
        As given, with equal cells merged, cells of count 0 (of weight below 1e-100) dropped,
        sorted by entry, exit, ended; read-only, as are the others.
    ended : ndarray of bool, shape (cells,)
        As above.
    count : ndarray of int64, or of float64 where turns have weights, shape (cells,)
        As above.
    squared : ndarray of float64, shape (cells,), or None
        As above.

    Raises
    ------
    InputError
        If an entry or a count is negative, an exit is below −1 or above a million, an ended row
        has exit < entry, a number is not whole (a weight not finite), a count is above a
        thousand million, a sum of squared weights is not one, or the shapes differ.

    Notes
    -----
    The model, §2. Whether a cut turn's exit is its calls or one less is the caller's convention;
    `from_turns` applies that of tool calls.

    Examples
    --------
    >>> histogram = Histogram.from_turns(calls=[3, 3, 0, 5], ended=[True, True, True, False])
    >>> histogram.exit.tolist(), histogram.ended.tolist(), histogram.count.tolist()
    ([0, 3, 4], [True, True, False], [1, 2, 1])
    >>> histogram.turns, histogram.ends, histogram.calls
    (4, 2, 10)
    """

    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    ended: NDArray[np.bool_]
    count: NDArray[np.int64] | NDArray[np.float64]
    squared: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        places = (
            whole_numbers("entry", self.entry, low=0, high=MAX_CALLS),
            whole_numbers("exit", self.exit, low=-1, high=MAX_CALLS),
            truths("ended", self.ended),
        )
        sizes: tuple[_Sizes, ...]
        if self.squared is None:
            sizes = (whole_numbers("count", self.count, low=0, high=MAX_COUNT),)
        else:
            sizes = weights_with_squares(self.count, self.squared)
        same_length(_NAMES[:4], (*places, sizes[0]))
        refuse_ends_before_entry(*places)
        for name, cells in zip(_NAMES, _cells(*places, *sizes), strict=False):
            cells.setflags(write=False)
            object.__setattr__(self, name, cells)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(self._columns, other._columns, strict=True)
        )

    def __hash__(self) -> int:
        # Equal numbers of another type must have one hash.
        return hash(tuple(column.astype(np.float64).tobytes() for column in self._columns))

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[object]]) -> Self:
        """Build from rows (entry, exit, ended, count), in any order, with repeats allowed.

        Parameters
        ----------
        rows : iterable of (entry, exit, ended, count) or (entry, exit, ended, count, squared)
            As the ledger keeps them; no rows make the empty histogram. The longer form is that
            of weighted turns, and then of every row.

        Raises
        ------
        InputError
            If a row has neither four nor five elements or another number of them than the
            first, or as for the class.
        """
        gathered = list(rows)
        width = len(gathered[0]) if gathered else 4
        for index, row in enumerate(gathered):
            if len(row) != width or width not in {4, 5}:
                raise InputError(
                    "a row has not the four elements entry, exit, ended, count",
                    where=f"rows[{index}]",
                    value=row,
                    remedy="Give one (entry, exit, ended, count) a cell, squared after it in all "
                    "rows or in none",
                )
        columns = zip(*gathered, strict=True) if gathered else ((), (), (), ())
        return cls(*(np.asarray(column) for column in columns))

    @classmethod
    def from_turns(
        cls,
        calls: ArrayLike,
        ended: ArrayLike,
        entry: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ) -> Self:
        """Build from single turns in the unit of tool calls.

        Parameters
        ----------
        calls : array_like of int, shape (turns,)
            Tool calls issued in each turn, those before `entry` included.
        ended : array_like of bool, shape (turns,)
            Whether the turn ended; a cut turn with c calls is known to have N ≥ c only.
        entry : array_like of int, shape (turns,), optional
            Calls made before observation began. By default every turn was seen from its start.
        weight : array_like of float, shape (turns,), optional
            What each turn counts for, such as ½ to the power of its age in half-lives. By
            default 1, and the counts are whole.

        Raises
        ------
        InputError
            If calls are negative or not whole, a weight is negative or not finite, the shapes
            differ, or as for the class.
        """
        issued = whole_numbers("calls", calls, low=0, high=MAX_CALLS)
        truth = truths("ended", ended)
        if entry is None and weight is None:
            same_length(("calls", "ended"), (issued, truth))
            return cls(*_counted(issued, truth))
        entries = np.zeros_like(issued) if entry is None else np.asarray(entry)
        same_length(("calls", "ended", "entry"), (issued, truth, entries))
        if weight is None:
            return cls(entries, issued - ~truth, truth, np.ones_like(issued))
        votes = weights("weight", weight)
        same_length(("calls", "weight"), (issued, votes))
        return cls(entries, issued - ~truth, truth, votes, votes**2)

    @property
    def squares(self) -> NDArray[np.float64]:
        """Σw² of each cell: its count where every turn weighs 1."""
        return self.count.astype(np.float64) if self.squared is None else self.squared

    @property
    def turns(self) -> float:
        """Turns counted, or their weight, those that carry no exposure included."""
        return self._total(slice(None))

    @property
    def turns_with_a_call(self) -> float:
        """Turns known to have made at least one call, or their weight."""
        return self._total((self.entry >= 1) | (self.exit + ~self.ended >= 1))

    @property
    def ends(self) -> float:
        """Ends observed at a call the turn was at risk for: ended, exit > entry; weighted."""
        return self._total(self.ended & (self.exit > self.entry))

    @property
    def calls(self) -> float:
        """Calls at risk, over all turns: the exposure E beyond age 0; weighted."""
        exposure: int | float = (self.count * np.maximum(self.exit - self.entry, 0)).sum().item()
        return exposure

    def _total(self, cells: NDArray[np.bool_] | slice) -> int | float:
        total: int | float = self.count[cells].sum().item()
        return total

    @property
    def _columns(self) -> tuple[NDArray[np.generic], ...]:
        return self.entry, self.exit, self.ended, self.count, self.squares


def merge(*histograms: Histogram) -> Histogram:
    """Add histograms up; the result is that of all their turns together.

    Parameters
    ----------
    *histograms : Histogram
        Any number; none makes the empty histogram. It has weights if one of them has.

    Raises
    ------
    InputError
        If a merged count passes a thousand million.
    """
    if not histograms:
        return Histogram.from_rows([])
    weighted = any(histogram.squared is not None for histogram in histograms)
    return Histogram(
        np.concatenate([histogram.entry for histogram in histograms]),
        np.concatenate([histogram.exit for histogram in histograms]),
        np.concatenate([histogram.ended for histogram in histograms]),
        np.concatenate([histogram.count for histogram in histograms]),
        np.concatenate([histogram.squares for histogram in histograms]) if weighted else None,
    )


def _counted(
    issued: NDArray[np.int64], ended: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Count turns seen from their start; millions of them are too many to be treated as cells."""
    key = issued * 2
    key += ended
    count = np.bincount(key)
    found = np.flatnonzero(count)
    truth = found % 2 == 1
    return np.zeros_like(found), found // 2 - ~truth, truth, count[found]


def _cells(
    entry: NDArray[np.int64],
    exit_: NDArray[np.int64],
    ended: NDArray[np.bool_],
    count: NDArray[np.int64] | NDArray[np.float64],
    squared: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.generic], ...]:
    """Merge equal rows, in the order of one key made of the three columns."""
    kept = count >= (1 if squared is None else MIN_WEIGHT)
    if not kept.all():
        entry, exit_, ended, count = entry[kept], exit_[kept], ended[kept], count[kept]
        squared = None if squared is None else squared[kept]
    if count.size == 0:
        return entry.copy(), exit_.copy(), ended.copy(), count.copy(), *_given(squared)
    span = int(exit_.max()) + 2
    key = ((entry * span + exit_ + 1) << 1) | ended
    rows, *totals = _merged(key, count, *_given(squared))
    place = (rows // 2 // span, rows // 2 % span - 1, rows % 2 == 1)
    if squared is None:
        return *place, whole_numbers("count", totals[0], low=1, high=MAX_COUNT)
    return *place, *totals


def _merged(key: NDArray[np.int64], *sizes: _Sizes) -> list[_Sizes]:
    """Add up what rows of equal key hold; the keys first, ascending."""
    most = int(key.max()) + 1
    # Counting needs no sort, and keys of turns are dense.
    if most <= 8 * key.size + 1024:
        totals = [np.bincount(key, size.astype(np.float64), most) for size in sizes]
        found = np.flatnonzero(totals[0])
        return [found, *(total[found] for total in totals)]
    found, place = np.unique(key, return_inverse=True)
    return [found, *(np.bincount(place, size.astype(np.float64)) for size in sizes)]


def _given(squared: NDArray[np.float64] | None) -> tuple[NDArray[np.float64], ...]:
    return () if squared is None else (squared,)
