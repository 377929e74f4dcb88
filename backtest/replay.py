"""What sequences would have cost under a plan: the input-side bill, and the summaries.

Ordinary output costs the same under every plan and is left out. Growth is replayed as if a
compaction did not change it, except for the rework that the aftermath charges.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.plan import Plan
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences

__all__ = ["SAME_SIZE", "Bill", "replay"]

#: A compaction that leaves no more or less than this share off what was believed is as expected.
SAME_SIZE = 0.1

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Bill:
    """What each unit cost.

    Parameters
    ----------
    cost : ndarray of float, shape (plans, units)
        Base tokens.
    compactions : ndarray of int, shape (plans, units)
        How often it compacted.
    paid : ndarray of int, shape (plans, units)
        How many of them had saved more than they cost when the next one came, or the unit ended:
        the request that followed and the summary against what the long context would have cost.
    """

    cost: _Numbers
    compactions: NDArray[np.int64]
    paid: NDArray[np.int64]


def replay(sequences: Sequences, aftermath: Aftermath, scenario: Scenario, plan: Plan) -> Bill:
    """Bill every unit under every plan.

    Parameters
    ----------
    sequences : Sequences
        What happened.
    aftermath : Aftermath
        What a compaction would have left behind.
    scenario : Scenario
        Prices, and the limit from which a compaction is forced.
    plan : Plan
        One plan, or several.

    Returns
    -------
    Bill
        A unit's first request writes its whole context. Then, warm: r·b for what is cached and w
        for what is new; cold: w for all. A compaction before a request reads b at r, at 1 on a
        cold cache; one in a pause reads it at r, and the next request is then as warm or cold as
        the gap makes it. Only what is larger than X′ is compacted.
    """
    before, pause, after, believed = (
        np.atleast_2d(column)
        for column in (
            plan.before_request,
            plan.in_pause,
            plan.after_last,
            plan.believed_by_unit,
        )
    )
    # Longest units first, so that those still running are always the first ones.
    order = np.argsort(-sequences.lengths, kind="stable")
    lengths, begins = sequences.lengths[order], sequences.begins[:-1][order]
    tables = _Tables(
        sequences,
        scenario,
        aftermath.prefix_tokens[order],
        aftermath.after_tokens[order],
        aftermath.rework_tokens[order],
    )
    context = np.tile(sequences.first_context_tokens[order], (before.shape[0], 1))
    cost = scenario.write_weight * context
    made = np.zeros(context.shape, dtype=np.int64)
    verdicts = _Verdicts(context.shape, scenario.write_weight)
    shift = _shift(tables.after, believed[:, order])
    for step in range(1, int(lengths[0])):
        running = int(np.searchsorted(-lengths, -step, side="left"))
        rows = begins[:running] + step
        moved = np.where(made[:, :running] > 0, shift[:, :running], 0.0)
        found = tables.step(
            rows, context[:, :running], before[:, rows] + moved, pause[:, rows] + moved
        )
        verdicts.add(found, context[:, :running])
        context[:, :running] = found.context
        cost[:, :running] += found.cost
        made[:, :running] += found.compacts
    moved = np.where(made > 0, shift, 0.0)
    wasted = (context > tables.after) & (context >= after[:, order] + moved)
    cost += wasted * (scenario.read_weight * context + scenario.call_cost)
    made += wasted
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    return Bill(cost[:, back], made[:, back], verdicts.paid()[:, back])


def _shift(seen: _Numbers, believed: _Numbers) -> _Numbers:
    """Return by how much thresholds move once a unit's own X′ was seen; its L stays unknown."""
    known = np.where(np.isnan(believed), seen, believed)
    other = np.abs(seen - known) > SAME_SIZE * known
    return np.where(other, seen - known, 0.0)


class _Step(NamedTuple):
    """One request of each running unit.

    Context behind it, its cost and whether a compaction came before it, of shape (plans, units);
    what its context weighed and grew by, of shape (units,).
    """

    context: _Numbers
    cost: _Numbers
    compacts: NDArray[np.bool_]
    weight: _Numbers
    growth: _Numbers


class _Verdicts:
    """What the latest compaction of each unit still has to save; negative once it has paid."""

    def __init__(self, shape: tuple[int, ...], write_weight: float) -> None:
        self._write = write_weight
        self._owed, self._shorter = np.zeros(shape), np.zeros(shape)
        self._paid = np.zeros(shape, dtype=np.int64)

    def add(self, step: _Step, context: _Numbers) -> None:
        """Take off what a request saved, or begin anew where a compaction came before it.

        Parameters
        ----------
        step : _Step
        context : ndarray of float, shape (plans, running units)
            Before the request.
        """
        units = step.weight.size
        owed, shorter = self._owed[:, :units], self._shorter[:, :units]
        self._paid[:, :units] += step.compacts & (owed < 0)
        owed -= step.weight * shorter
        waited = step.weight * context + self._write * step.growth
        np.copyto(owed, step.cost - waited, where=step.compacts)
        # Growth is the same either way, so the contexts stay apart by as much.
        np.copyto(shorter, context + step.growth - step.context, where=step.compacts)

    def paid(self) -> NDArray[np.int64]:
        """Return how many paid, the latest ones judged where the unit ends."""
        return self._paid + (self._owed < 0)


class _Tables:
    """What a step needs of the units, longest first."""

    def __init__(
        self,
        sequences: Sequences,
        scenario: Scenario,
        prefix: _Numbers,
        after: _Numbers,
        rework: _Numbers,
    ) -> None:
        self.scenario, self.prefix, self.after, self.rework = scenario, prefix, after, rework
        self.growth = sequences.growth_tokens
        self.cold = sequences.gap_seconds > scenario.ttl_seconds

    def step(
        self, rows: NDArray[np.int64], context: _Numbers, before: _Numbers, pause: _Numbers
    ) -> _Step:
        """Replay one request of each running unit."""
        scenario, units = self.scenario, rows.size
        read, write = scenario.read_weight, scenario.write_weight
        cold, after = self.cold[rows], self.after[:units]
        larger = context > after
        early = larger & (context >= pause)
        late = larger & ~early & (context >= np.minimum(before, scenario.limit_tokens))
        compacts = early | late
        summary = np.where(late & cold, 1.0, read) * context + scenario.call_cost
        kept = np.where(compacts, after, context)
        cached = np.where(cold, 0.0, np.where(compacts, self.prefix[:units], context))
        new = self.growth[rows] + np.where(compacts, self.rework[:units], 0.0)
        paid = np.where(compacts, summary, 0.0) + read * cached + write * (kept - cached + new)
        weight = np.where(cold, write, read)
        return _Step(kept + new, paid, compacts, weight, self.growth[rows])
