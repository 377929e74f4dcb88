"""False alarms of the drift detector in a year, and turns until a change by half is found.

Each run has a reference of its own, of as few turns as are allowed; a year has 3,650 turns.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage import LIVES, Life
from estimator.drift import MIN_REFERENCE_TURNS, RATIOS, cumulated_hazard, evidence, log_statistic
from estimator.histogram import Histogram
from estimator.life_table import life_table

TURNS_A_YEAR = 3650
#: Factors on the calls of a turn, from the first turn on.
CHANGES = (1.0, 1.5, 1 / 1.5)


class Reference(NamedTuple):
    """H by age of many runs, padded to the same ages, and what each call past them adds."""

    cumulated: NDArray[np.float64]
    tail: NDArray[np.float64]

    def expected(self, exits: NDArray[np.int64]) -> NDArray[np.float64]:
        """Give H(exit) of one turn in every run."""
        last = self.cumulated.shape[1] - 1
        inside = self.cumulated[np.arange(len(exits)), np.minimum(exits, last)]
        total: NDArray[np.float64] = inside + np.maximum(exits - last, 0) * self.tail
        return total


def draw_calls(
    life: Life, draw: np.random.Generator, size: int, factor: float
) -> NDArray[np.int64]:
    return np.maximum(np.ceil(life.draw(draw, size) * factor), 1).astype(np.int64)


def references(life: Life, draw: np.random.Generator, runs: int) -> Reference:
    series, tails = [], []
    for _ in range(runs):
        calls = draw_calls(life, draw, MIN_REFERENCE_TURNS, 1.0)
        table = life_table(Histogram.from_turns(calls, np.ones(calls.size, dtype=np.bool_)))
        cumulated, tail = cumulated_hazard(table.hazard)
        series.append(cumulated)
        tails.append(tail)
    ages = max(len(each) for each in series)
    padded = [
        np.append(each, each[-1] + tail * np.arange(1, ages - len(each) + 1))
        for each, tail in zip(series, tails, strict=True)
    ]
    return Reference(np.array(padded), np.array(tails))


def alarm_turns(
    life: Life, factor: float, runs: int, seed: int, *, cut: float = 0.0
) -> NDArray[np.float64]:
    """Give the turn of each run's first alarm within a year; infinity where there is none."""
    draw = np.random.default_rng(seed)
    reference = references(life, draw, runs)
    log_evidence = np.zeros((runs, len(RATIOS)))
    found = np.full(runs, np.inf)
    for turn in range(1, TURNS_A_YEAR + 1):
        calls = draw_calls(life, draw, runs, factor)
        stop = draw.geometric(cut, runs) if cut else calls + 1
        ended = calls < stop
        log_e = evidence(reference.expected(np.minimum(calls, stop - 1)), ended)
        log_evidence = np.logaddexp(0.0, log_evidence + log_e)
        alarmed = log_statistic(log_evidence) >= math.log(TURNS_A_YEAR)
        found[alarmed & np.isinf(found)] = turn
        if factor != 1.0 and np.isfinite(found).mean() > 0.95:
            break
    return found


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drift")
    parser.add_argument("--repeats", type=int, default=2000)
    runs = parser.parse_args(arguments).repeats
    print(f"{runs} runs; a share of 10% has a Monte Carlo error of {math.sqrt(0.09 / runs):.2%}")
    print("life            false alarms a year   median delay: turns half longer   a third shorter")
    for seed, life in enumerate(LIVES):
        alarms, *delays = (
            alarm_turns(life, factor, runs, seed=3 * seed + number)
            for number, factor in enumerate(CHANGES)
        )
        rate = float(np.isfinite(alarms).mean())
        medians = [float(np.median(delay)) for delay in delays]
        print(f"{life.name:14}  {rate:19.1%}   {medians[0]:31.0f}   {medians[1]:15.0f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
