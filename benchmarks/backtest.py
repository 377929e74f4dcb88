"""A backtest of 50,000 requests under 12 rules with 1,000 draws of the bootstrap, on one core."""

import argparse
import os
import resource
from collections.abc import Iterator

import numpy as np

from backtest.backtest import Options, backtest
from backtest.scenario import Scenario
from backtest.sequences import Sequences, Turn, sequences_of
from benchmarks.import_tree import TO_MEBIBYTES, timed

REQUESTS = 50_000
DRAWS = 1_000
#: The dear ones among them: each rule of the model once, and thresholds.
RULES = (
    *("never", "occupancy 60k", "occupancy 80k", "occupancy 100k", "occupancy 120k"),
    *("occupancy 150k", "three-thresholds", "eoq", "break-even", "reorder", "renewal", "idle"),
)
_FIRST, _AFTER, _FULL = 18_000.0, 51_000.0, 160_000.0


def invented(requests: int, seed: int = 1) -> Sequences:
    """Return sessions of several turns whose agent compacts near a full window."""
    draw = np.random.default_rng(seed)
    told: list[Turn] = []
    made = number = 0
    while made < requests:
        turns = list(_session(draw, number))
        made += sum(len(turn.contexts_tokens) for turn in turns)
        told += turns
        number += 1
    return sequences_of(told)


def _session(draw: np.random.Generator, number: int) -> Iterator[Turn]:
    context, at = _FIRST, 1e9 + 20_000.0 * number
    for place in range(int(draw.geometric(0.2))):
        contexts, times = [], []
        for _ in range(int(draw.geometric(1 / 12))):
            context += float(draw.exponential(1_200.0))
            context = _AFTER if context > _FULL else context
            at += float(draw.exponential(15.0))
            contexts.append(context)
            times.append(at)
        at += float(draw.lognormal(5.0, 1.5))
        yield Turn(
            project=f"project{number % 4}",
            session=f"session{number}",
            unit="main",
            main=True,
            contexts_tokens=tuple(contexts),
            times_seconds=tuple(times),
            ended=place % 9 > 0,
            role="main",
        )


def main() -> None:
    """Print seconds and memory."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    sequences = invented(REQUESTS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = timed(lambda: backtest(sequences, Scenario(0.1), Options(rules=RULES, draws=DRAWS)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{sequences.requests:,} requests in {len(set(sequences.session)):,} sessions, "
        f"{len(RULES)} rules, {DRAWS:,} draws: {took.cpu:.1f} s CPU, {took.wall:.1f} s wall on one "
        f"core (target 10), {peak / TO_MEBIBYTES:.0f} MiB, "
        f"{before / TO_MEBIBYTES:.0f} before",
        flush=True,
    )


if __name__ == "__main__":
    main()
