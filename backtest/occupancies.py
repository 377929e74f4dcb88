"""Fixed thresholds: the grid that a rule has to beat in hindsight, and the trained three."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.plan import NEVER, Plan
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences

__all__ = ["GRID_TOKENS", "ThreeThresholds", "fixed_plans", "train_three_thresholds"]

#: 40k to 165k every 5k, and 167k, where agents compact on their own.
GRID_TOKENS: tuple[float, ...] = (*(1_000.0 * size for size in range(40, 170, 5)), 167_000.0)

_Numbers = NDArray[np.float64]


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
    main = sequences.main
    own, left = sequences.chosen(main), aftermath.chosen(main)
    totals = np.stack(
        [
            replay(own, left, scenario, fixed_plans(own, turn_end_tokens=end)).cost.sum(axis=1)
            for end in (*GRID_TOKENS, NEVER)
        ]
    )
    end, best = np.unravel_index(np.argmin(totals), totals.shape)
    subagent = GRID_TOKENS[-1]
    if not main.all():
        rest, behind = sequences.chosen(~main), aftermath.chosen(~main)
        cost = replay(rest, behind, scenario, fixed_plans(rest)).cost.sum(axis=1)
        subagent = GRID_TOKENS[int(np.argmin(cost))]
    return ThreeThresholds(GRID_TOKENS[best], (*GRID_TOKENS, NEVER)[end], subagent)
