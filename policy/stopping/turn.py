"""One turn of a stopping problem, solved from its tail back to its first request."""

from typing import NamedTuple

import numpy as np

from policy.stopping.batch import ROUNDING, Batch
from policy.stopping.crossing import crossing
from policy.stopping.problem import Array

__all__ = ["Turn", "choose", "extend", "turn_of"]

# Newton's steps; each improves a policy, so a handful do.
_MOST_STEPS = 40


def extend(values: Array, block: int) -> None:
    """Carry values on past the top of the grid, linear as they are there."""
    top = values.shape[0] - block
    slope = values[top - 1] - values[top - 2]
    for beyond in range(block):
        np.add(values[top + beyond - 1], slope, out=values[top + beyond])


def _grown(batch: Batch, values: Array) -> Array:
    """Return values at b + g; `values` go `block` points past the grid."""
    ahead = values[batch.block :]
    if batch.block > 1 or (batch.share == 1.0).all():
        return ahead
    here = values[:-1]
    return here + batch.share * (ahead - here)


def _first_grown(batch: Batch, values: Array) -> Array:
    """Return values at b + g₀."""
    below = np.take_along_axis(values, batch.first_low, axis=0)
    above = np.take_along_axis(values, batch.first_low + 1, axis=0)
    return below + batch.first_share * (above - below)


class Turn(NamedTuple):
    """A turn solved for a given value of its end.

    Parameters
    ----------
    warm, cold : ndarray, shape (points, problems)
        V_0 and V_c.
    after : ndarray, shape (problems,)
        V(a + g) of the tail, where the next solution starts.
    at_call, by_age : list of ndarray
        b*(i), NaN for never, and V_i; empty unless asked for.
    at_resume : ndarray, shape (problems,)
        b* on a cold cache.
    """

    warm: Array
    cold: Array
    after: Array
    at_call: list[Array]
    at_resume: Array
    by_age: list[Array]


def turn_of(
    batch: Batch,
    end: Array,
    after: Array,
    tolerance: float,
    *,
    thresholds: bool = False,
    keep_ages: bool = False,
) -> Turn:
    """Solve all ages of a turn, from the tail back to its first request.

    Parameters
    ----------
    batch : Batch
        The problems.
    end : ndarray, shape (points + block, problems)
        E, carried on past the grid.
    after : ndarray, shape (problems,)
        A first guess of V(a + g) in the tail.
    tolerance : float
        Of V, in base tokens.
    thresholds, keep_ages : bool
        Whether to read off b*(i), and to keep V_i.
    """
    ended = _grown(batch, end)
    values, excess, after = _tail(batch, ended, after, tolerance)
    at_call = [crossing(batch, excess)] if thresholds else []
    points = ended.shape[0]
    by_age = [values[:points].copy()] if keep_ages else []
    for stay in batch.go_on[-2:0:-1]:
        wait, compact = _earlier(batch, values, ended, stay)
        if thresholds:
            at_call.append(crossing(batch, wait - compact))
        if keep_ages:
            by_age.append(values[:points].copy())
    stay = batch.go_on[0]
    follows = stay * _first_grown(batch, values) + (1.0 - stay) * _first_grown(batch, end)
    warm, excess = choose(batch.first_read + follows, batch.first_summary + follows[0])
    cold, cold_excess = choose(batch.cold_read + follows, batch.cold_summary + follows[0])
    if thresholds:
        at_call.append(crossing(batch, excess))
    if keep_ages:
        by_age.append(warm)
    return Turn(warm, cold, after, at_call[::-1], crossing(batch, cold_excess), by_age[::-1])


def _earlier(batch: Batch, values: Array, ended: Array, stay: Array) -> tuple[Array, Array]:
    """Turn V_{i+1} into V_i in place, and return what waiting and compacting cost."""
    going_on = _grown(batch, values)
    after = stay * going_on[0] + (1.0 - stay) * ended[0]
    wait = going_on * stay
    wait += ended * (1.0 - stay)
    wait += batch.read
    compact = batch.summary + after
    np.minimum(wait, compact, out=values[: len(wait)])
    values[0] = wait[0]
    extend(values, batch.block)
    return wait, compact


def choose(wait: Array, compact: Array) -> tuple[Array, Array]:
    """Return the smaller of the two, and waiting less compacting; X′ itself is not compacted."""
    values = np.minimum(wait, compact)
    values[0] = wait[0]
    return values, wait - compact


def _tail(batch: Batch, ended: Array, after: Array, tolerance: float) -> tuple[Array, Array, Array]:
    """Return V and waiting less compacting from the tail's age on, and V(a + g).

    Parameters
    ----------
    ended : ndarray, shape (points, problems)
        E(b + g).
    after : ndarray, shape (problems,)
        A first guess of V(a + g), what a compaction leads to: one number a problem, for which
        Newton's steps are the improvements of a policy.
    """
    stay = batch.go_on[-1]
    waits = batch.read + (1.0 - stay) * ended
    ended_after = (1.0 - stay) * ended[0]
    values, slopes = np.empty(0), np.empty(0)
    for _ in range(_MOST_STEPS):
        compacts = batch.summary + (ended_after + stay * after)
        values, slopes = _descend(batch, waits, compacts)
        reached = _grown(batch, values)[0]
        slope = _grown(batch, slopes)[0]
        better = after + (reached - after) / (1.0 - slope)
        moved = np.abs(better - after).max()
        after = better
        if moved <= 1e-3 * tolerance + ROUNDING * np.abs(after).max():
            break
    compacts = batch.summary + (ended_after + stay * after)
    excess = waits + stay * _grown(batch, values) - compacts
    return values, excess, after


def _descend(batch: Batch, waits: Array, compacts: Array) -> tuple[Array, Array]:
    """Return V(b) = min(waits + (1 − h)·V(b + g), compacts) from the top down, and dV/dV(a + g)."""
    points, block = waits.shape[0], batch.block
    stay = batch.go_on[-1]
    values = np.empty((points + block, waits.shape[1]))
    slopes = np.empty_like(values)
    # Past the top a turn either compacts, or waits until it ends.
    beyond = np.arange(1, block + 1)[:, None]
    end_slope = (waits[-1] - waits[-2]) / (1.0 - stay)
    waiting = (waits[-1] + stay * end_slope * batch.share * block) / (1.0 - stay)
    waiting = waiting + beyond * end_slope
    compacting = compacts[-1] + beyond * (compacts[-1] - compacts[-2])
    values[points:] = np.minimum(waiting, compacting)
    slopes[points:] = np.where(compacting < waiting, stay, 0.0)
    # Growth of less than a step leaves part of V(b + g) to V(b) itself.
    whole = 1.0 - stay * (1.0 - batch.share)
    waits, ahead = waits / whole, stay * batch.share / whole
    for low in range(points - block, -block, -block):
        here, there = slice(max(low, 0), low + block), slice(max(low, 0) + block, low + 2 * block)
        wait = waits[here] + ahead * values[there]
        compact = compacts[here]
        values[here] = np.minimum(wait, compact)
        slopes[here] = np.where(compact < wait, stay, ahead * slopes[there])
    values[0] = waits[0] + ahead * values[block]
    slopes[0] = ahead * slopes[block]
    return values, slopes
