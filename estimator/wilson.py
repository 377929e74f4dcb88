"""Wilson's interval for a probability."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError
from estimator.student_t import normal_quantile


def wilson_interval(
    probability: ArrayLike, size: ArrayLike, level: float = 0.9
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bound a probability that was estimated from a number of trials.

    Parameters
    ----------
    probability : array_like of float, shape (k,) or scalar
        The estimates, 0 to 1.
    size : array_like of float, shape (k,) or scalar
        Trials that each rests on; an effective number may be a fraction. 0 bounds nothing and
        gives (0, 1), infinity gives the estimate itself.
    level : float, default 0.9
        Two-sided; 0.9 leaves 5% on each side.

    Returns
    -------
    lower, upper : ndarray of float, shape (k,), or (1,) for scalars
        Within 0 and 1, and around the estimate, also where that is 0 or 1.

    Raises
    ------
    InputError
        If a probability is not within 0 and 1, a size is negative or NaN, or `level` is not
        between 0 and 1.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
       Journal of the American Statistical Association 22 (1927), 209-212. Here: the model, §2.

    Examples
    --------
    >>> lower, upper = wilson_interval(15 / 148, 148, level=0.95)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([0.0624], [0.1605])
    """
    z = normal_quantile(level)
    odds, trials = np.broadcast_arrays(
        np.atleast_1d(np.asarray(probability, dtype=np.float64)),
        np.atleast_1d(np.asarray(size, dtype=np.float64)),
    )
    _refuse("probability", odds, (odds >= 0) & (odds <= 1), "Give numbers from 0 to 1")
    _refuse("size", trials, trials >= 0, "Give numbers of trials from 0 on")
    vague = trials == 0
    shrink = np.where(vague, 1.0, z**2 / np.where(vague, 1.0, trials))
    middle = odds + shrink / 2
    half = np.sqrt(odds * (1 - odds) * shrink + shrink**2 / 4)
    # Rounding must not push a bound past the estimate.
    lower = np.clip((middle - half) / (1 + shrink), 0.0, odds)
    upper = np.clip((middle + half) / (1 + shrink), odds, 1.0)
    return np.where(vague, 0.0, lower), np.where(vague, 1.0, upper)


def _refuse(field: str, values: NDArray[np.float64], legal: NDArray[np.bool_], remedy: str) -> None:
    if not legal.all():
        index = int(np.argmin(legal))
        raise InputError(
            "out of range", where=f"{field}[{index}]", value=float(values[index]), remedy=remedy
        )
