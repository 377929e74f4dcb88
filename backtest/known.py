"""What was known at a time: the turns that had ended by then, and sessions as far as those go."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backtest.sequences import Sequences

__all__ = ["growth_so_far", "known_before", "turns_alone"]

#: A wait that has lasted for less than a day is still open: it counts neither way.
_OPEN_SECONDS = 86_400.0


def known_before(sequences: Sequences, at_seconds: float) -> Sequences | None:
    """Return what a rule may learn from at a time.

    Parameters
    ----------
    sequences : Sequences
        Units with known times.
    at_seconds : float
        Since 1970.

    Returns
    -------
    Sequences or None
        Turns whose last request was made before the time; of a session that goes on, its turns up
        to there. The wait behind them counts as one without a return only where it has lasted for
        a day. None where no turn is left.
    """
    lasts = np.flatnonzero(sequences.last)
    turn = np.cumsum(np.append(0, sequences.last[:-1]))
    rows = sequences.at_seconds[lasts][turn] < at_seconds
    if not rows.any():
        return None
    kept = _rows(sequences, rows)
    ends = kept.begins[1:] - 1
    waits = kept.waits.copy()
    waits[ends] &= at_seconds - kept.at_seconds[ends] >= _OPEN_SECONDS
    return replace(kept, waits=waits)


def growth_so_far(sequences: Sequences) -> Sequences:
    """Return the same, with nothing of a unit's later growth in its earlier one.

    Parameters
    ----------
    sequences : Sequences
        Where the agent compacted, growth is not known and its unit's median stands in. Here it is
        the median of what went before, 0 where nothing did.
    """
    context, begins = sequences.context_tokens, sequences.begins
    growth = sequences.growth_tokens.copy()
    fell = np.flatnonzero((np.diff(context, prepend=context[0]) < 0) & ~sequences.first)
    for row in fell.tolist():
        begin = int(begins[np.searchsorted(begins, row, side="right") - 1])
        told = np.diff(context[begin:row])
        growth[row] = np.median(told[told >= 0]) if (told >= 0).any() else 0.0
    return replace(sequences, growth_tokens=growth)


def turns_alone(sequences: Sequences) -> Sequences:
    """Return every turn as a unit of its own, so that nothing counts beyond its end.

    Parameters
    ----------
    sequences : Sequences
        Whose turns. Each begins with the context that it had.
    """
    first = sequences.age == 0
    begins = np.append(np.flatnonzero(first), sequences.requests)
    return replace(
        sequences,
        **_of_units(sequences, sequences.unit[begins[:-1]]),
        begins=begins.astype(np.int64),
        growth_tokens=np.where(first, 0.0, sequences.growth_tokens),
        gap_seconds=np.where(first, 0.0, sequences.gap_seconds),
    )


def _rows(sequences: Sequences, rows: NDArray[np.bool_]) -> Sequences:
    """Return the beginnings of units; those of which nothing is left are left out."""
    lengths = np.bincount(sequences.unit[rows], minlength=sequences.units)
    kept = np.flatnonzero(lengths)
    columns = {
        field.name: getattr(sequences, field.name)[rows]
        for field in fields(sequences)
        if field.name not in (*_BY_UNIT, "begins")
    }
    begins = np.append(0, np.cumsum(lengths[kept])).astype(np.int64)
    return Sequences(**_of_units(sequences, kept), begins=begins, **columns)


_BY_UNIT = ("project", "session", "role", "main")


def _of_units(sequences: Sequences, units: NDArray[np.int64]) -> dict[str, Any]:
    names = {
        name: tuple(getattr(sequences, name)[place] for place in units.tolist())
        for name in ("project", "session", "role")
    }
    return {**names, "main": sequences.main[units]}
