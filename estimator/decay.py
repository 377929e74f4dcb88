"""Decayed histograms: a turn weighs half as much after so many later turns of the same role.

Kept incrementally: instead of shrinking every old weight at each turn, new turns weigh ever more,
2^(k/half-life), and all weights are divided back before they overflow.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compactuary.errors import InputError
from estimator.histogram import Histogram

__all__ = [
    "DEFAULT_HALF_LIFE",
    "Change",
    "DecayedCells",
    "DecayedHistogram",
    "Place",
    "decayed",
    "weights",
]

#: In turns of the role itself: what it did 200 turns ago counts half.
DEFAULT_HALF_LIFE = 200.0
#: Squared weights overflow at 2^1024; sums of many need room below it.
MAX_HALVINGS = 400


class Place(NamedTuple):
    """Where a turn stands in a histogram; the names are those of `Histogram`."""

    entry: int
    exit: int
    ended: bool


class Change(NamedTuple):
    """One turn that comes into a decayed histogram, or that leaves it again.

    Parameters
    ----------
    place : Place
        Its cell.
    turn : int
        k ≥ 1, the turn's number among the role's own. A turn that leaves has the number that it
        came with: it takes exactly its own weight along.
    sign : {1, -1}, default 1
        −1 for the old cell of a cut turn that is resumed.
    """

    place: Place
    turn: int
    sign: int = 1


class DecayedCells(NamedTuple):
    """A decayed histogram as columns, weighed as of its last turn.

    Parameters
    ----------
    entry, exit : ndarray of int64, shape (cells,)
        As in `Histogram`, sorted by entry, exit, ended.
    ended : ndarray of bool, shape (cells,)
        False for cut turns.
    weight : ndarray of float, shape (cells,)
        Σ 2^((k − n)/half-life) over the cell's turns k; the last turn, n, weighs 1.
    squared : ndarray of float, shape (cells,)
        Σ of the squares of those weights. (Σ weight)²/Σ squared is the effective sample size.
    """

    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    ended: NDArray[np.bool_]
    weight: NDArray[np.float64]
    squared: NDArray[np.float64]


class _Sums(NamedTuple):
    turns: int
    weight: float
    squared: float


@dataclass(frozen=True, slots=True)
class DecayedHistogram:
    """The turns of one role with weights that halve every `half_life` later turns.

    Parameters
    ----------
    half_life : float or None, default 200
        In turns of the role; None or infinity for no decay.
    turns : int, default 0
        n, the largest turn number seen.
    halvings : int, default 0
        Half-lives by which the kept weights were divided back: a turn k is kept with the weight
        2^(k/half-life − halvings).
    sums : mapping of Place to (turns, weight, squared), default empty
        What is kept of each cell: its turns, their weights and squared weights.

    Raises
    ------
    InputError
        If the half-life is not positive.

    Notes
    -----
    The model, §2. Every value is plain, so that a ledger can keep the four of them.

    Examples
    --------
    >>> one = Place(entry=0, exit=5, ended=True)
    >>> histogram = DecayedHistogram(half_life=1).with_changes([Change(one, 1), Change(one, 2)])
    >>> histogram.cells().weight.tolist(), histogram.cells().squared.tolist()
    ([1.5], [1.25])
    """

    half_life: float | None = DEFAULT_HALF_LIFE
    turns: int = 0
    halvings: int = 0
    sums: Mapping[Place, _Sums] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.half_life is not None and not self.half_life > 0:
            raise InputError(
                "the half-life is not positive",
                where="half_life",
                value=self.half_life,
                remedy="Give a number of turns, or None for no decay",
            )

    def with_changes(self, changes: Iterable[Change]) -> "DecayedHistogram":
        """Give the histogram after turns came and left, at the cost of its cells and theirs.

        Parameters
        ----------
        changes : iterable of Change
            In any order within the batch.

        Raises
        ------
        InputError
            If a turn number is below 1, a sign is neither 1 nor −1, or a turn leaves a cell that
            holds none.
        """
        batch = list(changes)
        for index, change in enumerate(batch):
            _check(index, change)
        turns = max((change.turn for change in batch), default=0)
        grown = self._reaching(max(turns, self.turns))
        sums = dict(grown.sums)
        for change in batch:
            weight = _kept_weight(change.turn, self.half_life, grown.halvings)
            old = sums.get(change.place, _Sums(0, 0.0, 0.0))
            sums[change.place] = _Sums(
                old.turns + change.sign,
                old.weight + change.sign * weight,
                old.squared + change.sign * weight * weight,
            )
        for change in batch:
            _refuse_negative(change.place, sums.get(change.place))
        # Counted, not weighed: what a sum that should be 0 is left with is rounding.
        return replace(grown, sums={place: kept for place, kept in sums.items() if kept.turns})

    def cells(self) -> DecayedCells:
        """Give the cells with their weights as of the last turn, which weighs 1.

        Returns
        -------
        DecayedCells
            Without the cells that are too old to weigh anything in double precision.
        """
        now = _kept_weight(self.turns, self.half_life, self.halvings)
        weighed = (
            # Rounding, left behind by a heavier turn, must not make a square of no weight.
            (place, kept.weight / now, min(kept.squared / now / now, (kept.weight / now) ** 2))
            for place, kept in sorted(self.sums.items())
        )
        rows = [row for row in weighed if row[1] > 0 and row[2] > 0]
        return DecayedCells(
            np.array([place.entry for place, _, _ in rows], dtype=np.int64),
            np.array([place.exit for place, _, _ in rows], dtype=np.int64),
            np.array([place.ended for place, _, _ in rows], dtype=np.bool_),
            np.array([weight for _, weight, _ in rows], dtype=np.float64),
            np.array([squared for _, _, squared in rows], dtype=np.float64),
        )

    def histogram(self) -> Histogram:
        """Give the cells as a histogram of weighted turns; of counted ones without decay."""
        if self.half_life is None or math.isinf(self.half_life):
            return Histogram.from_rows((*place, kept.turns) for place, kept in self.sums.items())
        return Histogram(*self.cells())

    def _reaching(self, turns: int) -> "DecayedHistogram":
        """Make room for the weights up to a turn: divide back what is kept, if need be."""
        reached = _halvings(turns, self.half_life)
        if reached - self.halvings <= MAX_HALVINGS:
            return replace(self, turns=turns)
        shift = self.halvings - reached
        sums = {
            place: _Sums(
                kept.turns, math.ldexp(kept.weight, shift), math.ldexp(kept.squared, 2 * shift)
            )
            for place, kept in self.sums.items()
        }
        return replace(self, turns=turns, halvings=reached, sums=sums)


def _halvings(turn: int, half_life: float | None) -> int:
    """Count the whole half-lives up to a turn."""
    return 0 if half_life is None else int(turn // half_life)


def _kept_weight(turn: int, half_life: float | None, halvings: int) -> float:
    """2^(k/half-life − halvings); whole powers apart, so that dividing back loses nothing."""
    if half_life is None or math.isinf(half_life):
        return 1.0
    rest = math.fmod(turn, half_life) / half_life
    return math.ldexp(2.0**rest, _halvings(turn, half_life) - halvings)


def weights(turns: int, half_life: float | None = DEFAULT_HALF_LIFE) -> NDArray[np.float64]:
    """Give the weights of a role's turns, as of the last one.

    Parameters
    ----------
    turns : int
        n, how many there are.
    half_life : float or None, default 200
        In turns of the role; None or infinity for no decay: every turn weighs 1.

    Returns
    -------
    ndarray of float, shape (turns,)
        2^((k − n)/half-life) for k = 1 … n. With their squares they make a `Histogram`.
    """
    if half_life is None:
        return np.ones(turns)
    if not half_life > 0:
        raise InputError(
            "the half-life is not positive",
            where="half_life",
            value=half_life,
            remedy="Give a number of turns, or None for no decay",
        )
    weighed: NDArray[np.float64] = np.exp2((np.arange(1, turns + 1) - turns) / half_life)
    return weighed


def decayed(places: Iterable[Place], half_life: float | None = DEFAULT_HALF_LIFE) -> DecayedCells:
    """Weigh a role's turns, given in order, in one pass.

    Parameters
    ----------
    places : iterable of Place
        (entry, exit, ended) of each turn of the role, the oldest first.
    half_life : float or None, default 200
        In turns of the role; None or infinity for no decay: every turn weighs 1.

    Raises
    ------
    InputError
        If the half-life is not positive.
    """
    changes = (Change(Place(*place), turn) for turn, place in enumerate(places, start=1))
    return DecayedHistogram(half_life).with_changes(changes).cells()


def _check(index: int, change: Change) -> None:
    if change.turn < 1:
        raise InputError(
            "turns are numbered from 1",
            where=f"changes[{index}].turn",
            value=change.turn,
            remedy="Give the turn's number among the role's own",
        )
    if change.sign not in (1, -1):
        raise InputError(
            "a turn comes (1) or leaves (-1)",
            where=f"changes[{index}].sign",
            value=change.sign,
            remedy="Give one change a turn",
        )


def _refuse_negative(place: Place, kept: _Sums | None) -> None:
    if kept is not None and kept.turns < 0:
        raise InputError(
            "a turn leaves a cell that does not hold it",
            where="changes",
            value=tuple(place),
            remedy="Take out a turn with the entry, exit and end it came with",
        )
