import random

import pytest

from policy.break_even import break_even_requests, pays
from policy.rules.break_even import break_even, break_even_context, cold_context
from policy.rules.life import Life


def random_setting(draw, make_setting):
    """Small numbers, so that every whole context can be tried."""
    after = draw.randint(0, 60)
    made = make_setting(
        read_weight=draw.choice([0.0, 0.025, 0.1, 0.5, 1.0]),
        write_weight=draw.choice([1.0, 1.25, 2.0]),
        context_after_tokens=after,
        cached_after_tokens=draw.randint(0, after),
        summary_output_tokens=draw.randint(0, 4),
        instruction_tokens=draw.randint(0, 3),
        rework_tokens=draw.choice([0, 5]),
        miss_probability=draw.choice([0.0, 0.1]),
        quality_cost=draw.choice([0.0, 10.0]),
    )
    kind = draw.randrange(3)
    return (made, made.without_call(), made.with_linear_call(0.4, 7.0))[kind]


def test_the_context_is_the_first_whole_one_at_which_m_exceeds_c_over_s(make_setting):
    draw = random.Random(1)
    for _ in range(400):
        setting = random_setting(draw, make_setting)
        requests = draw.choice([0.0, 0.5, 1.0, 2.0, 7.3, 40.0])
        found = break_even_context(requests, setting)
        for context in range(400):
            line = break_even_requests(setting.cost(context), setting.saving(context))
            compact = line is not None and pays(requests, line)
            assert compact == (found is not None and context >= found), (setting, requests)


def test_the_cold_context_is_the_first_whole_one_at_which_it_pays(make_setting):
    draw = random.Random(2)
    for _ in range(400):
        setting = random_setting(draw, make_setting)
        requests = draw.choice([0.0, 1.0, 2.0, 7.3, 40.0])
        found = cold_context(requests, setting)
        for context in range(400):
            # net = w·D + (n − 1)·r̄·D − C_sum, the summary's call reading at its cold weight.
            shrunk = context - setting.after_tokens
            weight = setting.write_weight + max(0, requests - 1) * setting.mean_read_weight
            call = setting.cold_summary_slope * context + setting.summary_intercept
            if abs(weight * shrunk - call) < 1e-9:
                continue  # equal on paper; rounding decides
            compact = requests > 0 and shrunk > 0 and weight * shrunk > call
            assert compact == (found is not None and context >= found), (setting, requests)


def test_the_worked_numbers(make_setting):
    # C(b) = .1b + 500 + 30,000 + 1.15·16,000 = .1b + 48,900; s = .1·(b − 34,000).
    # m = 20: b > (48,900 + 2·34,000)/(2 − .1) = 61,526.3.
    assert break_even_context(20.0, make_setting()) == 61_527
    thresholds = break_even(Life((20.0, 1.0), (1.0, 1.0)), make_setting())
    assert thresholds.at_call == (61_527, None)
    assert thresholds.at_turn_end is None


def test_a_session_counts_the_requests_after_the_turn(make_setting):
    life, setting = Life((5.0,), (1.0,)), make_setting(requests_after_turn=15.0)
    assert break_even(life, setting, session=True).at_call == (61_527,)
    # m = 5: (48,900 + .5·34,000)/(.5 − .1) = 164,750.
    assert break_even(life, setting).at_call == (164_751,)


def test_clearing_what_stays_cached_pays_at_once(make_setting):
    setting = make_setting(cached_after_tokens=34_000).without_call()
    assert break_even_context(1.0, setting) == 34_001


@pytest.mark.parametrize("requests", [0.0, 0.3, 1.0])
def test_one_request_never_pays_for_reading_the_context_again(make_setting, requests):
    assert break_even_context(requests, make_setting()) is None
