"""Intervals for a mean residual life: multiplicative, since a remainder of calls can't be negative.

Both forms put the interval around log m. Nominal 90% covers .83-.93 at 5 to 100 turns for
geometric, Weibull and lognormal(1) lives (.75-.81 for heavier tails at 5 turns). Turns of one
session are not independent, and no form here knows of sessions.
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from estimator.student_t import check_level, t_quantile

# "Every role starts with the vote of 3 average turns."
CREDIBILITY_TURNS = 3


def mean_interval(
    mean: NDArray[np.float64],
    variance: NDArray[np.float64],
    ends: NDArray[np.int64],
    level: float = 0.9,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bound a mean residual life: Student's form, and the credibility form where that has none.

    Parameters
    ----------
    mean : ndarray of float, shape (ages,)
        m(i), in calls, each ≥ 1.
    variance : ndarray of float, shape (ages,)
        V(i), the variance of the estimate m(i), in calls².
    ends : ndarray of int, shape (ages,)
        D(i), ends observed beyond the age (beyond the tail age, past it).
    level : float, default 0.9
        Two-sided; 0.9 leaves 5% on each side.

    Returns
    -------
    lower, upper : ndarray of float, shape (ages,)
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
    usual = (ends >= 2) & (variance > 0)
    freedom = np.where(usual, ends - 1, 1)
    log_width = t_quantile(freedom, level) * np.sqrt(variance * ends / freedom) / mean
    log_width = np.where(
        usual, log_width, credibility_log_width(life_cv2(mean, variance, ends), ends, level)
    )
    return np.maximum(1.0, mean * np.exp(-log_width)), mean * np.exp(log_width)


def life_cv2(
    mean: NDArray[np.float64], variance: NDArray[np.float64], ends: NDArray[np.int64]
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
    own_cv2: NDArray[np.float64], ends: NDArray[np.int64], level: float = 0.9
) -> NDArray[np.float64]:
    """Give half the width, on the log scale, of a credibility interval.

    Parameters
    ----------
    own_cv2 : ndarray of float, shape (ages,)
        v of the role's own lives, as `life_cv2` gives it.
    ends : ndarray of int, shape (ages,)
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
    check_level(level)
    votes = ends + CREDIBILITY_TURNS
    cv2 = (ends * own_cv2 + CREDIBILITY_TURNS) / votes
    return NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(cv2 / votes)
