import numpy as np
import pytest

from backtest.plan import NEVER, Plan, stacked
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import sequences_of
from tests.unit.backtest.bill_by_hand import BEFORE, NOTHING, PAUSE, bill
from tests.unit.backtest.sequences_by_hand import CACHE_SECONDS, random_sequences, turn


def planned(sequences, *, before=(), pause=(), after=()):
    plan = Plan(
        np.full(sequences.requests, NEVER),
        np.full(sequences.requests, NEVER),
        np.full(sequences.units, NEVER),
    )
    plan.before_request[list(before)] = 0.0
    plan.in_pause[list(pause)] = 0.0
    plan.after_last[list(after)] = 0.0
    return plan


# Two turns of two requests: 20k, +5k; a pause of 400 s; +5k, +10k.
TWO_TURNS = sequences_of(
    [turn([20e3, 25e3], [0, 10]), turn([30e3, 40e3], [410, 420])],
)
LEFT = Aftermath(np.array([4e3]), np.array([10e3]), np.array([1e3]))
PRICES = Scenario(0.1, CACHE_SECONDS, quality_cost=500.0, summary_output_tokens=1e3)
CALL = 5 * 1e3 + 500


@pytest.mark.parametrize(
    ("given", "cost", "compactions"),
    [
        # 1.25·20k; .1·20k + 1.25·5k; cold: 1.25·(25k + 5k); .1·30k + 1.25·10k
        ({}, 25_000 + 8_250 + 37_500 + 15_500, 0),
        # Before request 1, warm: reads 20k, keeps 4k of 10k cached, writes 6k + 5k + rework 1k;
        # then cold from 16k; then warm from 21k.
        (
            {"before": [1]},
            25_000 + (2_000 + CALL + 400 + 15_000) + 1.25 * 21e3 + 2_100 + 12_500,
            1,
        ),
        # In the pause: reads 25k warm, then everything is written again.
        ({"pause": [2]}, 25_000 + 8_250 + (2_500 + CALL + 1.25 * 16e3) + 1_600 + 12_500, 1),
        # Behind the pause: the summary call itself reads nothing from the cache.
        ({"before": [2]}, 25_000 + 8_250 + (25_000 + CALL + 1.25 * 16e3) + 1_600 + 12_500, 1),
        # After the last request: a summary nobody uses.
        ({"after": [0]}, 25_000 + 8_250 + 37_500 + 15_500 + 4_000 + CALL, 1),
    ],
)
def test_a_bill_worked_by_hand(given, cost, compactions):
    found = replay(TWO_TURNS, LEFT, PRICES, planned(TWO_TURNS, **given))
    assert found.cost.shape == (1, 1)
    assert found.cost[0, 0] == pytest.approx(cost, rel=1e-12)
    assert found.compactions[0, 0] == compactions


def test_a_context_at_the_limit_is_compacted_whatever_the_plan_says():
    limited = Scenario(0.1, CACHE_SECONDS, limit_tokens=25e3)
    assert replay(TWO_TURNS, LEFT, limited, planned(TWO_TURNS)).compactions[0, 0] == 1
    free = Scenario(0.1, CACHE_SECONDS, limit_tokens=30_001.0)
    assert replay(TWO_TURNS, LEFT, free, planned(TWO_TURNS)).compactions[0, 0] == 0


def test_what_is_no_larger_than_its_summary_is_left_alone():
    large = Aftermath(np.array([4e3]), np.array([41e3]), np.array([0.0]))
    plan = planned(TWO_TURNS, before=[1, 2, 3], pause=[2], after=[0])
    assert replay(TWO_TURNS, large, PRICES, plan).compactions[0, 0] == 0


@pytest.mark.parametrize(
    ("threshold", "believed", "compactions"),
    [
        # X' is 10k. Contexts are 20k, then 16k behind every compaction, 21k where it waits.
        (12e3, np.nan, 3),
        (12e3, 9.5e3, 3),  # within a tenth of what is seen
        # Made for 5k, it moves up to 17k once the first compaction was seen: 16k waits, 21k not.
        (12e3, 5e3, 2),
        (17e3, np.nan, 2),
        # Made for 15k, it moves down to 12k: 16k no longer waits.
        (17e3, 15e3, 3),
    ],
)
def test_thresholds_move_with_what_the_first_compaction_left(threshold, believed, compactions):
    plan = Plan(np.full(4, threshold), np.full(4, NEVER), np.full(1, NEVER), np.array([believed]))
    found = replay(TWO_TURNS, LEFT, PRICES, plan)
    assert found.compactions[0, 0] == compactions


def test_many_units_and_plans_at_once_cost_what_each_costs_alone():
    generator = np.random.default_rng(11)
    sequences = random_sequences(generator, units=40, longest=12)
    prefix = generator.uniform(1e3, 6e3, sequences.units)
    left = Aftermath(
        prefix, prefix + generator.uniform(1e3, 40e3, sequences.units), np.full(40, 700.0)
    )
    scenario = Scenario(0.07, CACHE_SECONDS, summary_output_tokens=2e3, limit_tokens=110e3)
    plans = [
        planned(
            sequences,
            before=np.flatnonzero(generator.random(sequences.requests) < 0.3),
            pause=np.flatnonzero(
                sequences.opens_turn & (generator.random(sequences.requests) < 0.5)
            ),
        )
        for _ in range(5)
    ]
    found = replay(sequences, left, scenario, stacked(plans))
    prices = (0.07, 1.25, scenario.call_cost, 110e3)
    for number, plan in enumerate(plans):
        for unit in range(sequences.units):
            rows = range(sequences.begins[unit] + 1, sequences.begins[unit + 1])
            sizes = (
                sequences.first_context_tokens[unit],
                left.prefix_tokens[unit],
                left.after_tokens[unit],
                700.0,
            )
            expected = followed(sequences, rows, plan, prices, sizes)
            assert found.cost[number, unit] == pytest.approx(expected, rel=1e-12)


def followed(sequences, rows, plan, prices, sizes):
    """Bill the choices that a plan of zeros and nevers comes to."""
    requests = [
        (sequences.growth_tokens[j], sequences.gap_seconds[j] > CACHE_SECONDS, True) for j in rows
    ]
    chosen = []
    for step, row in enumerate(rows):
        for choice, wanted in (
            (PAUSE, plan.in_pause[row] == 0),
            (BEFORE, plan.before_request[row] == 0),
        ):
            tried = [*chosen, choice]
            if wanted and bill(requests[: step + 1], tried, prices=prices, sizes=sizes) is not None:
                break
        else:
            tried = [*chosen, NOTHING]
            if bill(requests[: step + 1], tried, prices=prices, sizes=sizes) is None:
                tried = [*chosen, BEFORE]
        chosen = tried
    return bill(requests, chosen, prices=prices, sizes=sizes)
