"""The batch: stopping problems laid out side by side on grids of contexts."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.stopping.problem import Array, Problem

__all__ = ["FORBIDDEN", "ROUNDING", "Batch", "batch_of", "blocks"]

#: The cost of what is not allowed: unlike infinity it can be subtracted from itself.
FORBIDDEN = 1e100
#: Two numbers that are equal on paper may differ by so much of their size.
ROUNDING = 1e-10

# Tokens beyond X′ + L that are looked at where no window limits them, by growth.
_LEAST_REACH, _MOST_REACH = 250_000.0, 1_000_000.0
_MOST_POINTS, _FEWEST_POINTS, _MOST_STEPS_A_GROWTH = 512, 96, 64
# Problems side by side: more of them no longer fit into a core's own cache.
_SIDE_BY_SIDE = 48
# What never ends has no finite cost; a thousand turns, a hundred thousand requests are as good.
_LONGEST_SESSION, _LONGEST_TURN = 1.0 - 1e-3, 1.0 - 1e-5


class _Grid(NamedTuple):
    """Steps per growth (1 where growth is a fraction of a step), width of a step, points."""

    block: int
    step: float
    points: int


def _grid(setting: Setting) -> _Grid:
    """Return a grid on which growth is a whole number of steps, or less than one step."""
    growth = setting.growth_tokens
    reach = _limit(setting) - setting.after_tokens
    block = 1
    while block < _MOST_STEPS_A_GROWTH and growth / block > reach / _FEWEST_POINTS:
        block *= 2
    step = max(growth / block, reach / _MOST_POINTS)
    # Two points past the limit tell how values go on.
    return _Grid(block, step, int(reach / step) + 3)


def _window_limit(setting: Setting) -> float:
    """Return the largest context that may wait for some request."""
    return max(setting.limit_tokens(), setting.limit_tokens(setting.first_growth_tokens))


def _limit(setting: Setting) -> float:
    """Return the largest context worth a look."""
    limit = _window_limit(setting)
    if limit <= setting.after_tokens or limit == np.inf:
        # What does not even hold X′ can't be kept by compacting: as if there were no limit.
        reach = min(_MOST_REACH, max(_LEAST_REACH, _MOST_POINTS * setting.growth_tokens))
        return setting.after_tokens + reach
    return limit


def _go_on(life: Life) -> list[float]:
    """Return 1 − h_{i+1} up to the age from which it is constant."""
    shares = list(life.go_on)
    while len(shares) > 1 and abs(shares[-1] - shares[-2]) <= ROUNDING:
        shares.pop()
    shares[-1] = min(shares[-1], _LONGEST_TURN)
    return shares


def blocks(problems: Sequence[Problem]) -> Iterator[tuple[list[int], int]]:
    """Group problems that can be solved side by side, alike in size so that little is padded."""
    groups: dict[int, list[tuple[bool, int, int, int]]] = defaultdict(list)
    for place, problem in enumerate(problems):
        grid = _grid(problem.setting)
        size = (bool(problem.setting.resume_probability), len(_go_on(problem.life)))
        groups[grid.block].append((*size, grid.points, place))
    for block, members in groups.items():
        members.sort()
        for begin in range(0, len(members), _SIDE_BY_SIDE):
            yield [member[-1] for member in members[begin : begin + _SIDE_BY_SIDE]], block


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Problems side by side: arrays of shape (points, problems), and numbers of (problems,)."""

    problems: list[Problem]
    block: int
    share: Array  # growth ÷ (block · step)
    step: Array
    context: Array
    ages: list[int]
    go_on: Array  # (ages, problems)
    read: Array  # r̄b + wg, forbidden past the limit
    summary: Array  # what compacting and the next request cost, with growth g
    first_read: Array  # the same two with growth g₀
    first_summary: Array
    cold_read: Array
    cold_summary: Array
    pause_summary: Array  # C_sum alone
    first_low: NDArray[np.intp]  # where b + g₀ is on the grid
    first_share: Array
    goes_on: Array  # q_s
    cold: Array  # p_c
    asked: Array  # P(pause > asked | goes on); NaN where nobody asks
    recache: Array  # (w − r̄)(X′ + L − p′)
    limit: Array  # the largest context that a threshold may have


def batch_of(problems: list[Problem], block: int, points: int | None = None) -> Batch:
    """Lay out problems side by side.

    Parameters
    ----------
    problems : list of Problem
        All with `block` steps per growth.
    points : int, optional
        Points of every grid; as many as the largest needs when left out.
    """
    settings = [problem.setting for problem in problems]
    grids = [_grid(setting) for setting in settings]
    step = np.array([grid.step for grid in grids])
    growth = _numbers(settings, "growth_tokens")
    first = _numbers(settings, "first_growth_tokens")
    after = _numbers(settings, "after_tokens")
    read, write = _numbers(settings, "mean_read_weight"), _numbers(settings, "write_weight")
    points = points or max(grid.points for grid in grids)
    context = after + np.arange(points)[:, None] * step
    intercept = _numbers(settings, "summary_intercept")
    pause = _numbers(settings, "summary_slope") * context + intercept
    recached = _numbers(settings, "recached_tokens")
    warm_after = pause + read * (after - recached) + write * recached
    cold_call = _numbers(settings, "cold_summary_slope") * context + intercept
    position = np.arange(points)[:, None] + first / step
    low = np.minimum(position.astype(np.intp), points - 2)
    lives = [_go_on(problem.life) for problem in problems]
    longest = max(map(len, lives))
    padded = [[*life, *[life[-1]] * (longest - len(life))] for life in lives]
    asked = [np.nan if one.asked_share is None else one.asked_share for one in problems]
    at_first = np.where(context > _limits(settings, first), FORBIDDEN, 0.0)
    at_later = np.where(context > _limits(settings, growth), FORBIDDEN, 0.0)
    return Batch(
        problems=problems,
        block=block,
        share=growth / (block * step),
        step=step,
        context=context,
        ages=[len(life) for life in lives],
        go_on=np.array(padded).T,
        read=read * context + write * growth + at_later,
        summary=warm_after + write * growth,
        first_read=read * context + write * first + at_first,
        first_summary=warm_after + write * first,
        cold_read=write * (context + first) + at_first,
        cold_summary=cold_call + write * (after + first),
        pause_summary=pause,
        first_low=low,
        first_share=position - low,
        goes_on=np.minimum(_numbers(settings, "resume_probability"), _LONGEST_SESSION),
        cold=_numbers(settings, "cold_probability"),
        asked=np.array(asked, dtype=float),
        recache=_numbers(settings, "recache_cost"),
        limit=np.array([_window_limit(setting) for setting in settings]),
    )


def _numbers(settings: Sequence[Setting], name: str) -> Array:
    return np.array([getattr(setting, name) for setting in settings], dtype=float)


def _limits(settings: Sequence[Setting], growth: Array) -> Array:
    pairs = zip(settings, growth, strict=True)
    found = (
        np.inf if (at := one.limit_tokens(float(by))) <= one.after_tokens else at
        for one, by in pairs
    )
    return np.fromiter(found, dtype=float, count=len(settings))
