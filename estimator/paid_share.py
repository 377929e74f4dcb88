"""How often more requests remained than the break-even, cut turns and alike sessions respected."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimator.wilson import wilson_interval

__all__ = ["PaidShare", "paid_share"]

_Floats = NDArray[np.float64]
_Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PaidShare:
    """A share of decisions for which more requests remained than the break-even.

    Parameters
    ----------
    decisions, paid, unpaid, undecided : int
        Those judged; those whose turn went past the break-even, those whose turn ended before it,
        and those whose turn was cut, or is open, before it: they add up.
    share : float or None
        Kaplan-Meier's P(n > C/s); None where no turn was seen far enough to tell it.
    lower, upper : float or None
        Wilson's interval on the effective number of decisions.
    """

    decisions: int
    paid: int
    unpaid: int
    undecided: int
    share: float | None = None
    lower: float | None = None
    upper: float | None = None


def paid_share(
    remaining: _Floats,
    ended: _Truths,
    break_even: _Floats,
    session: NDArray[np.int64],
    level: float = 0.9,
) -> PaidShare:
    """Estimate the share of decisions for which more requests remained than C/s.

    Parameters
    ----------
    remaining : ndarray of float, shape (decisions,)
        Requests that remained; of a turn without an end, those that at least did.
    ended : ndarray of bool, shape (decisions,)
        Whether the number is final.
    break_even : ndarray of float, shape (decisions,)
        C/s; infinite where nothing is saved, which never pays.
    session : ndarray of int, shape (decisions,)
        Equal for decisions of one session.
    level : float, default 0.9
        Two-sided.

    Returns
    -------
    PaidShare
        Without cut turns the share is the plain one.

    Notes
    -----
    A turn's requests are measured in break-evens, so that decisions with different ones share a
    scale on which 1 is the break-even, and the share is Kaplan-Meier's survival past 1 [1]_: a
    turn cut at half its break-even counts up to there. The variance adds up influences by session
    [2]_, and Wilson's interval takes the number of independent decisions that would have it.

    References
    ----------
    .. [1] E. L. Kaplan and P. Meier, "Nonparametric estimation from incomplete observations",
       Journal of the American Statistical Association 53 (1958), 457-481. Here: the model, §2.
    .. [2] K.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using generalized linear
       models", Biometrika 73 (1986), 13-22.

    Examples
    --------
    >>> share = paid_share(
    ...     np.array([5.0, 1.0, 4.0, 2.0]), np.array([True] * 4), np.full(4, 3.0), np.arange(4)
    ... )
    >>> share.paid, share.unpaid, share.share
    (2, 2, 0.5)
    """
    paid = remaining > break_even
    unpaid = ~paid & (ended | np.isinf(break_even))
    counts = (paid.size, int(paid.sum()), int(unpaid.sum()), int((~paid & ~unpaid).sum()))
    scaled = _scaled(remaining, break_even, paid)
    if not _seen_far_enough(scaled, paid, unpaid):
        return PaidShare(*counts)
    survival = _survival(scaled, unpaid)
    share = survival.share
    size = float(np.unique(session[paid | unpaid]).size)
    if 0 < share < 1:
        variance = _variance_by_session(survival, scaled, unpaid, session)
        size = 1.0 if variance is None else min(share * (1 - share) / variance, counts[0])
    lower, upper = wilson_interval(share, size, level)
    return PaidShare(*counts, share, float(lower[0]), float(upper[0]))


def _scaled(remaining: _Floats, break_even: _Floats, paid: _Truths) -> _Floats:
    """Return requests in break-evens: beyond all of them once paid, 0 where nothing can be paid."""
    positive = np.isfinite(break_even) & (break_even > 0)
    scaled = np.where(positive, remaining / np.where(positive, break_even, 1.0), 0.0)
    return np.where(paid, np.inf, scaled)


def _seen_far_enough(scaled: _Floats, paid: _Truths, unpaid: _Truths) -> bool:
    if paid.any():
        return True
    cut = scaled[~unpaid]
    return bool(unpaid.any()) and (not cut.size or scaled[unpaid].max() >= cut.max())


@dataclass(frozen=True, slots=True, eq=False)
class _Survival:
    """Kaplan-Meier over the times at which turns ended unpaid."""

    times: _Floats
    ends: _Floats
    at_risk: _Floats
    share: float


def _survival(scaled: _Floats, unpaid: _Truths) -> _Survival:
    times, ends = np.unique(scaled[unpaid], return_counts=True)
    # One that at least reached a time was not watched while others ended there.
    ended, others = np.sort(scaled[unpaid]), np.sort(scaled[~unpaid])
    at_risk = ended.size - np.searchsorted(ended, times, side="left")
    at_risk += others.size - np.searchsorted(others, times, side="right")
    share = float(np.prod(1.0 - ends / at_risk))
    return _Survival(times, ends.astype(np.float64), at_risk.astype(np.float64), share)


def _variance_by_session(
    survival: _Survival, scaled: _Floats, unpaid: _Truths, session: NDArray[np.int64]
) -> float | None:
    """Σ over sessions of the squared sum of influences on the share; None of one session alone."""
    left = survival.at_risk - survival.ends
    exposed = np.append(0.0, np.cumsum(survival.ends / (survival.at_risk * left)))
    passed = np.where(
        unpaid,
        np.searchsorted(survival.times, scaled, side="right"),
        np.searchsorted(survival.times, scaled, side="left"),
    )
    influence = survival.share * exposed[passed]
    influence[unpaid] -= survival.share / left[passed[unpaid] - 1]
    numbers = np.unique(session, return_inverse=True)[1]
    sums = np.bincount(numbers, influence)
    variance = float((sums**2).sum())
    return None if sums.size < 2 or not variance else variance * sums.size / (sums.size - 1)
