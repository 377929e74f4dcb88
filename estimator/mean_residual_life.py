"""The recursion m(i) = 1 + (1 − h)·m(i+1) and the variance that goes with it.

In actuarial terms m = 1 + curtate e = complete e + ½, so published life tables test it. Started
from a tail of 0 the same recursions give the restricted mean and its squared standard error.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError


def mean_residual_life(hazard: ArrayLike, tail_mean: float) -> NDArray[np.float64]:
    """Give m(i) = E[N−i | N>i] for every age from the hazards and the mean of the tail.

    Parameters
    ----------
    hazard : array_like of float, shape (k,)
        h_1 … h_k: element i is h_{i+1} = P(N = i+1 | N > i), the hazard met at age i.
    tail_mean : float
        m(k), in calls. 0 restricts the mean to the first k calls.

    Returns
    -------
    ndarray of float, shape (k + 1,)
        m(0) … m(k), in calls, the next one included.

    Raises
    ------
    InputError
        If a hazard is not within 0 and 1, or the tail's mean is negative or not finite.

    Notes
    -----
    The model, §1.

    Examples
    --------
    >>> mean_residual_life([0.1, 0.1, 0.1], tail_mean=10.0).round(9).tolist()
    [10.0, 10.0, 10.0, 10.0]
    """
    hazards = np.asarray(hazard, dtype=np.float64)
    legal = (hazards >= 0) & (hazards <= 1)
    if not legal.all():
        index = int(np.argmin(legal))
        raise InputError(
            "a hazard is not within 0 and 1",
            where=f"hazard[{index}]",
            value=float(hazards[index]),
            remedy="Give h_{i+1} = P(N = i+1 | N > i) at index i",
        )
    if not (np.isfinite(tail_mean) and tail_mean >= 0):
        raise InputError(
            "the mean of the tail is negative or not finite",
            where="tail_mean",
            value=tail_mean,
            remedy="Give the mean residual life at the last age, in calls",
        )
    # Backwards, not as Σ S(j)/S(i): S may be 0 at an age that late entrants still pass.
    return backward_recursion(
        np.append(np.ones_like(hazards), float(tail_mean)), np.append(1.0 - hazards, 0.0)
    )


def mean_variance(
    hazard: NDArray[np.float64],
    at_risk: NDArray[np.int64] | NDArray[np.float64],
    mean: NDArray[np.float64],
    tail_variance: float,
) -> NDArray[np.float64]:
    """Give V(i), the variance of the estimate m(i), by Greenwood's argument.

    Parameters
    ----------
    hazard : ndarray of float, shape (k,)
        h_1 … h_k, as for `mean_residual_life`.
    at_risk : ndarray of int or float, shape (k,)
        n_1 … n_k, turns at risk for the call that the hazard is of, of weighted turns the
        effective number. Where none is, the hazard is an assumption and adds no variance.
    mean : ndarray of float, shape (k + 1,)
        m(0) … m(k), from `mean_residual_life`.
    tail_variance : float
        V(k), in calls²; 0 for a restricted mean.

    Returns
    -------
    ndarray of float, shape (k + 1,)
        V(i) = (1−h)²·V(i+1) + m(i+1)²·h(1−h)/n, in calls². Without cut turns and late entries it
        is σ²/n exactly.

    Notes
    -----
    The model, §2.
    """
    step = mean[1:] ** 2 * hazard * (1.0 - hazard) / np.maximum(at_risk, 1)
    return backward_recursion(np.append(step, tail_variance), np.append((1.0 - hazard) ** 2, 0.0))


def backward_recursion(
    add: NDArray[np.float64], factor: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve x(i) = add(i) + factor(i)·x(i+1) for every age i, and every row, at once.

    Parameters
    ----------
    add : ndarray of float, shape (..., ages)
        Overwritten; at least one age.
    factor : ndarray of float, shape (..., ages)
        Nothing follows the last age, so its factor is not used.

    Returns
    -------
    ndarray of float, shape (..., ages)
        x, in the array of `add`.

    Notes
    -----
    Cyclic reduction: two steps joined to one leave half the ages, again and again, in place of
    one step an age. All terms being positive in this room, no digit is lost.
    """
    ages = add.shape[-1]
    if ages == 1:
        return add
    joined, product = add[..., ::2].copy(), factor[..., ::2].copy()
    joined[..., : ages // 2] += product[..., : ages // 2] * add[..., 1::2]
    product[..., : ages // 2] *= factor[..., 1::2]
    every_other = backward_recursion(joined, product)
    add[..., ::2] = every_other
    add[..., 1:-1:2] += factor[..., 1:-1:2] * every_other[..., 1:]
    return add
