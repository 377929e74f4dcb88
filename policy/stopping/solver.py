"""The solver: problems in batches, and the thresholds read off the fixed point of each."""

from collections.abc import Sequence

import numpy as np

from policy.stopping.batch import Batch, batch_of, blocks
from policy.stopping.crossing import crossing
from policy.stopping.end import End, end_of
from policy.stopping.fixed_point import Sweeps, fixed_point
from policy.stopping.problem import Problem, Solution
from policy.stopping.turn import Turn, turn_of

__all__ = ["solve"]


def solve(
    problems: Sequence[Problem], *, tolerance: float = 1.0, keep_ages: bool = False
) -> list[Solution]:
    """Solve problems side by side.

    Parameters
    ----------
    problems : sequence of Problem
        Each for itself; they share nothing but the time it takes.
    tolerance : float, default 1
        How far values may be from the fixed point, in base tokens; thresholds are then off by
        less than a token or so.
    keep_ages : bool
        Whether to keep the values at every age, some 0.3 MB for 400.

    Returns
    -------
    list of Solution
        In the order of the problems.
    """
    found: dict[int, Solution] = {}
    for places, block in blocks(problems):
        batch = batch_of([problems[place] for place in places], block)
        found.update(zip(places, _solve(batch, tolerance, keep_ages=keep_ages), strict=True))
    return [found[place] for place in range(len(problems))]


def _solve(batch: Batch, tolerance: float, *, keep_ages: bool) -> list[Solution]:
    """Find what the end of a turn is worth, then read everything off one last sweep."""
    point = fixed_point(batch, tolerance)
    turn = turn_of(batch, point.end, point.after, tolerance, thresholds=True, keep_ages=keep_ages)
    return _solutions(batch, turn, end_of(batch, turn.warm, turn.cold), point.sweeps)


def _solutions(batch: Batch, turn: Turn, end: End, sweeps: Sweeps) -> list[Solution]:
    """Hand out what was solved side by side, problem by problem."""
    at_end, at_idle = crossing(batch, end.excess), crossing(batch, end.idle_excess)
    solutions = []
    for place, problem in enumerate(batch.problems):
        ages = max(batch.ages[place], 2)
        goes_on = bool(problem.setting.resume_probability)
        asked = goes_on and problem.asked_share is not None
        by_age = [values[:, place] for values in turn.by_age[:ages]]
        solutions.append(
            Solution(
                at_call=tuple(_or_none(at[place]) for at in turn.at_call[:ages]),
                at_turn_end=_or_none(at_end[place]) if goes_on else None,
                at_resume=_or_none(turn.at_resume[place]),
                at_idle=_or_none(at_idle[place]) if asked else None,
                context_tokens=batch.context[:, place].copy(),
                warm=turn.warm[:, place].copy(),
                cold=turn.cold[:, place].copy(),
                turn_end=end.value[:, place].copy(),
                by_age=np.array(by_age) if by_age else None,
                sweeps=int(sweeps[place]),
            )
        )
    return solutions


def _or_none(threshold: float) -> float | None:
    return None if np.isnan(threshold) else float(threshold)
