"""Drift: one alarm when a role's turns have become shorter or longer than its reference says.

A Shiryaev-Roberts e-detector of actual against expected ends: without a change of more than 15% its
statistic grows by at most 1 a turn on average, so a threshold of T turns is passed about once in T.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError
from estimator.life_table import LifeTable
from estimator.turn_rows import whole_number

__all__ = [
    "MIN_REFERENCE_TURNS",
    "RATIOS",
    "DriftState",
    "alarm",
    "cumulated_hazard",
    "direction",
    "evidence",
    "log_statistic",
    "restart",
    "start",
    "turn_evidence",
    "update",
]

#: Hazard ratios ρ that are looked for: lives twice as long … half as long.
RATIOS = (0.5, 2 / 3, 1.5, 2.0)
#: Changes of less than this factor are no news.
TOLERATED = 1.15
#: Below so many turns the reference's own error would pass for drift.
MIN_REFERENCE_TURNS = 300

_RATIO = np.array(RATIOS)
_NULL = np.where(_RATIO > 1, TOLERATED, 1 / TOLERATED)


@dataclass(frozen=True, slots=True)
class DriftState:
    """What a detector knows; plain values, replaced at every turn.

    Parameters
    ----------
    hazard : tuple of float
        H(i), the reference's cumulated hazard over calls 1 … i, for ages i = 0 … τ.
    tail_hazard : float
        What each call past τ adds to it.
    threshold : float
        The statistic that raises an alarm: turns that the role makes in a year.
    log_evidence : tuple of float
        log(1 + R) for each of `RATIOS`.
    turns : int, default 0
        Turns taken in since the start.
    alarms : int, default 0
        Restarts before this one.
    """

    hazard: tuple[float, ...]
    tail_hazard: float
    threshold: float
    log_evidence: tuple[float, ...] = (0.0,) * len(RATIOS)
    turns: int = 0
    alarms: int = 0

    def to_payload(self) -> dict[str, Any]:
        """Give the state as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "DriftState":
        """Read what `to_payload` wrote.

        Raises
        ------
        InputError
            If a key is missing or a value is not a number.
        """
        try:
            return cls(
                hazard=tuple(float(value) for value in payload["hazard"]),
                tail_hazard=float(payload["tail_hazard"]),
                threshold=float(payload["threshold"]),
                log_evidence=tuple(float(value) for value in payload["log_evidence"]),
                turns=int(payload["turns"]),
                alarms=int(payload["alarms"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"is not a stored drift state: {type(error).__name__} {error}",
                where="drift",
                remedy="Start the detector again from a life table",
            ) from error


def start(reference: LifeTable, turns_per_year: float) -> DriftState:
    """Start a detector against a frozen reference.

    Parameters
    ----------
    reference : LifeTable
        The role's raw table so far; past its τ the hazard is that of its open tail.
    turns_per_year : float
        The role's rate, at least 1: one false alarm in a year or so is what it tolerates.

    Raises
    ------
    InputError
        If the reference has fewer than 300 turns with a call, or the rate is below 1.

    Notes
    -----
    The model, §2.
    """
    if reference.turns_with_a_call < MIN_REFERENCE_TURNS:
        raise InputError(
            f"the reference has fewer than {MIN_REFERENCE_TURNS} turns with a call",
            where="reference",
            value=reference.turns_with_a_call,
            remedy="Start the detector when the role has made enough turns",
        )
    if not 1 <= turns_per_year < math.inf:
        raise InputError(
            "is not a rate from 1 on",
            where="turns_per_year",
            value=turns_per_year,
            remedy="Give the turns that the role makes in a year",
        )
    hazard, tail = cumulated_hazard(reference.hazard)
    return DriftState(tuple(hazard.tolist()), tail, float(turns_per_year))


def cumulated_hazard(hazard: ArrayLike) -> tuple[NDArray[np.float64], float]:
    """Cumulate the hazards of a reference into H.

    Parameters
    ----------
    hazard : array_like of float, shape (ages,)
        h_1 … h_{τ+1}; the last is that of the open tail.

    Returns
    -------
    cumulated : ndarray of float, shape (ages,)
        H(0) = 0 … H(τ).
    tail : float
        What each call past τ adds.

    Notes
    -----
    A call adds −log(1−h), as the model, §2, says, but no more than keeps E[e] ≤ 1 without a change,
    for every ρ (the two part at h = 0.26); a hazard within the tolerance of 1 counts as 1/1.15, so
    that certain ends are no evidence either way. Lives exactly 15% longer pass 1 by up to h²/10.
    """
    hazards = np.minimum(np.asarray(hazard, dtype=np.float64), 1.0 / TOLERATED)
    below = _RATIO < 1
    loss = 1.0 - (_RATIO / _NULL)[below]
    bound = -np.log1p(-np.multiply.outer(hazards, loss)) / (_NULL - _RATIO)[below]
    each = np.minimum(-np.log1p(-hazards), bound.min(axis=-1))
    return np.append(0.0, np.cumsum(each[:-1])), float(each[-1])


def evidence(expected: ArrayLike, ended: ArrayLike) -> NDArray[np.float64]:
    """Give log e_ρ of turns: how much likelier they are under each changed hazard.

    Parameters
    ----------
    expected : array_like of float, shape (...)
        H over the calls each turn was at risk for.
    ended : array_like of bool, shape (...)
        δ: whether it ended.

    Returns
    -------
    ndarray of float, shape (..., 4)
        δ·log(ρ/ρ₀) − (ρ−ρ₀)·H for each of `RATIOS`, with ρ₀ = 1.15 for ρ > 1 and 1/1.15 below.
    """
    gain = np.multiply.outer(np.asarray(ended, dtype=np.float64), np.log(_RATIO / _NULL))
    cost = np.multiply.outer(np.asarray(expected, dtype=np.float64), _RATIO - _NULL)
    log_e: NDArray[np.float64] = gain - cost
    return log_e


def turn_evidence(
    state: DriftState, exit_: int, ended: bool, entry: int = 0
) -> NDArray[np.float64] | None:
    """Give log e of one finished turn for each of `RATIOS`, None where it was at risk for no call.

    Parameters
    ----------
    state, exit_, ended, entry
        As for `update`.
    """
    if whole_number("exit", exit_, low=-1) <= whole_number("entry", entry):
        return None
    return evidence(_cumulated(state, exit_) - _cumulated(state, entry), ended)


def update(state: DriftState, exit_: int, ended: bool, entry: int = 0) -> DriftState:
    """Take in one finished turn.

    Parameters
    ----------
    state : DriftState
        Before the turn.
    exit_ : int
        The last call the turn was at risk for, as in `Histogram`.
    ended : bool
        False for a cut turn.
    entry : int, default 0
        Calls made before observation began.

    Returns
    -------
    DriftState
        R ← (1+R)·e for each ρ. A turn that was at risk for no call says nothing: the same state.

    Raises
    ------
    InputError
        If the entry is negative, the exit below −1, or either not whole.
    """
    log_e = turn_evidence(state, exit_, ended, entry)
    if log_e is None:
        return state
    # log(1 + R′) with R′ = (1+R)·e: never leaves the log scale, so nothing overflows.
    log_evidence = np.logaddexp(0.0, np.array(state.log_evidence) + log_e)
    return replace(state, log_evidence=tuple(log_evidence.tolist()), turns=state.turns + 1)


def log_statistic(log_evidence: ArrayLike) -> NDArray[np.float64]:
    """Give the log of the mean of R over ρ.

    Parameters
    ----------
    log_evidence : array_like of float, shape (..., 4)
        log(1 + R), as a state keeps it.

    Returns
    -------
    ndarray of float, shape (...)
        −infinity while nothing was taken in.
    """
    logs = np.asarray(log_evidence, dtype=np.float64)
    # The mean of 1 + R, less 1.
    raised = np.logaddexp.reduce(logs, axis=-1) - math.log(len(RATIOS))
    with np.errstate(divide="ignore"):
        statistic: NDArray[np.float64] = raised + np.log(-np.expm1(-np.maximum(raised, 0.0)))
    return statistic


def alarm(state: DriftState) -> bool:
    """Say whether the role has drifted: the mean of R over ρ has reached the threshold."""
    return bool(log_statistic(state.log_evidence) >= math.log(state.threshold))


def direction(state: DriftState) -> Literal["shorter", "longer"]:
    """Say which way the evidence points: what turns have become against the reference."""
    leading = int(np.argmax(state.log_evidence))
    return "shorter" if RATIOS[leading] > 1 else "longer"


def restart(state: DriftState, reference: LifeTable, turns_per_year: float) -> DriftState:
    """Start again after an alarm, against a new reference, and count the alarm.

    Parameters
    ----------
    state : DriftState
        That raised the alarm.
    reference, turns_per_year
        As for `start`: the reference of the turns since the change.

    Raises
    ------
    InputError
        As for `start`.
    """
    return replace(start(reference, turns_per_year), alarms=state.alarms + 1)


def _cumulated(state: DriftState, calls: int) -> float:
    """H over calls 1 … `calls`."""
    tail_age = len(state.hazard) - 1
    return state.hazard[min(calls, tail_age)] + max(calls - tail_age, 0) * state.tail_hazard
