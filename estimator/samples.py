"""Samples: what was observed of a number, and how far it is believed against a wider one."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError

__all__ = ["Sample", "among_groups", "credible", "mean_sample", "median_sample", "share_sample"]

#: Groups from which on their spread is told.
LEAST_GROUPS = 3


@dataclass(frozen=True, slots=True)
class Sample:
    """Observations of one number.

    Parameters
    ----------
    observations : int
        At least 1.
    value : float
        What they say: their mean, their median, or a share.
    median, lower_quartile, upper_quartile : float or None
        Of the observations; None for a share.
    """

    observations: int
    value: float
    median: float | None = None
    lower_quartile: float | None = None
    upper_quartile: float | None = None


def median_sample(values: ArrayLike) -> Sample | None:
    """Return a sample that says the median of its values, or None without any.

    Parameters
    ----------
    values : array_like of float, shape (n,)

    Raises
    ------
    InputError
        If a value is not finite.
    """
    return _sample(values, mean=False)


def mean_sample(values: ArrayLike) -> Sample | None:
    """Return a sample that says the mean of its values, or None without any.

    Parameters
    ----------
    values : array_like of float, shape (n,)

    Raises
    ------
    InputError
        If a value is not finite.
    """
    return _sample(values, mean=True)


def _sample(values: ArrayLike, *, mean: bool) -> Sample | None:
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if not ordered.size:
        return None
    average = float(ordered.sum()) / ordered.size
    if not math.isfinite(average):
        raise InputError("must be finite", where="values", value=average, remedy="Drop it.")
    lower, median, upper = (_quantile(ordered, share) for share in (0.25, 0.5, 0.75))
    return Sample(ordered.size, average if mean else median, median, lower, upper)


def _quantile(ordered: NDArray[np.float64], share: float) -> float:
    """Return what numpy's quantile does; of sorted values, and without its overhead."""
    place = share * (ordered.size - 1)
    below = int(place)
    lower = float(ordered[below])
    if place == below:
        return lower
    return lower + (place - below) * (float(ordered[below + 1]) - lower)


def share_sample(count: int, trials: int) -> Sample | None:
    """Return a sample that says a share, or None without trials.

    Raises
    ------
    InputError
        If the count is not within 0 and the trials.
    """
    if not 0 <= count <= trials:
        problem = f"must be within 0 and the trials, {trials}"
        raise InputError(problem, where="count", value=count, remedy="Count each trial once.")
    return Sample(trials, count / trials) if trials else None


def credible(sample: Sample | None, wider: float, full: float) -> tuple[float, float]:
    """Return a number that borrows from a wider one, and the credibility of its own sample.

    Parameters
    ----------
    sample : Sample or None
        None says nothing.
    wider : float
        What it borrows.
    full : float
        K > 0, observations that weigh as much as what is borrowed.

    Returns
    -------
    value : float
        z·own + (1 − z)·wider.
    z : float
        n/(n + K).

    References
    ----------
    .. [1] H. Bühlmann and E. Straub, "Glaubwürdigkeit für Schadensätze", Mitteilungen der
       Vereinigung schweizerischer Versicherungsmathematiker 70 (1970), 111-133.
    """
    if sample is None:
        return wider, 0.0
    z = sample.observations / (sample.observations + full)
    return z * sample.value + (1 - z) * wider, z


def among_groups(samples: Collection[Sample], full: float) -> Sample | None:
    """Return what several groups say together, each weighing as much as it is believed.

    One busy group does not drown the others: a new group is more like a group than like an
    observation.

    Parameters
    ----------
    samples : collection of Sample
        One for each group.
    full : float
        K, as in :func:`credible`.

    Returns
    -------
    Sample or None
        The groups' values averaged with weights n/(n + K), all their observations, and the
        quartiles of the groups' values where there are three. None without any.
    """
    if not samples:
        return None
    weighed = [
        (sample.observations / (sample.observations + full), sample.value) for sample in samples
    ]
    value = sum(weight * own for weight, own in weighed) / sum(weight for weight, _ in weighed)
    counted = sum(sample.observations for sample in samples)
    spread = mean_sample([own for _, own in weighed]) if len(weighed) >= LEAST_GROUPS else None
    if spread is None:
        return Sample(counted, value)
    return replace(spread, observations=counted, value=value)
