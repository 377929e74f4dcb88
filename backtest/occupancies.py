"""Fixed thresholds: the grid that a rule has to beat in hindsight, and the trained three."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.plan import NEVER, Plan
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences

__all__ = [
    "GRID_TOKENS",
    "ThreeThresholds",
    "fixed_plans",
    "grid_tokens",
    "train_three_thresholds",
]

#: 40k to 165k every 5k, and 167k, where agents compact on their own.
GRID_TOKENS: tuple[float, ...] = (*(1_000.0 * size for size in range(40, 170, 5)), 167_000.0)

#: Beyond it, for limits that are larger.
_FAR_TOKENS = (*(1_000.0 * size for size in range(180, 400, 20)), *(1e5 * n for n in range(4, 20)))

_Numbers = NDArray[np.float64]


def grid_tokens(limit_tokens: float) -> tuple[float, ...]:
    """Return the fixed thresholds below a limit, and the limit."""
    below = (*GRID_TOKENS, *_FAR_TOKENS)
    return (*(size for size in below if size < limit_tokens), limit_tokens)


class ThreeThresholds(NamedTuple):
    """Contexts in tokens; `turn_end` may be `NEVER`."""

    main: float
    turn_end: float
    subagent: float


def fixed_plans(
    sequences: Sequences,
    thresholds_tokens: tuple[float, ...] = GRID_TOKENS,
    *,
    turn_end_tokens: float = NEVER,
) -> Plan:
    """Return one plan for each threshold, the same before every request.

    Parameters
    ----------
    sequences : Sequences
        What is replayed.
    thresholds_tokens : tuple of float
        By default the whole grid.
    turn_end_tokens : float
        Another threshold for the end of a main session's turns; by default nobody asks then.
    """
    many = len(thresholds_tokens)
    main = sequences.main
    opens = sequences.opens_turn & main[sequences.unit]
    waits = sequences.waits[sequences.begins[1:] - 1] & main
    pause = np.where(opens, turn_end_tokens, NEVER)
    after = np.where(waits, turn_end_tokens, NEVER)
    before = np.broadcast_to(np.array(thresholds_tokens)[:, None], (many, sequences.requests))
    return Plan(
        before,
        np.broadcast_to(pause, (many, sequences.requests)),
        np.broadcast_to(after, (many, sequences.units)),
    )


def train_three_thresholds(
    sequences: Sequences, aftermath: Aftermath, scenario: Scenario
) -> ThreeThresholds:
    """Return the three thresholds of the grid that would have cost least.

    Parameters
    ----------
    sequences, aftermath, scenario
        As for `replay`; all combinations are tried.
    """
    grid = grid_tokens(scenario.limit_tokens)
    units = sequences.main
    main, end, subagent = grid[-1], NEVER, grid[-1]
    if units.any():
        own, left = sequences.chosen(units), aftermath.chosen(units)
        plans = (fixed_plans(own, grid, turn_end_tokens=end) for end in (*grid, NEVER))
        totals = np.stack([replay(own, left, scenario, plan).cost.sum(axis=1) for plan in plans])
        last, best = np.unravel_index(np.argmin(totals), totals.shape)
        main, end = grid[best], (*grid, NEVER)[last]
    if not units.all():
        rest, behind = sequences.chosen(~units), aftermath.chosen(~units)
        cost = replay(rest, behind, scenario, fixed_plans(rest, grid)).cost.sum(axis=1)
        subagent = grid[int(np.argmin(cost))]
    return ThreeThresholds(main, end, subagent)
