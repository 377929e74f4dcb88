from dataclasses import replace

import numpy as np
import pytest

from backtest.clairvoyant import clairvoyant
from backtest.plan import NEVER, Plan
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario
from tests.unit.backtest.bill_by_hand import cheapest
from tests.unit.backtest.sequences_by_hand import CACHE_SECONDS, random_sequences


@pytest.mark.parametrize("in_turns", [False, True])
@pytest.mark.parametrize("read", [0.0, 0.025, 0.1, 1.0])
def test_no_plan_of_all_is_cheaper(in_turns, read):
    generator = np.random.default_rng(int(read * 1000) + in_turns)
    sequences = random_sequences(generator, units=60, longest=7)
    prefix = generator.uniform(1e3, 5e3, 60)
    left = Aftermath(prefix, prefix + generator.uniform(0, 30e3, 60), np.full(60, 900.0))
    scenario = Scenario(read, CACHE_SECONDS, summary_output_tokens=600.0, limit_tokens=120e3)
    plan = clairvoyant(sequences, left, scenario, pauses_in_turns=in_turns)
    found = replay(sequences, left, scenario, plan)
    prices = (read, 1.25, scenario.call_cost, 120e3)
    compacted = 0
    for unit in range(sequences.units):
        rows = range(sequences.begins[unit] + 1, sequences.begins[unit + 1])
        requests = [
            (
                sequences.growth_tokens[row],
                sequences.gap_seconds[row] > CACHE_SECONDS,
                in_turns or sequences.opens_turn[row],
            )
            for row in rows
        ]
        sizes = (
            sequences.first_context_tokens[unit],
            prefix[unit],
            left.after_tokens[unit],
            900.0,
        )
        least = cheapest(requests, prices=prices, sizes=sizes)
        assert found.cost[0, unit] == pytest.approx(least, rel=1e-12)
        compacted += found.compactions[0, unit]
    assert compacted > 20


def test_it_is_a_floor_for_random_plans_on_long_units():
    generator = np.random.default_rng(5)
    sequences = random_sequences(generator, units=10, longest=120)
    left = Aftermath(np.full(10, 4e3), np.full(10, 20e3), np.zeros(10))
    scenario = Scenario(0.05, CACHE_SECONDS, limit_tokens=150e3)
    floor = replay(sequences, left, scenario, clairvoyant(sequences, left, scenario)).cost[0]
    thresholds = generator.uniform(20e3, 200e3, (300, sequences.requests))
    plan = Plan(
        thresholds,
        np.where(sequences.opens_turn, generator.permuted(thresholds, axis=1), NEVER),
        np.full((300, 10), NEVER),
    )
    costs = replay(sequences, left, scenario, plan).cost
    assert (costs >= floor - 1e-6).all()


def test_pauses_in_mid_turn_can_only_lower_the_floor():
    sequences = random_sequences(np.random.default_rng(8), units=40, longest=30)
    left = Aftermath(np.full(40, 4e3), np.full(40, 20e3), np.zeros(40))
    scenario = Scenario(0.05, CACHE_SECONDS)
    total = {
        free: replay(
            sequences, left, scenario, clairvoyant(sequences, left, scenario, pauses_in_turns=free)
        ).cost.sum()
        for free in (False, True)
    }
    assert total[True] < total[False]
    dear = replace(scenario, quality_cost=1e9, limit_tokens=1e12)
    assert np.isinf(clairvoyant(sequences, left, dear).in_pause).all()
