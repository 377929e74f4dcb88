"""Intervals for a mean residual life: multiplicative, since a remainder of calls can't be negative.

Both forms put the interval around log m. Nominal 90% covers .83-.93 at 5 to 100 turns for
geometric, Weibull and lognormal(1) lives (.75-.81 for heavier tails at 5 turns). Turns of one
session are not independent: `clustering` gives the variance, and the number of ends, that
respect sessions.
"""

import numpy as np
from numpy.typing import NDArray

from estimator.student_t import normal_quantile, t_quantile

# "Every role starts with the vote of 3 average turns."
CREDIBILITY_TURNS = 3

# Lives that are all equal leave this much of V where weights or sessions were added up.
_ROUNDING = 1e-20

_Numbers = NDArray[np.int64] | NDArray[np.float64]


def mean_interval(
    mean: NDArray[np.float64],
    variance: NDArray[np.float64],
    ends: _Numbers,
    level: float = 0.9,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bound a mean residual life: Student's form, and the credibility form where that has none.

    Parameters
    ----------
    mean : ndarray of float, shape (ages,) or (roles, ages)
        m(i), in calls, each ≥ 1.
    variance : ndarray of float, of the same shape
        V(i), the variance of the estimate m(i), in calls².
    ends : ndarray of int or float, of the same shape
        D(i), ends observed beyond the age (beyond the tail age, past it); of weighted turns
        their effective number, of clustered ones the sessions that have such an end.
    level : float, default 0.9
        Two-sided; 0.9 leaves 5% on each side.

    Returns
    -------
    lower, upper : ndarray of float, of the same shape
        m·exp(±t(D−1)·√(V·D/(D−1))/m); where D < 2 or V = 0 the credibility interval. Clipped at
        1 below: the next call is certain.

    Raises
    ------
    InputError
        If `level` is not between 0 and 1.

    Notes
    -----
    The model, §2.
    """
    usual = _has_spread(mean, variance, ends)
    freedom = np.where(usual, ends - 1, 1)
    width = t_quantile(freedom, level) * np.sqrt(variance * (ends / freedom)) / mean
    if not usual.all():
        rare = ~usual
        own = life_cv2(mean[rare], variance[rare], ends[rare])
        width[rare] = credibility_log_width(own, ends[rare], level)
    ratio = np.exp(width)
    return np.maximum(1.0, mean / ratio), mean * ratio


def log_mean_variance(
    mean: NDArray[np.float64], variance: NDArray[np.float64], ends: _Numbers
) -> NDArray[np.float64]:
    """Give the variance of log m that `mean_interval` rests on.

    Parameters
    ----------
    mean, variance, ends : ndarray, shape (ages,)
        As for `mean_interval`.

    Returns
    -------
    ndarray of float, shape (ages,)
        V·D/((D−1)·m²); where D < 2 or V = 0 that of the credibility interval, never 0.

    Notes
    -----
    The model, §2.
    """
    own = life_cv2(mean, variance, ends)
    usual = _has_spread(mean, variance, ends)
    return np.where(usual, own / np.maximum(ends, 1), _credibility_log_variance(own, ends))


def life_cv2(
    mean: NDArray[np.float64], variance: NDArray[np.float64], ends: _Numbers
) -> NDArray[np.float64]:
    """Estimate v, the squared coefficient of variation of a single residual life.

    Parameters
    ----------
    mean, variance, ends : ndarray, shape (ages,)
        As for `mean_interval`.

    Returns
    -------
    ndarray of float, shape (ages,)
        V·D²/((D−1)·m²); 1, that of a memoryless life, where D < 2.

    Notes
    -----
    The model, §2.
    """
    spread = variance * ends.astype(np.float64) ** 2 / (np.maximum(ends - 1, 1) * mean**2)
    return np.where(ends >= 2, spread, 1.0)


def credibility_log_width(
    own_cv2: NDArray[np.float64], ends: _Numbers, level: float = 0.9
) -> NDArray[np.float64]:
    """Give half the width, on the log scale, of a credibility interval.

    Parameters
    ----------
    own_cv2 : ndarray of float, shape (ages,)
        v of the role's own lives, as `life_cv2` gives it.
    ends : ndarray of int or float, shape (ages,)
        D, the ends that v and the mean rest on.
    level : float, default 0.9
        Two-sided.

    Returns
    -------
    ndarray of float, shape (ages,)
        z·√(cv²/(D+3)) with cv² = (D·v + 3)/(D+3): the vote of 3 turns has a cv of 1.

    Raises
    ------
    InputError
        If `level` is not between 0 and 1.

    Notes
    -----
    The model, §2.
    """
    return normal_quantile(level) * np.sqrt(_credibility_log_variance(own_cv2, ends))


def _credibility_log_variance(own_cv2: NDArray[np.float64], ends: _Numbers) -> NDArray[np.float64]:
    votes = ends + CREDIBILITY_TURNS
    return (ends * own_cv2 + CREDIBILITY_TURNS) / votes**2


def _has_spread(
    mean: NDArray[np.float64], variance: NDArray[np.float64], ends: _Numbers
) -> NDArray[np.bool_]:
    return (ends >= 2) & (variance > _ROUNDING * mean**2)
