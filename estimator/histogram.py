"""The histogram of turns: the sufficient statistic of every estimate in this room."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError

# A life table has one row an age, so a corrupt exit must not become gigabytes of them.
MAX_CALLS = 1_000_000
# Sums of counts and of counts times calls stay exact in double precision.
MAX_COUNT = 10**9


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
        Turns of this kind.

    Attributes
    ----------
    entry, exit, count : ndarray of int64, shape (cells,)
        As given, with equal cells merged, cells of count 0 dropped, sorted by entry, exit, ended;
        read-only.
    ended : ndarray of bool, shape (cells,)
        As above.

    Raises
    ------
    InputError
        If an entry or a count is negative, an exit is below −1 or above a million, an ended row
        has exit < entry, a number is not whole, or the shapes differ.

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
    count: NDArray[np.int64]

    def __post_init__(self) -> None:
        columns = (
            _whole_numbers("entry", self.entry, low=0, high=MAX_CALLS),
            _whole_numbers("exit", self.exit, low=-1, high=MAX_CALLS),
            _truths("ended", self.ended),
            _whole_numbers("count", self.count, low=0, high=MAX_COUNT),
        )
        _same_length(("entry", "exit", "ended", "count"), columns)
        _refuse_ends_before_entry(*columns[:3])
        for name, cells in zip(("entry", "exit", "ended", "count"), _cells(*columns), strict=True):
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
        return hash(tuple(column.tobytes() for column in self._columns))

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[object]]) -> Self:
        """Build from rows (entry, exit, ended, count), in any order, with repeats allowed.

        Parameters
        ----------
        rows : iterable of (entry, exit, ended, count)
            As the ledger keeps them; no rows make the empty histogram.

        Raises
        ------
        InputError
            If a row has not four elements, or as for the class.
        """
        gathered = list(rows)
        for index, row in enumerate(gathered):
            if len(row) != 4:
                raise InputError(
                    "a row has not the four elements entry, exit, ended, count",
                    where=f"rows[{index}]",
                    value=row,
                    remedy="Give one (entry, exit, ended, count) a cell",
                )
        columns = zip(*gathered, strict=True) if gathered else ((), (), (), ())
        entry, exit_, ended, count = (np.asarray(column) for column in columns)
        return cls(entry, exit_, ended, count)

    @classmethod
    def from_turns(cls, calls: ArrayLike, ended: ArrayLike, entry: ArrayLike | None = None) -> Self:
        """Build from single turns in the unit of tool calls.

        Parameters
        ----------
        calls : array_like of int, shape (turns,)
            Tool calls issued in each turn, those before `entry` included.
        ended : array_like of bool, shape (turns,)
            Whether the turn ended; a cut turn with c calls is known to have N ≥ c only.
        entry : array_like of int, shape (turns,), optional
            Calls made before observation began. By default every turn was seen from its start.

        Raises
        ------
        InputError
            If calls are negative or not whole, the shapes differ, or as for the class.
        """
        issued = _whole_numbers("calls", calls, low=0, high=MAX_CALLS)
        truths = _truths("ended", ended)
        entries = np.zeros_like(issued) if entry is None else np.asarray(entry)
        _same_length(("calls", "ended", "entry"), (issued, truths, entries))
        return cls(entries, np.where(truths, issued, issued - 1), truths, np.ones_like(issued))

    @property
    def turns(self) -> int:
        """Turns counted, those that carry no exposure included."""
        return int(self.count.sum())

    @property
    def turns_with_a_call(self) -> int:
        """Turns known to have made at least one call."""
        known = (self.entry >= 1) | (self.exit + ~self.ended >= 1)
        return int(self.count[known].sum())

    @property
    def ends(self) -> int:
        """Ends observed at a call the turn was at risk for: ended, exit > entry."""
        return int(self.count[self.ended & (self.exit > self.entry)].sum())

    @property
    def calls(self) -> int:
        """Calls at risk, over all turns: the exposure E beyond age 0."""
        return int((self.count * np.maximum(self.exit - self.entry, 0)).sum())

    @property
    def _columns(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        return self.entry, self.exit, self.ended, self.count


def merge(*histograms: Histogram) -> Histogram:
    """Add histograms up; the result is that of all their turns together.

    Parameters
    ----------
    *histograms : Histogram
        Any number; none makes the empty histogram.

    Raises
    ------
    InputError
        If a merged count passes a thousand million.
    """
    if not histograms:
        return Histogram.from_rows([])
    return Histogram(
        np.concatenate([histogram.entry for histogram in histograms]),
        np.concatenate([histogram.exit for histogram in histograms]),
        np.concatenate([histogram.ended for histogram in histograms]),
        np.concatenate([histogram.count for histogram in histograms]),
    )


def _whole_numbers(field: str, values: ArrayLike, *, low: int, high: int) -> NDArray[np.int64]:
    array = _one_dimensional(field, values)
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(
            "not whole numbers", where=field, value=array.tolist(), remedy=_REMEDIES[field]
        )
    # In floating point whatever comes, and written so that NaN fails it.
    numbers = array.astype(np.float64)
    legal = (numbers >= low) & (numbers <= high) & (np.floor(numbers) == numbers)
    if not legal.all():
        index = int(np.argmin(legal))
        raise InputError(
            f"not a whole number from {low} to {high}",
            where=f"{field}[{index}]",
            value=array[index].item(),
            remedy=_REMEDIES[field],
        )
    return numbers.astype(np.int64)


_REMEDIES = {
    "entry": "Give the calls made before observation began, 0 for a turn seen from its start",
    "exit": "Give the last call at risk: N if ended, calls issued − 1 if cut (−1 for none)",
    "count": "Give how many turns the row stands for; apply signed changes before",
    "calls": "Give the tool calls issued in the turn",
}


def _truths(field: str, values: ArrayLike) -> NDArray[np.bool_]:
    array = _one_dimensional(field, values)
    if array.size and not (array.dtype.kind in "biu" and np.isin(array, (0, 1)).all()):
        raise InputError(
            "not truth values",
            where=field,
            value=array.tolist(),
            remedy="Give True for an ended turn and False for a cut one",
        )
    return array.astype(np.bool_)


def _one_dimensional(field: str, values: ArrayLike) -> NDArray[np.generic]:
    try:
        array: NDArray[np.generic] = np.asarray(values)
    except ValueError as error:
        raise InputError(
            "not an array", where=field, value=values, remedy="Give one value a row"
        ) from error
    if array.ndim != 1:
        raise InputError(
            f"has {array.ndim} dimensions",
            where=field,
            value=array.tolist(),
            remedy="Give one value a row",
        )
    return array


def _same_length(names: tuple[str, ...], columns: tuple[NDArray[np.generic], ...]) -> None:
    lengths = {name: column.shape for name, column in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InputError(
            "the columns differ in length",
            where=", ".join(names),
            value=[shape[0] if len(shape) == 1 else shape for shape in lengths.values()],
            remedy="Give one value a row in each of them",
        )


def _refuse_ends_before_entry(
    entry: NDArray[np.int64], exit_: NDArray[np.int64], ended: NDArray[np.bool_]
) -> None:
    impossible = ended & (exit_ < entry)
    if impossible.any():
        index = int(np.argmax(impossible))
        raise InputError(
            f"an ended turn has its exit before its entry of {entry[index]}",
            where=f"exit[{index}]",
            value=int(exit_[index]),
            remedy="Count the calls from the start of the turn, those before entry included",
        )


def _cells(
    entry: NDArray[np.int64],
    exit_: NDArray[np.int64],
    ended: NDArray[np.bool_],
    count: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    order = np.lexsort((ended, exit_, entry))
    order = order[count[order] > 0]
    if order.size == 0:
        return entry[order], exit_[order], ended[order], count[order]
    entry, exit_, ended, count = entry[order], exit_[order], ended[order], count[order]
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (np.diff(entry) != 0) | (np.diff(exit_) != 0) | (ended[1:] != ended[:-1])
    return entry[new], exit_[new], ended[new], np.add.reduceat(count, np.flatnonzero(new))
