"""Small sequences for tests: turns written out, and random ones."""

import numpy as np

from backtest.sequences import Sequences, Turn, sequences_of

CACHE_SECONDS = 300.0


def turn(contexts, times=None, **told) -> Turn:
    facts = {"project": "p", "session": "s", "unit": "main", "main": True, "ended": True}
    given = tuple(times) if times is not None else (None,) * len(contexts)
    return Turn(
        contexts_tokens=tuple(map(float, contexts)), times_seconds=given, **{**facts, **told}
    )


def random_sequences(generator: np.random.Generator, units: int, longest: int) -> Sequences:
    """Return units of up to so many requests, with pauses that outlast the cache in some."""
    turns = []
    for unit in range(units):
        at, context = 0.0, float(generator.integers(5, 60)) * 1e3
        left = int(generator.integers(1, longest + 1))
        while left:
            made = int(generator.integers(1, left + 1))
            left -= made
            contexts, times = [], []
            for _ in range(made):
                at += float(generator.choice([10.0, 100.0, 301.0, 5_000.0], p=[0.5, 0.2, 0.1, 0.2]))
                contexts.append(context)
                times.append(at)
                context += float(generator.integers(0, 40)) * 1e3
            turns.append(turn(contexts, times, session=f"s{unit:03}"))
    return sequences_of(turns)
