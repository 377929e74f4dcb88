"""The fixed point over turns: the value of a turn's end from which it follows itself."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policy.stopping.batch import ROUNDING, Batch, batch_of
from policy.stopping.end import end_of
from policy.stopping.problem import Array
from policy.stopping.turn import extend, turn_of

__all__ = ["FixedPoint", "Sweeps", "fixed_point"]

Sweeps = NDArray[np.intp]

# Past sweeps that each one mixes in. Some 20 sweeps do; turns that are all of one length take a
# few hundred, because contexts then come round in step. What is still moving after a round goes
# on without the rest.
_MEMORY, _ROUND, _MOST_ROUNDS = 12, 24, 40

# (change, value) of one sweep.
_Past = list[tuple[Array, Array]]


class FixedPoint(NamedTuple):
    """E of every problem of a batch.

    Parameters
    ----------
    end : ndarray, shape (points + block, problems)
        E, carried on past the grid.
    after : ndarray, shape (problems,)
        V(a + g) of the tail.
    sweeps : ndarray of int, shape (problems,)
        Times that all ages were solved.
    """

    end: Array
    after: Array
    sweeps: Sweeps


def fixed_point(batch: Batch, tolerance: float) -> FixedPoint:
    """Iterate over turns until E moves by less than the tolerance.

    Parameters
    ----------
    batch : Batch
        The problems.
    tolerance : float
        In base tokens. A problem that has not come so close after a thousand sweeps is left there.
    """
    points, many = batch.context.shape
    end, after = np.zeros((points + batch.block, many)), np.zeros(many)
    sweeps = np.zeros(many, dtype=np.intp)
    past: _Past = []
    part, places = batch, np.arange(many)
    for _ in range(_MOST_ROUNDS):
        begun = FixedPoint(end[:, places], after[places], sweeps[places])
        here, moving, past = _round(part, begun, past, tolerance)
        end[:, places], after[places], sweeps[places] = here
        if not moving.any():
            break
        if not moving.all():
            places, past = places[moving], [(a[:, moving], b[:, moving]) for a, b in past]
            problems = [batch.problems[place] for place in places]
            part = batch_of(problems, batch.block, points)
    return FixedPoint(end, after, sweeps)


def _round(
    batch: Batch, begun: FixedPoint, past: _Past, tolerance: float
) -> tuple[FixedPoint, NDArray[np.bool_], _Past]:
    """Make up to 24 sweeps; return where they lead, what still moves, and the last of them."""
    end, after, sweeps = begun
    points = batch.context.shape[0]
    # Adding c to E adds q_s·c to the next E, so a shift common to all contexts is summed at once.
    turns = batch.goes_on / (1.0 - batch.goes_on)
    moving = np.ones(len(after), dtype=bool)
    for _ in range(_ROUND):
        sweeps = sweeps + 1
        turn = turn_of(batch, end, after, tolerance)
        after = turn.after
        value = end_of(batch, turn.warm, turn.cold).value
        change = value - end[:points]
        most, least = change.max(axis=0), change.min(axis=0)
        value += turns * (most + least) / 2.0
        past = [*past[-_MEMORY:], (value - end[:points], value)]
        moving = turns * (most - least) > tolerance + ROUNDING * np.abs(value).max(axis=0)
        end[:points] = np.where(moving, _extrapolated(past), value)
        extend(end, batch.block)
        if not moving.any():
            break
    return FixedPoint(end, after, sweeps), moving, past


def _extrapolated(past: list[tuple[Array, Array]]) -> Array:
    """Return the mix of past values whose changes cancel best (Anderson's acceleration).

    Parameters
    ----------
    past : list of (change, value)
        Of the last sweeps, each of shape (points, problems).

    References
    ----------
    .. [1] D. G. Anderson, "Iterative procedures for nonlinear integral equations", Journal of the
       ACM 12 (1965), 547-560.
    """
    change, value = past[-1]
    if len(past) == 1:
        return value
    changes = np.diff([entry[0] for entry in past], axis=0)
    values = np.diff([entry[1] for entry in past], axis=0)
    products = np.einsum("ipb,jpb->bij", changes, changes)
    # Changes that hardly differ would divide by nothing.
    ridge = 1e-12 * np.trace(products, axis1=1, axis2=2) + 1e-30
    products += ridge[:, None, None] * np.eye(len(changes))
    target = np.einsum("ipb,pb->bi", changes, change)
    weights = np.linalg.solve(products, target[..., None])[..., 0]
    mixed: Array = value - np.einsum("ipb,bi->pb", values, weights)
    return mixed
