"""A plan: the context from which a rule compacts, at every moment of a sequence it is asked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from backtest.sequences import Sequences
from policy.thresholds import Thresholds

__all__ = ["NEVER", "Plan", "by_unit", "plan_of", "stacked"]

#: The threshold that no context reaches.
NEVER = np.inf

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plan:
    """Thresholds in tokens; compact where the context is at least so large. One plan or several.

    Parameters
    ----------
    before_request : ndarray of float, shape (..., requests)
        Before each request.
    in_pause : ndarray of float, shape (..., requests)
        In the wait that ends with this request: at the end of the turn before, or while idle
        where the wait is long enough to be asked. `NEVER` where there is none.
    after_last : ndarray of float, shape (..., units)
        In the wait after the unit's last request, which nothing follows.
    believed_after_tokens : ndarray of float, shape (..., units) or ()
        X′ that the thresholds were compiled for. Once a unit has compacted, what that left is
        seen, and where it is another size the thresholds move with it. By default NaN: they stay.
    """

    before_request: _Numbers
    in_pause: _Numbers
    after_last: _Numbers
    believed_after_tokens: _Numbers = field(default_factory=lambda: np.array(np.nan))

    @cached_property
    def plans(self) -> int:
        """How many plans this is."""
        return 1 if self.before_request.ndim == 1 else self.before_request.shape[0]

    @property
    def believed_by_unit(self) -> _Numbers:
        """`believed_after_tokens` in the shape of `after_last`."""
        return np.broadcast_to(self.believed_after_tokens, self.after_last.shape)


def stacked(plans: Sequence[Plan]) -> Plan:
    """Return single plans as several, in their order."""
    return Plan(
        np.stack([plan.before_request for plan in plans]),
        np.stack([plan.in_pause for plan in plans]),
        np.stack([plan.after_last for plan in plans]),
        np.stack([plan.believed_by_unit for plan in plans]),
    )


def by_unit(plans: Sequence[Plan], sequences: Sequences) -> Plan:
    """Return one plan that follows another one in each unit.

    Parameters
    ----------
    plans : sequence of Plan, one a unit
        Single plans of all the sequences.
    sequences : Sequences
        Which they are of.
    """
    before = np.empty(sequences.requests)
    pause = np.empty_like(before)
    after, believed = np.empty(sequences.units), np.empty(sequences.units)
    for unit, plan in enumerate(plans):
        rows = slice(int(sequences.begins[unit]), int(sequences.begins[unit + 1]))
        before[rows], pause[rows] = plan.before_request[rows], plan.in_pause[rows]
        after[unit] = plan.after_last[unit]
        believed[unit] = plan.believed_by_unit[unit]
    return Plan(before, pause, after, believed)


def plan_of(
    main: Thresholds,
    subagent: Thresholds,
    sequences: Sequences,
    ttl_seconds: float,
    *,
    by_session: bool = False,
) -> Plan:
    """Look up compiled thresholds at every moment of the sequences.

    Parameters
    ----------
    main, subagent : Thresholds
        For main sessions, and for sub-agents, which nobody asks at the end or while idle.
    sequences : Sequences
        What is replayed.
    ttl_seconds : float
        A gap longer than this makes the next request one on a cold cache, in mid-turn as well.
    by_session : bool, default False
        Whether thresholds go by the requests made in the session instead of those in the turn.
    """
    made = sequences.place if by_session else sequences.age
    cold = sequences.gap_seconds > ttl_seconds
    of_main = sequences.main[sequences.unit]
    before = np.where(
        of_main,
        _before(main, made, cold),
        _before(subagent, made, cold),
    )
    end = _number(main.at_turn_end)
    pause = np.full(sequences.requests, NEVER)
    opens = sequences.opens_turn & of_main
    pause[opens] = end
    after = np.full(sequences.units, NEVER)
    waits = sequences.waits[sequences.begins[1:] - 1] & sequences.main
    after[waits] = end
    idle = asked_while_idle(main)
    if idle is not None:
        seconds, threshold = idle
        asked = opens & (sequences.gap_seconds > seconds)
        pause[asked] = np.minimum(pause[asked], threshold)
        after[waits] = min(end, threshold)
    believed = np.where(sequences.main, _believed(main), _believed(subagent))
    return Plan(before, pause, after, believed)


def _believed(thresholds: Thresholds) -> float:
    return np.nan if thresholds.setting is None else thresholds.setting.context_after_tokens


def asked_while_idle(thresholds: Thresholds) -> tuple[float, float] | None:
    """Return when a caller asks while idle, and the threshold then; None where it does not."""
    seconds = thresholds.ask_again_seconds
    if seconds is None:
        return None
    return seconds, _number(thresholds.at("idle", idle_seconds=seconds))


def _before(thresholds: Thresholds, age: NDArray[np.int64], cold: NDArray[np.bool_]) -> _Numbers:
    by_age = np.array([_number(threshold) for threshold in thresholds.at_call])
    warm = by_age[np.minimum(age, by_age.size - 1)]
    found: _Numbers = np.where(cold, _number(thresholds.at_resume), warm)
    return found


def _number(threshold: float | None) -> float:
    return NEVER if threshold is None else threshold
