"""The life table of a role: from a histogram of turns to m(i), its interval and its odds."""

import math
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.interval import mean_interval
from estimator.mean_residual_life import mean_residual_life, mean_variance

__all__ = ["AgeRow", "LifeTable", "life_table", "mean_residual_life"]

# A product of hazards that equals ½ on paper may exceed it by rounding.
HALF = 0.5 + 1e-12


@dataclass(frozen=True, slots=True)
class AgeRow:
    """What the life table says at one age; the names are those of `LifeTable`.

    Parameters
    ----------
    age : int
        i, calls made.
    extrapolated : bool
        Whether the age is past the tail age, where every number but `survival` and
        `continue_probability` is that of the tail age.
    """

    age: int
    at_risk: int
    ended: int
    ends: int
    hazard: float
    survival: float
    mean: float
    variance: float
    lower: float
    upper: float
    continue_probability: float
    tail_share: float
    tail_age: int
    extrapolated: bool

    @property
    def restricted_mean(self) -> float:
        """The part of `mean` that is made up to the tail age, in calls: data, not the tail."""
        return self.mean * (1.0 - self.tail_share)


@dataclass(frozen=True, slots=True, eq=False)
class LifeTable:
    """A life table over ages 0 … τ with an open last interval; made by `life_table`.

    Element i of every array is of age i, that is of a turn that made i calls. τ is the tail age.

    Parameters
    ----------
    at_risk : ndarray of int64, shape (τ + 1,)
        n_{i+1}, turns at risk for call i+1.
    ended : ndarray of int64, shape (τ + 1,)
        d_{i+1}, turns that ended with call i+1.
    ends : ndarray of int64, shape (τ + 1,)
        D, ends beyond the age.
    hazard : ndarray of float, shape (τ + 1,)
        h_{i+1} = d/n (0 where nobody was at risk); at τ that of the open interval, 1/m(τ).
    survival : ndarray of float, shape (τ + 1,)
        S(i) = P(N > i | N > 0), the Kaplan-Meier estimate.
    mean : ndarray of float, shape (τ + 1,)
        m(i) = E[N−i | N > i], in calls, the next one included.
    variance : ndarray of float, shape (τ + 1,)
        V(i), the variance of the estimate m(i), in calls².
    lower, upper : ndarray of float, shape (τ + 1,)
        The interval for m(i) at `level`, in calls.
    continue_probability : ndarray of float, shape (τ + 1,)
        1 − h_i = P(N > i | N ≥ i): that the answer after call i asks for another. Age 0: that
        the turn makes a call at all (1 where no turn could tell).
    tail_share : ndarray of float, shape (τ + 1,)
        S(τ)m(τ)/(S(i)m(i)), the part of m(i) that rests on the open interval.
    turns : int
        Turns in the histogram.
    turns_with_a_call : int
        Turns known to have made a call.
    level : float
        Two-sided level of the interval.
    """

    at_risk: NDArray[np.int64]
    ended: NDArray[np.int64]
    ends: NDArray[np.int64]
    hazard: NDArray[np.float64]
    survival: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    continue_probability: NDArray[np.float64]
    tail_share: NDArray[np.float64]
    turns: int
    turns_with_a_call: int
    level: float

    @property
    def tail_age(self) -> int:
        """τ, the age from which on m is constant, in calls."""
        return len(self.mean) - 1

    @property
    def total_ends(self) -> int:
        """Ends at call 1 or later."""
        return int(self.ends[0])

    @property
    def overall_mean(self) -> float:
        """m(0), the mean calls of a turn that makes any."""
        return float(self.mean[0])

    def at(self, age: int) -> AgeRow:
        """Read the table at any age.

        Parameters
        ----------
        age : int
            i ≥ 0, calls made. Past τ the survival goes on geometrically with hazard 1/m(τ).

        Raises
        ------
        InputError
            If the age is negative or not whole.
        """
        age, tail = _whole("age", age), self.tail_age
        row, beyond = min(age, tail), max(age - tail, 0)
        go_on = 1.0 - float(self.hazard[tail])
        return AgeRow(
            age=age,
            at_risk=int(self.at_risk[row]),
            ended=int(self.ended[row]),
            ends=int(self.ends[row]),
            hazard=float(self.hazard[row]),
            survival=float(self.survival[row]) * go_on**beyond,
            mean=float(self.mean[row]),
            variance=float(self.variance[row]),
            lower=float(self.lower[row]),
            upper=float(self.upper[row]),
            continue_probability=go_on if beyond else float(self.continue_probability[row]),
            tail_share=float(self.tail_share[row]),
            tail_age=tail,
            extrapolated=beyond > 0,
        )

    def probability_more_than(self, age: int, remaining: float) -> float:
        """Give P(N − age > remaining | N > age).

        Parameters
        ----------
        age : int
            i ≥ 0, calls made.
        remaining : float
            Calls, ≥ 0; a break-even of 17.3 calls is passed by the same turns as one of 17.

        Returns
        -------
        float
            0 to 1; past τ with the hazard 1/m(τ).

        Raises
        ------
        InputError
            If the age is negative or not whole, or `remaining` negative or not finite.
        """
        age = _whole("age", age)
        if not (math.isfinite(remaining) and remaining >= 0):
            raise InputError(
                "the remaining calls are negative or not finite",
                where="remaining",
                value=remaining,
                remedy="Give a number of calls from 0 on",
            )
        calls = math.floor(remaining)
        within = self._survival_from(age)
        row = min(calls, len(within) - 1)
        return float(within[row] * (1.0 - self.hazard[-1]) ** (calls - row))

    def median(self, age: int) -> int:
        """Give the smallest k with P(N − age > k | N > age) ≤ ½, in calls.

        Parameters
        ----------
        age : int
            i ≥ 0, calls made.

        Returns
        -------
        int
            At least 1: the next call is certain.

        Raises
        ------
        InputError
            If the age is negative or not whole.
        """
        within = self._survival_from(_whole("age", age))
        passed = within <= HALF
        if passed.any():
            return int(np.argmax(passed))
        go_on = 1.0 - float(self.hazard[-1])
        beyond = math.log(HALF / within[-1]) / math.log(go_on) if go_on > 0 else 1.0
        return len(within) - 1 + math.ceil(beyond)

    def _survival_from(self, age: int) -> NDArray[np.float64]:
        """Give P(N > age + k | N > age) for k = 0 … τ − age; past τ for k = 0 only."""
        go_on = np.append(1.0, 1.0 - self.hazard[age:-1])
        survival: NDArray[np.float64] = np.cumprod(go_on)
        return survival


