"""Whether replayed compactions paid, against a plain count of what each one saved."""

import numpy as np
import pytest

from backtest.plan import NEVER, Plan
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario
from tests.unit.backtest.sequences_by_hand import random_sequences


def verdicts(sequences, unit, plan, sizes, prices):
    """Replay a unit request by request and keep two ledgers for each compaction."""
    prefix, after, rework = sizes
    rows = range(int(sequences.begins[unit]), int(sequences.begins[unit + 1]))
    context = float(sequences.context_tokens[rows[0]])
    without = None  # the context as it would be without the latest compaction
    spent = saved = 0.0
    paid = 0
    for row in rows[1:]:
        growth, cold = sequences.growth_tokens[row], sequences.gap_seconds[row] > 300
        read = prices.write_weight if cold else prices.read_weight
        pause = context > after and context >= plan.in_pause[row]
        late = context > after and not pause
        late = late and context >= min(plan.before_request[row], prices.limit_tokens)
        if pause or late:
            paid += without is not None and saved > spent
            summary = (1.0 if late and cold else prices.read_weight) * context + prices.call_cost
            new = growth + rework
            kept = 0.0 if cold else prefix
            bill = summary + prices.read_weight * kept + prices.write_weight * (after - kept + new)
            spent, saved = bill, read * context + prices.write_weight * growth
            without = context + growth
            context = after + new
            continue
        if without is not None:
            spent += read * context
            saved += read * without
            without += growth
        context += growth
    return paid + (without is not None and saved > spent)


@pytest.mark.parametrize("seed", range(8))
def test_what_paid_is_what_saved_more_than_it_cost(seed):
    generator = np.random.default_rng(seed)
    sequences = random_sequences(generator, 30, 40)
    sizes = (9e3, 30e3, float(generator.choice([0.0, 4e3])))
    left = Aftermath(*(np.full(sequences.units, size) for size in sizes))
    prices = Scenario(float(generator.choice([0.05, 0.5])), summary_output_tokens=1_000.0)
    plan = Plan(
        generator.choice([60e3, 150e3, NEVER], sequences.requests),
        np.where(sequences.opens_turn, generator.choice([50e3, NEVER]), NEVER),
        np.full(sequences.units, NEVER),
    )
    bill = replay(sequences, left, prices, plan)
    expected = [verdicts(sequences, unit, plan, sizes, prices) for unit in range(sequences.units)]
    assert bill.paid[0].tolist() == expected
    assert 0 < bill.paid.sum() < bill.compactions.sum()
