"""Pauses: how long a session rests between turns, and whether it goes on at all."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["OVER_SECONDS", "PAUSE_SECONDS", "Pauses", "blended_pauses", "pauses"]

#: A session that has rested for a day is over.
OVER_SECONDS = 86_400.0
#: Where the survival of pauses is told: around the lives of caches, and beyond.
PAUSE_SECONDS = (
    *(5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 270.0, 300.0),
    *(450.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3300.0, 3600.0),
    *(5400.0, 7200.0, 14_400.0, 28_800.0, 57_600.0, OVER_SECONDS),
)
_GRID = np.array(PAUSE_SECONDS)


@dataclass(frozen=True, slots=True)
class Pauses:
    """What is known of the pauses after turns.

    Parameters
    ----------
    turns : int
        Turns of which it is known whether the session went on: it did, or it has rested for
        a day.
    resumed : int
        Those after which it did.
    resume_probability : float
        P(pause ≤ a day).
    survival : ndarray of float, shape (len(PAUSE_SECONDS),)
        P(pause > seconds | the session goes on).
    """

    turns: int
    resumed: int
    resume_probability: float
    survival: NDArray[np.float64]


def pauses(resumed_seconds: ArrayLike, waited_seconds: ArrayLike) -> Pauses:
    """Estimate the survival of pauses with Kaplan and Meier's product limit.

    Parameters
    ----------
    resumed_seconds : array_like of float, shape (n,)
        Pauses after which the session went on.
    waited_seconds : array_like of float, shape (k,)
        How long sessions have rested since their last turn until the log ends: cut, unless that
        is a day or more.

    Returns
    -------
    Pauses
        A pause of more than a day counts as an end.

    References
    ----------
    .. [1] E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations",
       Journal of the American Statistical Association 53 (1958), 457-481.
    """
    resumed = np.maximum(np.asarray(resumed_seconds, dtype=np.float64), 0.0)
    waited = np.maximum(np.asarray(waited_seconds, dtype=np.float64), 0.0)
    times, ends = np.unique(resumed[resumed <= OVER_SECONDS], return_counts=True)
    exits = np.sort(np.concatenate([resumed, waited]))
    at_risk = exits.size - np.searchsorted(exits, times, side="left")
    product = np.concatenate([[1.0], np.cumprod(1.0 - ends / at_risk)])
    survival = product[np.searchsorted(times, _GRID, side="right")]
    over = survival[-1]
    conditional = (survival - over) / (1 - over) if over < 1 else np.zeros_like(survival)
    rested = int((waited >= OVER_SECONDS).sum() + (resumed > OVER_SECONDS).sum())
    count = int(ends.sum())
    return Pauses(count + rested, count, float(1 - over), conditional)


def blended_pauses(
    own: Pauses | None, wider: Sequence[float], full: float
) -> tuple[NDArray[np.float64], float]:
    """Return a survival of pauses that borrows from a wider one, and its own credibility.

    Parameters
    ----------
    own : Pauses or None
    wider : sequence of float
        At the same seconds; empty where nothing is known.
    full : float
        K, pauses that weigh as much as what is borrowed.

    Returns
    -------
    survival : ndarray of float
        At `PAUSE_SECONDS`; empty where neither tells anything.
    z : float
    """
    if own is None or not own.resumed:
        return np.array(wider), 0.0
    if not len(wider):
        return own.survival, 1.0
    z = own.resumed / (own.resumed + full)
    return z * own.survival + (1 - z) * np.asarray(wider), z
