"""The median of whole turns: a fact of the data where their curve comes down to one half."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimator.conditional_survival import HALF
from estimator.exposure import hazard_by_age

__all__ = ["WholeMedian", "observed_median"]


class WholeMedian(NamedTuple):
    """The calls that half of the turns with a call make at most.

    Parameters
    ----------
    calls : int
        The smallest k with P(N > k | N > 0) ≤ ½, at least 1.
    extrapolated : bool
        Whether it is the open tail's, since too many turns are cut for the curve to reach ½.
    """

    calls: int
    extrapolated: bool

    @property
    def text(self) -> str:
        """The number as tables print it, with a ~ where it is the open tail's."""
        return f"{self.calls:,}" + "~" * self.extrapolated


def observed_median(ended: NDArray[np.float64], at_risk: NDArray[np.float64]) -> int | None:
    """Give the Kaplan-Meier median of whole turns, however few of them are at risk there.

    Parameters
    ----------
    ended, at_risk : ndarray of float, shape (ages,)
        d_{i+1} and n_{i+1} at every age up to the last that a turn reaches, in turns or weights.

    Returns
    -------
    int or None
        The first k at which the estimate of P(N > k | N > 0) is at most ½, in calls; None where
        it stays above, or is unknown before it gets there since nobody was at risk.
    """
    reached = np.cumprod(1.0 - hazard_by_age(ended, at_risk)) <= HALF
    if not reached.any():
        return None
    first = int(np.argmax(reached))
    return first + 1 if (at_risk[:first] > 0).all() else None
