"""The life table of a role: from a histogram of turns to m(i), its interval and its odds."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compactuary.errors import InputError
from estimator.age_estimates import Thresholds, age_estimates
from estimator.conditional_survival import ConditionalSurvival, median_by_age
from estimator.exposure import exposed_cells, rows_of
from estimator.histogram import Histogram
from estimator.interval import log_mean_variance
from estimator.mean_residual_life import mean_residual_life
from estimator.turn_rows import whole_number
from estimator.whole_median import WholeMedian, observed_median

__all__ = ["AgeRow", "LifeTable", "life_table", "mean_residual_life"]


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
    at_risk: float
    ended: float
    ends: float
    at_risk_effective: float
    ends_effective: float
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
    at_risk : ndarray of int64, of float64 where turns have weights, shape (τ + 1,)
        n_{i+1}, turns at risk for call i+1, or their weight.
    ended : ndarray of the same type, shape (τ + 1,)
        d_{i+1}, turns that ended with call i+1, or their weight.
    ends : ndarray of the same type, shape (τ + 1,)
        D, ends beyond the age, or their weight.
    at_risk_effective, ends_effective : ndarray of float, shape (τ + 1,)
        Effective sizes (Σw)²/Σw² of n and D, which τ, V and the interval rest on; equal to them
        where every turn weighs 1.
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
    turns : int or float
        Turns in the histogram, or their weight.
    turns_with_a_call : int or float
        Turns known to have made a call, or their weight.
    level : float
        Two-sided level of the interval.
    observed_median : int or None
        The Kaplan-Meier median of whole turns, in calls, also where it lies past τ; None where
        the turns are too few, or too many of them cut, to tell. See `whole_median`.
    sessions : ndarray of int64, shape (τ + 1,), or None
        Sessions with an end beyond the age, which the interval rests on in place of D; None
        where turns are taken as independent. See `clustering`.
    """

    at_risk: NDArray[np.int64] | NDArray[np.float64]
    ended: NDArray[np.int64] | NDArray[np.float64]
    ends: NDArray[np.int64] | NDArray[np.float64]
    at_risk_effective: NDArray[np.float64]
    ends_effective: NDArray[np.float64]
    hazard: NDArray[np.float64]
    survival: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    continue_probability: NDArray[np.float64]
    tail_share: NDArray[np.float64]
    turns: float
    turns_with_a_call: float
    level: float
    observed_median: int | None = None
    sessions: NDArray[np.int64] | None = None

    @property
    def tail_age(self) -> int:
        """τ, the age from which on m is constant, in calls."""
        return len(self.mean) - 1

    @property
    def total_ends(self) -> float:
        """Ends at call 1 or later, or their weight."""
        ends: int | float = self.ends[0].item()
        return ends

    @property
    def overall_mean(self) -> float:
        """m(0), the mean calls of a turn that makes any."""
        return float(self.mean[0])

    @property
    def restricted_mean(self) -> NDArray[np.float64]:
        """The part of `mean` that is made up to the tail age: data, not the open interval."""
        return self.mean * (1.0 - self.tail_share)

    @property
    def medians(self) -> NDArray[np.int64]:
        """The median residual life at every age up to τ, in calls; computed on access."""
        return median_by_age(self.hazard[:-1], float(self.mean[-1]))

    @property
    def whole_median(self) -> WholeMedian:
        """The median of whole turns as tables print it: observed, else that of the open tail."""
        if self.observed_median is not None:
            return WholeMedian(self.observed_median, extrapolated=False)
        return WholeMedian(self.median(0), extrapolated=True)

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
        age, tail = whole_number("age", age), self.tail_age
        row, beyond = min(age, tail), max(age - tail, 0)
        go_on = 1.0 - float(self.hazard[tail])
        return AgeRow(
            age=age,
            at_risk=self.at_risk[row].item(),
            ended=self.ended[row].item(),
            ends=self.ends[row].item(),
            at_risk_effective=float(self.at_risk_effective[row]),
            ends_effective=float(self.ends_effective[row]),
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
        calls = _whole_calls(remaining)
        return float(self._from(age).probability(calls)[0])

    def probability_interval(self, age: int, remaining: float) -> tuple[float, float]:
        """Bound P(N − age > remaining | N > age) at the table's level.

        Parameters
        ----------
        age, remaining
            As for `probability_more_than`.

        Returns
        -------
        lower, upper : float
            Wilson's interval on n_eff = P(1−P)/V, V being Greenwood's variance with that of the
            open interval. P of 0 rests on the number at risk at the age, P of 1 on that for the
            last call asked about.

        Raises
        ------
        InputError
            As for `probability_more_than`.

        Notes
        -----
        The model, §2.
        """
        calls = _whole_calls(remaining)
        lower, upper = self._from(age).interval(calls, self.level)
        return float(lower[0]), float(upper[0])

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
        return self._from(age).median()

    def median_interval(self, age: int) -> tuple[int, int | None]:
        """Bound the median residual life by inverting the interval of P, at the table's level.

        Parameters
        ----------
        age : int
            i ≥ 0, calls made.

        Returns
        -------
        lower, upper : int, int or None
            The first k at which the lower, and the upper, bound of P(N − age > k | N > age) is
            at most ½. None where the upper one never is: the turns are too few to tell.

        Raises
        ------
        InputError
            If the age is negative or not whole.
        """
        return self._from(age).median_interval(self.level)

    def _from(self, age: int) -> ConditionalSurvival:
        row = min(whole_number("age", age), self.tail_age)
        size = self.ends_effective if self.sessions is None else self.sessions
        last = slice(-1, None)
        spread = log_mean_variance(self.mean[last], self.variance[last], size[last])
        return ConditionalSurvival(
            hazard=self.hazard[row:-1],
            at_risk=self.at_risk_effective[row:],
            tail_mean=float(self.mean[-1]),
            tail_log_variance=float(spread[0]),
        )


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
    thresholds = Thresholds(min_at_risk, min_ends, level)
    if histogram.ends == 0:
        raise InputError(
            "no turn ended at a call it was at risk for",
            where="histogram",
            value=f"{histogram.turns} turns, 0 ends",
            remedy="Estimate from all roles together until this one has an end",
        )
    return _table(histogram, thresholds)


def _table(histogram: Histogram, thresholds: Thresholds) -> LifeTable:
    estimates = age_estimates(exposed_cells([rows_of(histogram)]), thresholds)
    exposure = estimates.exposure
    go_on = 1.0 - estimates.hazard[0, :-1]
    mean = estimates.mean[0]
    # Not S(τ)/S(i): S may be 0 at an age that late entrants still pass.
    reach_tail = np.append(np.cumprod(go_on[::-1])[::-1], 1.0)
    # Whole counts stay whole; weights stay weights.
    kind = histogram.count.dtype
    return LifeTable(
        at_risk=exposure.at_risk[0].astype(kind),
        ended=exposure.ended[0].astype(kind),
        ends=exposure.ends[0].astype(kind),
        at_risk_effective=exposure.at_risk_effective[0].copy(),
        ends_effective=exposure.ends_effective[0].copy(),
        hazard=estimates.hazard[0],
        survival=np.append(1.0, np.cumprod(go_on)),
        mean=mean,
        variance=estimates.variance[0],
        lower=estimates.lower[0],
        upper=estimates.upper[0],
        continue_probability=np.append(_any_call(histogram), go_on),
        tail_share=reach_tail * mean[-1] / mean,
        turns=histogram.turns,
        turns_with_a_call=histogram.turns_with_a_call,
        level=thresholds.level,
        observed_median=observed_median(
            estimates.whole_exposure.ended[0], estimates.whole_exposure.at_risk[0]
        ),
    )


def _any_call(histogram: Histogram) -> float:
    """P(N > 0), from the turns at risk at call 0."""
    asked = (histogram.entry == 0) & (histogram.exit >= 0)
    turns = float(histogram.count[asked].sum())
    none = float(histogram.count[asked & histogram.ended & (histogram.exit == 0)].sum())
    return max(0.0, 1.0 - none / turns) if turns else 1.0


def _whole_calls(remaining: float) -> NDArray[np.int64]:
    if not (math.isfinite(remaining) and remaining >= 0):
        raise InputError(
            "the remaining calls are negative or not finite",
            where="remaining",
            value=remaining,
            remedy="Give a number of calls from 0 on",
        )
    return np.array([math.floor(remaining)])
