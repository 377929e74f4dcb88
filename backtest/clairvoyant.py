"""The clairvoyant: the cheapest plan of all, made by who knows length, gaps and growth."""

import numpy as np
from numpy.typing import NDArray

from backtest.plan import NEVER, Plan
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences

__all__ = ["clairvoyant"]

_Numbers = NDArray[np.float64]


def clairvoyant(
    sequences: Sequences,
    aftermath: Aftermath,
    scenario: Scenario,
    *,
    pauses_in_turns: bool = False,
) -> Plan:
    """Return the plan with the least bill, unit by unit, by an exact dynamic programme.

    Parameters
    ----------
    sequences, aftermath, scenario
        As for `replay`.
    pauses_in_turns : bool, default False
        Whether it may compact before a gap in mid-turn as well. There a tool is running or its
        result has not been sent, so no agent could: the ceiling is then out of reach.

    Returns
    -------
    Plan
        A threshold of 0 where it compacts, `NEVER` elsewhere. The limit stays in force.

    Notes
    -----
    The state is the request before which it compacted last. From there on contexts are known, so
    the cheapest way to every next compaction is a minimum over the states: n² steps for n
    requests.
    """
    before = np.full(sequences.requests, NEVER)
    pause = np.full(sequences.requests, NEVER)
    opens = sequences.opens_turn
    for unit, (begin, end) in enumerate(
        zip(sequences.begins[:-1], sequences.begins[1:], strict=True)
    ):
        rows = slice(int(begin), int(end))
        cold = sequences.gap_seconds[rows] > scenario.ttl_seconds
        waits = cold & (opens[rows] | pauses_in_turns)
        sizes = np.array(
            [
                sequences.first_context_tokens[unit],
                aftermath.prefix_tokens[unit],
                aftermath.after_tokens[unit],
                aftermath.rework_tokens[unit],
            ]
        )
        for place in _cheapest(sequences.growth_tokens[rows], cold, waits, sizes, scenario):
            (pause if waits[place] else before)[int(begin) + place] = 0.0
    return Plan(before, pause, np.full(sequences.units, NEVER))


def _cheapest(
    growth: _Numbers,
    cold: NDArray[np.bool_],
    waits: NDArray[np.bool_],
    sizes: _Numbers,
    scenario: Scenario,
) -> list[int]:
    """Return the requests before which a unit compacts.

    Parameters
    ----------
    growth, cold, waits : ndarray, shape (requests,)
        Growth; whether the cache is cold; whether the compaction can be made before the pause.
    sizes : ndarray of float, shape (4,)
        First context, P, X′ and L.
    """
    first, prefix, after, rework = sizes
    read, write = scenario.read_weight, scenario.write_weight
    requests = growth.size
    weight = np.where(cold, write, read)
    # The context before request k is origin[i] + grown[k], i the last compaction (0: none yet).
    grown = np.append(0.0, np.cumsum(growth)[:-1])
    origin = after + rework - grown
    origin[0] = first
    weights, growing = np.cumsum(weight), np.cumsum(weight * grown + write * growth)
    # What a compaction costs besides reading the context: the summary, and the request itself.
    cached = np.where(cold, 0.0, prefix)
    fixed = scenario.call_cost + read * cached + write * (after - cached + growth + rework)
    reading = np.where(cold & ~waits, 1.0, read)
    best = np.full(requests, np.inf)
    best[0] = write * first
    came_from = np.zeros(requests, dtype=np.int64)
    for place in range(1, requests):
        waited = _waited(place, best, origin, weights, growing)
        context = origin[:place] + grown[place]
        totals = np.where(context > after, waited + reading[place] * context + fixed[place], np.inf)
        came_from[place] = np.argmin(totals)
        best[place] = totals[came_from[place]]
        # Who waits here must be below the limit, or have nothing to compact.
        stuck = (context >= scenario.limit_tokens) & (context > after)
        best[:place][stuck] = np.inf
    place = int(np.argmin(_waited(requests, best, origin, weights, growing)))
    found = []
    while place:
        found.append(place)
        place = int(came_from[place])
    return found[::-1]


def _waited(
    place: int, best: _Numbers, origin: _Numbers, weights: _Numbers, growing: _Numbers
) -> _Numbers:
    """Return the cost of all requests before `place`, by the last compaction among them."""
    before = place - 1
    reads = origin[:place] * (weights[before] - weights[:place])
    total: _Numbers = best[:place] + reads + (growing[before] - growing[:place])
    return total
