"""The crossing: from how many calls ahead a compaction more often pays than not."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError
from estimator.student_t import normal_quantile

__all__ = ["Crossing", "crossing"]

_Numbers = NDArray[np.float64]

#: Nobody has more calls ahead, on the scale of log(1 + calls).
_FARTHEST = math.log1p(1e9)
#: Halvings of an interval, far below the precision of what is printed.
_STEPS = 50
#: A step of Newton that is relatively smaller leaves an error of its square.
_CLOSE = 1e-9
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, slots=True)
class Crossing:
    """Calls ahead at which P(paid) is ½.

    Parameters
    ----------
    cases, paid : int
        Compactions it is fitted to, and those of them that paid.
    calls : float or None
        Of the fitted curve; None where the data separate, or tell no crossing.
    lower, upper : float or None
        Profile-likelihood interval; `upper` is None where nothing bounds it, both where `reason`
        says that there is no crossing.
    most_lost, least_paid : int or None
        Most calls ahead of one that did not pay, and fewest of one that did.
    separable : bool
        Whether all that paid had more ahead than all that did not: the crossing then lies
        between the two, and nothing tells where.
    reason : str
        Why there is no crossing; empty where there is one.
    """

    cases: int
    paid: int
    calls: float | None = None
    lower: float | None = None
    upper: float | None = None
    most_lost: int | None = None
    least_paid: int | None = None
    separable: bool = False
    reason: str = ""


def crossing(calls_ahead: ArrayLike, paid: ArrayLike, level: float = 0.9) -> Crossing:
    """Fit P(paid) = 1/(1 + exp(−b·(x − c))) with x = log(1 + calls ahead) and b ≥ 0.

    Parameters
    ----------
    calls_ahead : array_like of int, shape (cases,)
        Tool calls or requests that remained; exact ones only.
    paid : array_like of bool, shape (cases,)
    level : float, default 0.9
        Of the interval, two-sided.

    Raises
    ------
    InputError
        The two differ in length, or a number of calls is negative or not finite.

    Notes
    -----
    Whether a compaction pays depends on n against its own C/s, and these differ by ratios: hence
    the logarithm. The interval holds every c whose likelihood, at its best slope, is within
    χ²₁/2 of the best one [1]_; unlike Wald's it also exists for data that separate. Compactions
    count as independent.

    References
    ----------
    .. [1] D. J. Venzon and S. H. Moolgavkar, "A method for computing profile-likelihood-based
       confidence intervals", Applied Statistics 37 (1988), 87-94.

    Examples
    --------
    >>> found = crossing([2, 5, 9, 17, 30], [False, False, False, True, True])
    >>> found.separable, found.most_lost, found.least_paid
    (True, 9, 17)
    """
    ahead = np.asarray(calls_ahead, dtype=np.float64)
    won = np.asarray(paid, dtype=np.bool_)
    _check(ahead, won)
    if won.all() or not won.any():
        reason = "all have the same verdict" if won.size else "no compaction was judged"
        return Crossing(int(ahead.size), int(won.sum()), reason=reason)
    return _fitted(ahead, won, level)


def _fitted(ahead: _Numbers, won: NDArray[np.bool_], level: float) -> Crossing:
    most_lost, least_paid = int(ahead[~won].max()), int(ahead[won].min())
    told = Crossing(int(ahead.size), int(won.sum()), None, None, None, most_lost, least_paid)
    fit = _Fit(np.log1p(ahead), np.where(won, 1.0, -1.0))
    separable = most_lost < least_paid
    if separable:
        best = (math.log1p(most_lost) + math.log1p(least_paid)) / 2.0
    else:
        best = _highest(fit.profile, 0.0, _FARTHEST)
    if fit.slope(best) <= 0.0:
        return replace(told, reason="P(paid) does not rise with calls ahead")
    least = fit.profile(best) - normal_quantile(level) ** 2 / 2.0
    lower, upper = (_end(fit.profile, least, best, far) for far in (0.0, _FARTHEST))
    return replace(
        told,
        calls=None if separable else math.expm1(best),
        lower=0.0 if lower is None else math.expm1(lower),
        upper=None if upper is None else math.expm1(upper),
        separable=separable,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The likelihood of a crossing c at the slope that suits it best; `sign` is ±1 for paid."""

    x: _Numbers
    sign: _Numbers

    def slope(self, c: float) -> float:
        """Return the best b ≥ 0, infinite where c separates."""
        distance = self.sign * (self.x - c)
        if (distance >= 0).all():
            return math.inf
        if distance.sum() <= 0:
            return 0.0
        low, high = 0.0, 1.0
        while _pull(distance, high)[0] > 0:
            low, high = high, 2.0 * high
        slope = (low + high) / 2.0
        for _ in range(_STEPS):
            pull, bend = _pull(distance, slope)
            low, high = (slope, high) if pull > 0 else (low, slope)
            # Newton's step, or a half where it leads out of what holds the root.
            last, slope = slope, slope + pull / bend if bend else high
            if not low < slope < high:
                slope = (low + high) / 2.0
            if abs(slope - last) <= _CLOSE * slope:
                break
        return slope

    def profile(self, c: float) -> float:
        """Return the log-likelihood at c and its best slope."""
        distance = self.sign * (self.x - c)
        slope = self.slope(c)
        if math.isinf(slope):
            return -math.log(2.0) * int((distance == 0).sum())
        return -float(np.logaddexp(0.0, -slope * distance).sum())


def _pull(distance: _Numbers, slope: float) -> tuple[float, float]:
    """Return the derivative of the log-likelihood by the slope, and how fast it falls."""
    miss = 1.0 / (1.0 + np.exp(np.minimum(slope * distance, 700.0)))
    pulls = distance * miss
    return float(pulls.sum()), float(pulls @ (distance * (1.0 - miss)))


def _highest(value: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with one top is highest, by golden sections."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    of_left, of_right = value(left), value(right)
    for _ in range(_STEPS):
        if of_left >= of_right:
            high, right, of_right = right, left, of_left
            left = high - _GOLDEN * (high - low)
            of_left = value(left)
        else:
            low, left, of_left = left, right, of_right
            right = low + _GOLDEN * (high - low)
            of_right = value(right)
    return (low + high) / 2.0


def _end(
    value: Callable[[float], float], least: float, inside: float, outside: float
) -> float | None:
    """Return where a function falls below a level on the way out, or None where it does not."""
    if value(outside) >= least:
        return None
    for _ in range(_STEPS):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if value(middle) >= least else (inside, middle)
    return inside


def _check(ahead: _Numbers, won: NDArray[np.bool_]) -> None:
    if ahead.shape != won.shape or ahead.ndim != 1:
        raise InputError(
            "must be as many as there are verdicts",
            where="calls_ahead",
            value=ahead.shape,
            remedy="Give one number and one verdict a compaction",
        )
    wrong = ~(np.isfinite(ahead) & (ahead >= 0))
    if wrong.any():
        raise InputError(
            "must be 0 or more",
            where="calls_ahead",
            value=float(ahead[wrong][0]),
            remedy="Give numbers of calls that remained",
        )
