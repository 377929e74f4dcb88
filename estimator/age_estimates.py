"""m(i), V(i), D(i) and the interval at every age of many roles, in one vectorised pass."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimator.exposure import Cells, Exposure, exposure_by_age, hazard_by_age
from estimator.interval import mean_interval
from estimator.mean_residual_life import backward_recursion
from estimator.student_t import check_level
from estimator.turn_rows import whole_number

# An effective size of 20 equal weights may come out below 20 by rounding.
_ENOUGH = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Where the open interval starts, and the level of intervals.

    Parameters
    ----------
    min_at_risk, min_ends : int, default 20 and 3
        The open interval starts at τ, the last age with so many turns at risk for the next call
        and so many ends beyond (of weighted turns: their effective numbers), or at 0. Smaller
        numbers follow fewer turns further out.
    level : float, default 0.9
        Two-sided level of the intervals; 0.9 leaves 5% on each side.

    Raises
    ------
    InputError
        If a number is not whole and positive, or the level not between 0 and 1.
    """

    min_at_risk: int = 20
    min_ends: int = 3
    level: float = 0.9

    def __post_init__(self) -> None:
        whole_number("min_at_risk", self.min_at_risk, low=1)
        whole_number("min_ends", self.min_ends, low=1)
        check_level(self.level)


class AgeEstimates(NamedTuple):
    """The estimates of a block of roles; past a role's τ every column holds what it has at τ.

    Parameters
    ----------
    tail_age : ndarray of int, shape (roles,)
        τ of each role.
    exposure : Exposure
        Up to the longest τ; what a role has past its own τ is its raw exposure there.
    whole_exposure : Exposure
        Up to the last age that any turn reaches.
    hazard : ndarray of float, shape (roles, ages)
        d/n, 0 where nobody was at risk; from τ on that of the open interval, 1/m(τ).
    mean, variance, ends_effective, lower, upper : ndarray of float, shape (roles, ages)
        As in `LifeTable`.
    """

    tail_age: NDArray[np.int64]
    exposure: Exposure
    whole_exposure: Exposure
    hazard: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    ends: NDArray[np.float64]
    ends_effective: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def age_estimates(cells: Cells, thresholds: Thresholds) -> AgeEstimates:
    """Estimate roles of which each has an end.

    Parameters
    ----------
    cells : Cells
        Of at least one role, each with at least one ended cell.
    thresholds : Thresholds

    Notes
    -----
    The model, §2.
    """
    whole = exposure_by_age(cells)
    tail_age = _tail_age(whole, thresholds)
    exposure = whole.until(int(tail_age.max()) + 1)
    tail_mean, tail_variance = _open_interval(cells, tail_age)
    past = np.arange(exposure.at_risk.shape[1]) >= tail_age[:, None]
    hazard = hazard_by_age(exposure.ended, exposure.at_risk)
    mean = _recursion(past, np.float64(1.0), 1.0 - hazard, tail_mean)
    variance = _recursion(
        past, _variance_step(hazard, mean, exposure), (1.0 - hazard) ** 2, tail_variance
    )
    np.copyto(hazard, 1.0 / tail_mean[:, None], where=past)
    ends = _held(exposure.ends, past, tail_age)
    weighted = cells.squared is not None
    ends_effective = _held(exposure.ends_effective, past, tail_age) if weighted else ends
    lower, upper = mean_interval(mean, variance, ends_effective, thresholds.level)
    return AgeEstimates(
        tail_age, exposure, whole, hazard, mean, variance, ends, ends_effective, lower, upper
    )


def _tail_age(exposure: Exposure, thresholds: Thresholds) -> NDArray[np.int64]:
    """Return τ of every role: the last age with enough at risk and enough ends, or 0."""
    enough = exposure.at_risk_effective >= thresholds.min_at_risk * _ENOUGH
    enough &= exposure.ends_effective >= thresholds.min_ends * _ENOUGH
    last = enough.shape[1] - 1 - np.argmax(enough[:, ::-1], axis=1)
    return np.where(enough.any(axis=1), last, 0)


def _open_interval(
    cells: Cells, tail_age: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """m(τ) = E/D and V(τ) = Σ(e − m·δ)²/D² over the rows that pass τ, by role."""
    starts = tail_age[cells.role]
    passes = np.flatnonzero(cells.exit > starts)
    role, ended, weight = cells.role[passes], cells.ended[passes], cells.weight[passes]
    calls = cells.exit[passes] - np.maximum(cells.entry[passes], starts[passes])
    ends = np.bincount(role[ended], weight[ended], cells.roles)
    mean = np.bincount(role, weight * calls, cells.roles) / ends
    squared = weight if cells.squared is None else cells.squared[passes]
    spread = squared * (calls - mean[role] * ended) ** 2
    return mean, np.bincount(role, spread, cells.roles) / ends**2


def _variance_step(
    hazard: NDArray[np.float64], mean: NDArray[np.float64], exposure: Exposure
) -> NDArray[np.float64]:
    """m(i+1)²·h(1−h)/n; of the last age nothing, for there the open interval is."""
    step = hazard * (1.0 - hazard)
    step /= np.maximum(exposure.at_risk_effective, 1.0)
    step[:, :-1] *= mean[:, 1:] ** 2
    return step


def _recursion(
    past: NDArray[np.bool_],
    step: NDArray[np.float64] | np.float64,
    factor: NDArray[np.float64],
    tail: NDArray[np.float64],
) -> NDArray[np.float64]:
    """x(i) = step(i) + factor(i)·x(i+1) below each role's τ, and its tail from there on."""
    factor[past] = 0.0
    return backward_recursion(np.where(past, tail[:, None], step), factor)


def _held(
    column: NDArray[np.float64], past: NDArray[np.bool_], tail_age: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the column with its value at τ from there on."""
    at_tail = column[np.arange(len(column)), tail_age]
    return np.where(past, at_tail[:, None], column)
