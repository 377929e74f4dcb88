"""Rules that others ship, or that a backtest compares with."""

import math

import pytest

from compactuary.errors import InputError
from policy.rules.eoq import eoq, eoq_context
from policy.rules.fixed_remaining import fixed_remaining
from policy.rules.life import Life
from policy.rules.lindy import lindy
from policy.rules.median_remaining import median_remaining
from policy.rules.never import never
from policy.rules.occupancy import occupancy
from policy.rules.three_thresholds import three_thresholds

LIFE = Life((20.0, 20.0), (1.0, 0.95))


def test_occupancy_is_a_context_or_a_share_of_the_window(make_setting):
    setting = make_setting(window_tokens=200_000)
    assert occupancy(LIFE, setting, context_tokens=80_000).at_call == (80_000,)
    assert occupancy(LIFE, setting, share=0.8).at_resume == 160_000
    assert occupancy(LIFE, setting).at_call == (167_000,)
    assert occupancy(LIFE, setting).at_turn_end is None
    assert occupancy(LIFE, make_setting()).at_call == (None,)
    with pytest.raises(InputError):
        occupancy(LIFE, setting, share=1.2)
    with pytest.raises(InputError):
        occupancy(LIFE, setting, share=0.5, context_tokens=1)


def test_eoq_by_hand(make_setting):
    # C(34,000) = 3,400 + 30,500 + 18,400 = 52,300; √(2·52,300·1,000/.1) = 32,342.
    assert eoq_context(make_setting()) == pytest.approx(34_000 + 32_341.9, abs=0.1)
    assert eoq(LIFE, make_setting()).at_resume == eoq_context(make_setting())
    assert eoq_context(make_setting(read_weight=0.0, write_weight=1.0)) is None
    assert eoq_context(make_setting(window_tokens=60_000)) is None
    assert eoq_context(make_setting(growth_tokens=0.0)) == 34_001


def test_a_constant_number_of_remaining_requests(make_setting):
    # n = 10: (48,900 + 34,000)/(1 − .1) = 92,111.1.
    assert fixed_remaining(LIFE, make_setting()).at_call == (92_112,)
    assert fixed_remaining(LIFE, make_setting(), requests=20).at_call == (61_527,)


def test_as_many_as_so_far(make_setting):
    thresholds = lindy(LIFE, make_setting(), longest=30)
    assert [thresholds.at("call", made) for made in (0, 1, 10, 20)] == [None, None, 92_112, 61_527]
    assert thresholds.at("call", 31) == thresholds.at("call", 30)


def test_the_median_less_what_was_made(make_setting):
    # P(L > n) = .95ⁿ: the median is 14.
    assert math.ceil(math.log(0.5) / math.log(0.95)) == 14
    thresholds = median_remaining(LIFE, make_setting())
    assert thresholds.at("call", 4) == 92_112
    assert thresholds.at("call", 14) is None
    assert thresholds.at("call", 500) is None


def test_three_thresholds_tell_sub_agents_by_their_single_turn(make_setting):
    chosen = {"main": 90_000, "turn_end": 60_000, "subagent": None}
    main = three_thresholds(LIFE, make_setting(resume_probability=0.9), **chosen)
    assert (main.at_call, main.at_turn_end, main.at_resume) == ((90_000,), 60_000, 90_000)
    assert three_thresholds(LIFE, make_setting(), **chosen).at_call == (None,)


def test_never(make_setting):
    thresholds = never(LIFE, make_setting())
    for moment in ("call", "turn_end", "idle", "resume"):
        assert thresholds.at(moment, 3, 100.0) is None
