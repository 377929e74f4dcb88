import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from policy.rules.eoq import eoq_context
from policy.rules.life import Life
from policy.rules.reorder import cold_reorder_context, reorder, reorder_context, reorder_requests
from policy.rules.setting import Setting

ORACLES = json.loads(
    (Path(__file__).parents[3] / "data" / "oracles_stopping.json").read_text("utf-8")
)


def oracle_setting(make_setting, fixed, **changes):
    """a = 13,000, g = 1,500, r = .1, C(b) = .1b + K₀, window 200,000."""
    values = {
        "context_after_tokens": 13_000,
        "cached_after_tokens": 13_000,
        "summary_output_tokens": 0,
        "growth_tokens": 1_500,
        "first_growth_tokens": 1_500,
        "window_tokens": 201_500,
    }
    return make_setting(**(values | changes)).with_linear_call(0.1, fixed)


@pytest.mark.parametrize("fixed", ORACLES["b_star_table"]["input"]["K0"])
def test_the_published_thresholds(make_setting, fixed):
    for m, context in ORACLES["b_star_table"]["expected"][str(fixed)].items():
        found = reorder_context(float(m), oracle_setting(make_setting, float(fixed)))
        assert found == context, m


def test_beyond_the_window_the_threshold_is_never_reached(make_setting):
    unlimited = oracle_setting(make_setting, 48_750.0, window_tokens=None)
    assert reorder_context(3.0, unlimited) == 266_500


def test_the_published_cycle(make_setting):
    assert (
        reorder_requests(35.0, oracle_setting(make_setting, 18_750.0))
        == ORACLES["dp_renewal_geometric"]["expected"]["n_star"]
    )


def first_minimum(setting: Setting, m: float, most: int) -> int:
    """The first n whose W₀(n) = (A_n + pⁿC_n)/(1 − pⁿ) no longer falls, summed term by term."""
    p, a, g = 1 - 1 / m, setting.after_tokens, setting.growth_tokens
    r = setting.mean_read_weight
    reads, values = 0.0, []
    for n in range(1, most):
        reads += p ** (n - 1) * r * (a + g * (n - 1))
        values.append((reads + p**n * setting.cost(a + g * n)) / (1 - p**n))
    return values.index(min(values)) + 1


def test_the_first_order_rule_is_the_minimum_of_the_renewal_cost(make_setting):
    draw = random.Random(3)
    for _ in range(300):
        m = draw.uniform(1.5, 60)
        setting = make_setting(
            read_weight=draw.choice([0.05, 0.1, 0.3]),
            miss_probability=draw.choice([0.0, 0.05]),
            growth_tokens=draw.uniform(300, 9_000),
            context_after_tokens=draw.uniform(0, 50_000),
            cached_after_tokens=0.0,
            quality_cost=draw.choice([0.0, 40_000.0]),
        )
        setting = draw.choice(
            [setting, setting.without_call(), setting.with_linear_call(0.05, 9e3)]
        )
        found = reorder_requests(m, setting)
        # Where a turn hardly ever lasts that long, the minimum drowns in rounding.
        if found is not None and (1 - 1 / m) ** found > 1e-9:
            assert found == first_minimum(setting, m, 2_000), (m, setting)


def test_the_worked_numbers(make_setting):
    # κ = 20,050/(1,500·(3.5 − .1)) = 3.931; n − 34·(1 − (34/35)ⁿ) is 3.77 at 17 and 4.18 at 18.
    setting = oracle_setting(make_setting, 18_750.0)
    life = Life((35.0, 1.0), (1.0, 1.0))
    assert reorder(life, setting).at_call == (13_000 + 18 * 1_500, None)


def test_what_outlives_the_turn_counts(make_setting):
    setting = oracle_setting(make_setting, 18_750.0, requests_after_turn=30.0)
    assert reorder(Life((5.0,), (1.0,)), setting).at_call == (40_000,)
    assert reorder(Life((5.0,), (1.0,)), setting).at_turn_end is None


@pytest.mark.parametrize("fixed", [5_000.0, 18_750.0, 48_750.0])
def test_an_endless_turn_is_the_economic_order_quantity(make_setting, fixed):
    setting = oracle_setting(make_setting, fixed)
    assert abs(reorder_context(1e12, setting) - eoq_context(setting)) <= 1_500


def test_nothing_that_grows_is_break_even(make_setting):
    # m = 20: b > (48,900 + 2·34,000)/(2 − .1) = 61,526.3.
    assert reorder_context(20.0, make_setting(growth_tokens=0.0)) == 61_527


@pytest.mark.parametrize("m", [1.0, 0.2])
def test_a_turn_with_one_request_left_waits(make_setting, m):
    assert reorder_context(m, make_setting()) is None
    # Cold, it sends the context at 1 instead of 1.25: 1.25·(b − 34,000) > b + 30,500.
    assert cold_reorder_context(m, make_setting()) == 292_001


def test_break_even_is_necessary_in_a_million_states(make_setting):
    draw, contexts = random.Random(4), np.arange(0.0, 1e6, 1e3)
    states = compacted = violations = 0
    while states < 1_000_000:
        m = draw.choice([1.0, draw.uniform(1, 5), draw.uniform(1, 80)])
        setting = make_setting(
            read_weight=draw.uniform(0.01, 0.5),
            growth_tokens=draw.uniform(0, 6_000),
            context_after_tokens=draw.uniform(1_000, 60_000),
            summary_output_tokens=draw.uniform(0, 9_000),
            miss_probability=draw.choice([0.0, 0.1]),
        )
        threshold = reorder_context(m, setting)
        compact = contexts >= (math.inf if threshold is None else threshold)
        violations += (compact & (m * setting.saving(contexts) <= setting.cost(contexts))).sum()
        states, compacted = states + contexts.size, compacted + compact.sum()
    assert violations == ORACLES["theorem_necessity"]["expected"]["violations"]
    assert compacted > 100_000


def cold_values(setting: Setting, m: float, top: int):
    """Value iteration on whole requests: the plain recursion of a memoryless life."""
    p, a, g = 1 - 1 / m, setting.after_tokens, setting.growth_tokens
    contexts = [a + g * step for step in range(top)]
    warm = [0.0] * (top + 1)
    for _ in range(3_000):
        old = list(warm)
        renewed = setting.cost(a) - setting.summary_slope * a + setting.mean_read_weight * a
        for step, context in enumerate(contexts):
            wait = setting.mean_read_weight * context + p * old[min(step + 1, top - 1)]
            compact = setting.summary_slope * context + renewed + p * old[1]
            warm[step] = min(wait, compact) if step else wait
        if max(abs(new - was) for new, was in zip(warm, old, strict=True)) < 1e-7:
            break
    waits = [setting.write_weight * b + p * warm[s + 1] for s, b in enumerate(contexts[:-1])]
    call = setting.summary_intercept + setting.write_weight * a + p * warm[1]
    compacts = [setting.cold_summary_slope * b + call for b in contexts[:-1]]
    return next(
        (b for b, w, c in zip(contexts, waits, compacts, strict=False) if w > c and b > a), None
    )


@pytest.mark.parametrize("m", [5.0, 20.0, 50.0])
def test_the_cold_threshold_is_that_of_the_plain_recursion(make_setting, m):
    setting = make_setting()
    assert 0 <= cold_values(setting, m, 300) - cold_reorder_context(m, setting) < 1_000
