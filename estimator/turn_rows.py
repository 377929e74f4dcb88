"""What columns of rows about turns may hold: whole calls, truths, weights of equal length."""

from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError

# A life table has one row an age, so a corrupt exit must not become gigabytes of them.
MAX_CALLS = 1_000_000
# Sums of counts and of counts times calls stay exact in double precision.
MAX_COUNT = 10**9
# Weights whose squares neither overflow nor vanish; a smaller one weighs nothing.
MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100

_REMEDIES = {
    "entry": "Give the calls made before observation began, 0 for a turn seen from its start",
    "exit": "Give the last call at risk: N if ended, calls issued − 1 if cut (−1 for none)",
    "count": "Give how many turns the row stands for; apply signed changes before",
    "calls": "Give the tool calls issued in the turn",
    "role": "Give the index of the row's role in the names of the roles",
    "weight": "Give a turn's weight, such as ½ to the power of its age in half-lives",
    "squared": "Give the sum of the squared weights of the row's turns",
}


def whole_number(field: str, value: int, *, low: int = 0) -> int:
    """Return a parameter as an int.

    Raises
    ------
    InputError
        If it is not a whole number from `low` on.
    """
    try:
        number = index(value)
    except TypeError:
        number = low - 1
    if number < low:
        raise InputError(
            f"not a whole number from {low} on", where=field, value=value, remedy="Give an integer"
        )
    return number


def whole_numbers(field: str, values: ArrayLike, *, low: int, high: int) -> NDArray[np.int64]:
    """Return a column as whole numbers within bounds.

    Parameters
    ----------
    field : str
        The column's name, for the message.
    values : array_like of shape (rows,)
        Integers, or floats that hold whole numbers.
    low, high : int
        The bounds, both legal.

    Raises
    ------
    InputError
        If a value is not a whole number within them (NaN is none), or the shape is another.
    """
    array = _numbers(field, values, "not whole numbers")
    integers = array.dtype.kind in "iu"
    # The extremes of millions of integers are found without a copy of them.
    if integers and array.size and array.min() >= low and array.max() <= high:
        return array.astype(np.int64, copy=False)
    # Written so that NaN fails it.
    legal = (array >= low) & (array <= high) & (integers | (np.floor(array) == array))
    if not legal.all():
        index = int(np.argmin(legal))
        raise InputError(
            f"not a whole number from {low} to {high}",
            where=f"{field}[{index}]",
            value=array[index].item(),
            remedy=_REMEDIES[field],
        )
    return array.astype(np.int64, copy=False)


def weights(field: str, values: ArrayLike, high: float = MAX_WEIGHT) -> NDArray[np.float64]:
    """Return a column as weights: finite, not negative.

    Parameters
    ----------
    field : str
        The column's name, for the message.
    values : array_like of shape (rows,)
    high : float
        The greatest legal one.

    Raises
    ------
    InputError
        If a weight is negative, NaN or above `high`, or the shape is another.
    """
    numbers = _numbers(field, values, "not weights").astype(np.float64, copy=False)
    legal = (numbers >= 0) & (numbers <= high)
    if not legal.all():
        index = int(np.argmin(legal))
        raise InputError(
            f"not a weight from 0 to {high:g}",
            where=f"{field}[{index}]",
            value=float(numbers[index]),
            remedy=_REMEDIES[field],
        )
    return numbers


def weights_with_squares(
    count: ArrayLike, squared: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Σw and Σw² of rows, each pair one that weights can have.

    Raises
    ------
    InputError
        As for `weights`, or if Σw² is not above 0 and at most (Σw)², or the lengths differ.
    """
    sums, squares = weights("count", count), weights("squared", squared, MAX_WEIGHT**2)
    same_length(("count", "squared"), (sums, squares))
    # A sum of squares exceeds the squared sum by rounding only, which may be that of a heavier
    # turn that has left its cell.
    rounding = 1e-12 * squares.max(initial=0.0)
    possible = (squares <= sums**2 * (1 + 1e-9) + rounding) & (squares > 0)
    possible |= sums < MIN_WEIGHT
    if not possible.all():
        index = int(np.argmin(possible))
        raise InputError(
            f"no weights that add up to {sums[index]:g} have squares that add up to this",
            where=f"squared[{index}]",
            value=float(squares[index]),
            remedy=_REMEDIES["squared"],
        )
    return sums, squares


def truths(field: str, values: ArrayLike) -> NDArray[np.bool_]:
    """Return a column as truth values.

    Raises
    ------
    InputError
        If a value is neither a truth value nor 0 or 1, or the shape is another.
    """
    array = _one_dimensional(field, values)
    whole = array.dtype.kind == "b" or (array.dtype.kind in "iu" and np.isin(array, (0, 1)).all())
    if array.size and not whole:
        raise InputError(
            "not truth values",
            where=field,
            value=array.tolist(),
            remedy="Give True for an ended turn and False for a cut one",
        )
    return array.astype(np.bool_, copy=False)


def same_length(names: tuple[str, ...], columns: tuple[NDArray[np.generic], ...]) -> None:
    """Refuse columns that differ in length.

    Raises
    ------
    InputError
        If they do.
    """
    lengths = [column.shape[0] if column.ndim == 1 else column.shape for column in columns]
    if len(set(lengths)) > 1:
        raise InputError(
            "the columns differ in length",
            where=", ".join(names),
            value=lengths,
            remedy="Give one value a row in each of them",
        )


def refuse_ends_before_entry(
    entry: NDArray[np.int64], exit_: NDArray[np.int64], ended: NDArray[np.bool_]
) -> None:
    """Refuse an ended turn whose calls are fewer than those before observation began.

    Raises
    ------
    InputError
        If there is one. An end at the entry itself is legal, and carries no exposure.
    """
    impossible = ended & (exit_ < entry)
    if impossible.any():
        index = int(np.argmax(impossible))
        raise InputError(
            f"an ended turn has its exit before its entry of {entry[index]}",
            where=f"exit[{index}]",
            value=int(exit_[index]),
            remedy="Count the calls from the start of the turn, those before entry included",
        )


def _numbers(field: str, values: ArrayLike, problem: str) -> NDArray[Any]:
    array = _one_dimensional(field, values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iuf":
        raise InputError(problem, where=field, value=array.tolist(), remedy=_REMEDIES[field])
    return array


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