def life_table(
    histogram: Histogram, *, min_at_risk: int = 20, min_ends: int = 3, level: float = 0.9
) -> LifeTable:
    """Estimate the life table of the turns in a histogram.

    Parameters
    ----------
    histogram : Histogram
        The turns, cut ones included: leaving those out biases m downward.
    min_at_risk, min_ends : int, default 20 and 3
        The open interval starts at τ, the last age with so many turns at risk for the next call
        and so many ends beyond, or at 0. Smaller numbers follow fewer turns further out.
    level : float, default 0.9
        Two-sided level of the intervals; 0.9 leaves 5% on each side.

    Returns
    -------
    LifeTable
        Up to τ it equals Kaplan-Meier [1]_, and without cut turns and late entries m(i) is the
        plain mean of N−i over N > i. From τ on m = E/D, calls beyond τ ÷ ends beyond τ.

    Raises
    ------
    InputError
        If no end is beyond call 0 (m then needs other roles), or a parameter is out of range.

    References
    ----------
    .. [1] E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations",
       Journal of the American Statistical Association 53 (1958), 457-481. Here: the model, §2.

    Examples
    --------
    >>> turns = Histogram.from_turns(calls=[1, 2, 3, 4, 10], ended=[True] * 5)
    >>> table = life_table(turns, min_at_risk=1, min_ends=1)
    >>> table.mean[:5].round(3).tolist(), round(table.at(0).variance, 9), table.median(0)
    ([4.0, 3.75, 3.667, 4.0, 6.0], 2.0, 3)
    """
    _whole("min_at_risk", min_at_risk, low=1)
    _whole("min_ends", min_ends, low=1)
    if histogram.ends == 0:
        raise InputError(
            "no turn ended at a call it was at risk for",
            where="histogram",
            value=f"{histogram.turns} turns, 0 ends",
            remedy="Estimate from all roles together until this one has an end",
        )
    at_risk, ended = _exposure(histogram)
    ends = np.cumsum(ended[::-1])[::-1]
    enough = np.flatnonzero((at_risk >= min_at_risk) & (ends >= min_ends))
    ages = slice(int(enough[-1]) + 1 if enough.size else 1)
    return _table(histogram, at_risk[ages], ended[ages], ends[ages], level)


