"""A stopping problem, and its solution."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policy.rules.life import Life
from policy.rules.setting import Setting

__all__ = ["Array", "Problem", "Solution"]

Array = NDArray[np.float64]


class Problem(NamedTuple):
    """One role at one price set.

    Parameters
    ----------
    life, setting : Life, Setting
        The role's turns; prices, sizes and what happens after a turn.
    asked_share : float or None
        P(pause > the idle time at which the rule is asked) of sessions that go on, at least p_c;
        None where nobody asks while idle.
    """

    life: Life
    setting: Setting
    asked_share: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Thresholds of one problem, and the values that they come from.

    Parameters
    ----------
    at_call : tuple of (float or None)
        b*(i) for i = 0, 1, …; the last one holds beyond.
    at_turn_end, at_resume, at_idle : float or None
        b* at the end of a turn, on a cold cache, and while idle.
    context_tokens : ndarray of float, shape (points,)
        The grid, from X′ + L up; the values below are at its points.
    warm, cold, turn_end : ndarray of float, shape (points,)
        V_0, V_c and E, in base tokens.
    by_age : ndarray of float, shape (ages, points), or None
        V_i, where asked for.
    sweeps : int
        Times that all ages were solved.
    """

    at_call: tuple[float | None, ...]
    at_turn_end: float | None
    at_resume: float | None
    at_idle: float | None
    context_tokens: Array
    warm: Array
    cold: Array
    turn_end: Array
    by_age: Array | None
    sweeps: int

    def value(self, values: Array, context_tokens: float) -> float:
        """Return one of the values at a context on the grid, linear between its points."""
        return float(np.interp(context_tokens, self.context_tokens, values))
