"""P(N − i > k | N > i): the odds that a turn of age i goes on for more than k calls."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimator.turn_rows import MAX_CALLS
from estimator.wilson import wilson_interval

# A product of hazards that equals ½ on paper may exceed it by rounding.
HALF = 0.5 + 1e-12


@dataclass(frozen=True, slots=True)
class ConditionalSurvival:
    """The odds of a turn of one age i, for every number of further calls.

    Parameters
    ----------
    hazard : ndarray of float, shape (L,)
        h_{i+1} … h_τ, those met from the age on below the tail age; empty from τ on.
    at_risk : ndarray of float, shape (L + 1,)
        n_{i+1} … n_{τ+1}, of weighted turns effective numbers.
    tail_mean : float
        m(τ), in calls; past τ the hazard is 1/m(τ).
    tail_log_variance : float
        Variance of log m(τ).

    Notes
    -----
    The model, §2. Turns are taken as independent, also where the interval for m is not.
    """

    hazard: NDArray[np.float64]
    at_risk: NDArray[np.float64]
    tail_mean: float
    tail_log_variance: float

    def probability(self, calls: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give P(N − i > k | N > i) for each k ≥ 0 in `calls`."""
        inside, past = self._split(calls)
        within = np.append(1.0, np.cumprod(1.0 - self.hazard))
        odds: NDArray[np.float64] = within[inside] * self._tail_go_on**past
        return odds

    def interval(
        self, calls: NDArray[np.int64], level: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give the Wilson interval of each of those odds, on their effective size.

        Parameters
        ----------
        calls : ndarray of int, shape (k,)
            Further calls, ≥ 0.
        level : float
            Two-sided.

        Returns
        -------
        lower, upper : ndarray of float, shape (k,)
        """
        return wilson_interval(self.probability(calls), self.effective_size(calls), level)

    def effective_size(self, calls: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give n_eff = P(1−P)/V for each k in `calls`, V being Greenwood's variance of P.

        Past τ, V takes in that of m(τ). Where P is 0 it is the number at risk at the age, where
        P is 1 that for the last call asked about; of k = 0 it is infinite, for N > i is given.
        """
        inside, past = self._split(calls)
        odds = self.probability(calls)
        go_on = 1.0 - self.hazard
        share = np.divide(
            self.hazard,
            go_on * np.maximum(self.at_risk[:-1], 1.0),
            out=np.zeros_like(go_on),
            where=go_on > 0,
        )
        log_variance = np.append(0.0, np.cumsum(share))[inside]
        if self.tail_mean > 1:
            # log P = … + k·log(1 − 1/m), whose derivative by log m is k/(m − 1).
            log_variance += (past / (self.tail_mean - 1)) ** 2 * self.tail_log_variance
        size = np.where(odds == 0, self.at_risk[0], self.at_risk[np.maximum(inside - 1, 0)])
        between = (odds > 0) & (odds < 1)
        size[between] = (1 - odds[between]) / (odds[between] * log_variance[between])
        size[calls == 0] = np.inf
        return size

    def median(self) -> int:
        """Give the smallest k with P(N − i > k | N > i) ≤ ½, in calls; at least 1."""
        within = np.append(1.0, np.cumprod(1.0 - self.hazard))
        passed = within <= HALF
        if passed.any():
            return int(np.argmax(passed))
        return self.hazard.size + calls_to_half(float(within[-1]), self.tail_mean)

    def median_interval(self, level: float) -> tuple[int, int | None]:
        """Give the k at which the lower and the upper bound of P first reach ½.

        Parameters
        ----------
        level : float
            Two-sided.

        Returns
        -------
        lower, upper : int, int or None
            In calls, at least 1. None where no number of calls up to a million is enough.
        """
        lower = self._first_at_half(lambda calls: self.interval(calls, level)[0])
        upper = self._first_at_half(lambda calls: self.interval(calls, level)[1])
        # The lower bound of P is at most P, which reaches ½ at the median.
        return self.median() if lower is None else lower, upper

    def _first_at_half(
        self, bound: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    ) -> int | None:
        start, stop = 1, self.hazard.size + 64
        while start <= MAX_CALLS:
            calls = np.arange(start, stop)
            passed = bound(calls) <= HALF
            if passed.any():
                return int(calls[np.argmax(passed)])
            if self.tail_mean == 1:
                # Every turn ends at the first call past τ, so nothing changes any more.
                return None
            start, stop = stop, 2 * stop
        return None

    def _split(self, calls: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Part calls into those within the table and those past its tail age."""
        inside = np.minimum(calls, self.hazard.size)
        return inside, calls - inside

    @property
    def _tail_go_on(self) -> float:
        return 1.0 - 1.0 / self.tail_mean


def calls_to_half(odds: float, tail_mean: float) -> int:
    """Give the calls past the tail age after which odds above ½ have come down to ½."""
    go_on = 1.0 - 1.0 / tail_mean
    return math.ceil(math.log(HALF / odds) / math.log(go_on)) if go_on > 0 else 1


def median_by_age(hazard: NDArray[np.float64], tail_mean: float) -> NDArray[np.int64]:
    """Give the median residual life at every age at once.

    Parameters
    ----------
    hazard : ndarray of float, shape (τ,)
        h_1 … h_τ.
    tail_mean : float
        m(τ), in calls.

    Returns
    -------
    ndarray of int, shape (τ + 1,)
        In calls, at least 1.
    """
    tail_age = hazard.size
    certain = hazard >= 1
    # A certain end is looked for apart, since its logarithm is not finite.
    lost = -np.log1p(-np.where(certain, 0.0, hazard))
    lost = np.append(0.0, np.cumsum(lost))
    reached = np.searchsorted(lost, lost - math.log(HALF))
    ends_at = np.where(certain, np.arange(1, tail_age + 1), tail_age + 1)
    next_end = np.append(np.minimum.accumulate(ends_at[::-1])[::-1], tail_age + 1)
    reached = np.minimum(reached, next_end)
    ages = np.arange(tail_age + 1)
    go_on = 1.0 - 1.0 / tail_mean
    left = -math.log(HALF) - (lost[-1] - lost)
    beyond = np.ceil(left / -math.log(go_on)) if go_on > 0 else np.ones(tail_age + 1)
    median = np.where(reached <= tail_age, reached - ages, tail_age - ages + beyond)
    return median.astype(np.int64)