def _table(
    histogram: Histogram,
    at_risk: NDArray[np.int64],
    ended: NDArray[np.int64],
    ends: NDArray[np.int64],
    level: float,
) -> LifeTable:
    tail = _open_interval(histogram, len(at_risk) - 1)
    closed = ended[:-1] / np.maximum(at_risk[:-1], 1)
    mean = mean_residual_life(closed, tail.mean)
    variance = mean_variance(closed, at_risk[:-1], mean, tail.variance)
    lower, upper = mean_interval(mean, variance, ends, level)
    go_on = 1.0 - closed
    # Not S(τ)/S(i): S may be 0 at an age that late entrants still pass.
    reach_tail = np.append(np.cumprod(go_on[::-1])[::-1], 1.0)
    return LifeTable(
        at_risk=at_risk,
        ended=ended,
        ends=ends,
        hazard=np.append(closed, 1.0 / tail.mean),
        survival=np.append(1.0, np.cumprod(go_on)),
        mean=mean,
        variance=variance,
        lower=lower,
        upper=upper,
        continue_probability=np.append(_any_call(histogram), go_on),
        tail_share=reach_tail * tail.mean / mean,
        turns=histogram.turns,
        turns_with_a_call=histogram.turns_with_a_call,
        level=level,
    )


class _OpenInterval(NamedTuple):
    mean: float
    variance: float


def _open_interval(histogram: Histogram, tail_age: int) -> _OpenInterval:
    """m(τ) = E/D and V(τ) = Σ(e − m·δ)²/D² over the rows that pass τ."""
    exposure = histogram.exit - np.maximum(histogram.entry, tail_age)
    passes = exposure > 0
    exposure, count = exposure[passes], histogram.count[passes]
    ended = histogram.ended[passes]
    ends = float(count[ended].sum())
    mean = float(count @ exposure) / ends
    return _OpenInterval(mean, float(count @ (exposure - mean * ended) ** 2) / ends**2)


def _exposure(histogram: Histogram) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """n_{i+1} and d_{i+1} for every age i below the largest exit."""
    exposed = histogram.exit > histogram.entry
    entry, exit_ = histogram.entry[exposed], histogram.exit[exposed]
    count, ended = histogram.count[exposed], histogram.ended[exposed]
    ages = int(exit_.max())
    change = np.bincount(entry, count, ages + 1) - np.bincount(exit_, count, ages + 1)
    at_risk = np.cumsum(change)[:ages].astype(np.int64)
    return at_risk, np.bincount(exit_[ended] - 1, count[ended], ages).astype(np.int64)


def _any_call(histogram: Histogram) -> float:
    """P(N > 0), from the turns at risk at call 0."""
    asked = (histogram.entry == 0) & (histogram.exit >= 0)
    turns = int(histogram.count[asked].sum())
    none = int(histogram.count[asked & histogram.ended & (histogram.exit == 0)].sum())
    return 1.0 - none / turns if turns else 1.0


def _whole(field: str, value: int, *, low: int = 0) -> int:
    try:
        whole = index(value)
    except TypeError:
        whole = low - 1
    if whole < low:
        raise InputError(
            f"not a whole number from {low} on", where=field, value=value, remedy="Give an integer"
        )
    return whole
