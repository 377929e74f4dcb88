"""Quantiles of Student's t distribution, by Hill's expansion, with numpy alone."""

from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError


def t_quantile(degrees_of_freedom: ArrayLike, level: float = 0.9) -> NDArray[np.float64]:
    """Give the t with P(−t < T < t) = `level`, one for each number of degrees of freedom.

    Parameters
    ----------
    degrees_of_freedom : array_like of shape (k,) or scalar
        Whole numbers from 1 on; for an interval on D ends this is D − 1.
    level : float, default 0.9
        The two-sided level; 0.9 leaves 5% on each side.

    Returns
    -------
    ndarray of float, shape (k,), or (1,) for a scalar
        Within 0.001% of the exact quantile for levels from 0.01 to 0.9999.

    Raises
    ------
    InputError
        If `level` is not between 0 and 1, or degrees of freedom are not whole numbers from 1 on.

    References
    ----------
    .. [1] G. W. Hill, "Algorithm 396: Student's t-quantiles", Communications of the ACM 13
       (1970), 619-620.

    Examples
    --------
    >>> t_quantile([1, 4, 1000], 0.9).round(3).tolist()
    [6.314, 2.132, 1.646]
    """
    check_level(level)
    freedom = np.atleast_1d(np.asarray(degrees_of_freedom, dtype=np.float64))
    whole = (freedom >= 1) & (np.floor(freedom) == freedom)
    if not np.all(whole):
        raise InputError(
            "degrees of freedom are not whole numbers from 1 on",
            where="degrees_of_freedom",
            value=float(freedom[~whole][0]),
            remedy="Ask for an interval on at least two ends",
        )
    outside = 1.0 - level
    quantile = _hill(np.maximum(freedom, 3.0), outside)
    quantile[freedom == 1] = 1.0 / np.tan(outside * np.pi / 2)
    quantile[freedom == 2] = np.sqrt(2.0 / (outside * (2.0 - outside)) - 2.0)
    return quantile


def check_level(level: float) -> None:
    """Refuse a two-sided level that is not strictly between 0 and 1.

    Raises
    ------
    InputError
        If it is not.
    """
    if not 0.0 < level < 1.0:
        raise InputError(
            "the level is not between 0 and 1",
            where="level",
            value=level,
            remedy="Give a two-sided level such as 0.9",
        )


def _hill(freedom: NDArray[np.float64], outside: float) -> NDArray[np.float64]:
    """Expand from 3 degrees of freedom on; the letters are those of Algorithm 396."""
    a = 1.0 / (freedom - 0.5)
    b = 48.0 / a**2
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * np.sqrt(a * np.pi / 2) * freedom
    y = (d * outside) ** (2.0 / freedom)
    near = _near_the_normal(freedom, outside, (a, b, c, d))
    far = 1.0 / (((freedom + 6.0) / (freedom * y) - 0.089 * d - 0.822) * (freedom + 2.0) * 3.0)
    far = ((far + 0.5 / (freedom + 4.0)) * y - 1.0) * (freedom + 1.0) / (freedom + 2.0) + 1.0 / y
    squared: NDArray[np.float64] = freedom * np.where(y > 0.05 + a, near, far)
    return np.sqrt(squared)


def _near_the_normal(
    freedom: NDArray[np.float64], outside: float, letters: tuple[NDArray[np.float64], ...]
) -> NDArray[np.float64]:
    a, b, c, d = letters
    x = NormalDist().inv_cdf(outside / 2)
    c = c + np.where(freedom < 5, 0.3 * (freedom - 4.5) * (x + 0.6), 0.0)
    c = (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b + c
    y = x * x
    y_over_x = ((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0
    return np.expm1(a * (y_over_x * x) ** 2)
