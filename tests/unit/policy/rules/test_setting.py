import json
import math
from dataclasses import fields, replace

import pytest

from compactuary.errors import InputError
from policy.cache_state import CacheState
from policy.cost import compaction_terms
from policy.prices import Prices
from policy.rules.setting import Setting
from policy.sizes import Sizes
from policy.summary_call import NO_CALL, separate_call, shared_prefix_call

PRICES = Prices("m", "p", 0.1, 1.25, 2.0, 5.0, {"input": 5.0}, None, "a list", None)
SIZES = Sizes(150_000, 34_000, 18_000, 6_000, 500)


@pytest.mark.parametrize("kind", ["shared_prefix", "no_call", "separate"])
@pytest.mark.parametrize("missed", [0.0, 0.2])
@pytest.mark.parametrize(("rework", "quality"), [(0, 0.0), (8_000, 50_000.0)])
def test_cost_and_saving_are_those_of_the_cost_model(make_setting, kind, missed, rework, quality):
    state = CacheState(miss_probability=missed)
    call = {
        "shared_prefix": shared_prefix_call(SIZES, PRICES, state),
        "no_call": NO_CALL,
        "separate": separate_call(SIZES, PRICES, PRICES),
    }[kind]
    terms = compaction_terms(
        call, SIZES, PRICES, state=state, rework_tokens=rework, quality_cost=quality
    )
    setting = (
        make_setting(miss_probability=missed, rework_tokens=rework, quality_cost=quality, call=kind)
        if kind != "separate"
        else make_setting(
            miss_probability=missed, rework_tokens=rework, quality_cost=quality
        ).with_linear_call(1.0, 500 - 18_000 + 30_000)
    )
    assert setting.cost(150_000) == pytest.approx(terms.cost, rel=1e-12)
    assert setting.saving(150_000) == pytest.approx(terms.saving, rel=1e-12)


def test_a_cold_call_reads_at_the_weight_of_plain_input(make_setting):
    assert make_setting().cold_summary_slope == 1.0
    assert make_setting().without_call().cold_summary_slope == 0.0
    assert make_setting().with_linear_call(0.3, 7.0).cold_summary_slope == 0.3


def test_the_limit_leaves_room_for_growth_and_a_summary(make_setting):
    assert make_setting(window_tokens=200_000).limit_tokens() == 193_000
    assert make_setting(window_tokens=200_000).limit_tokens(5_000) == 189_000
    assert make_setting().limit_tokens() == math.inf


def test_pauses_are_a_step_curve(make_setting):
    setting = make_setting(pauses=((60.0, 0.6), (300.0, 0.35)))
    assert [setting.pause_exceeds(at) for at in (0, 59, 60, 299, 300, 9_999)] == [
        1.0, 1.0, 0.6, 0.6, 0.35, 0.35,
    ]  # fmt: skip
    assert make_setting().pause_exceeds(60) is None


def test_a_setting_survives_json(make_setting):
    setting = make_setting(
        read_weight=0.1 + 0.2, pauses=((60.0, 1 / 3),), ttl_seconds=300.0, window_tokens=2e5
    ).with_linear_call(0.1, 1 / 7)
    assert Setting.from_payload(json.loads(json.dumps(setting.to_payload()))) == setting


@pytest.mark.parametrize("damage", [{"pauses": None}, {"surplus": 1}, {"read_weight": "much"}])
def test_a_damaged_payload_is_refused(make_setting, damage):
    with pytest.raises(InputError):
        Setting.from_payload(make_setting().to_payload() | damage)


NUMBERS = [field.name for field in fields(Setting) if field.name not in ("pauses", "call")]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, True, "1"])
def test_impossible_numbers_are_refused_by_name(make_setting, name, value):
    if name == "call_intercept" and value == -1.0:
        # Where less than the context is sent, C_sum starts below 0.
        assert make_setting(call_intercept=-1.0).call_intercept == -1
        return
    with pytest.raises(InputError, match=name):
        make_setting(**{name: value})


@pytest.mark.parametrize(
    "changes",
    [
        {"miss_probability": 1.01},
        {"resume_probability": 2.0},
        {"cold_probability": 1.5},
        {"call": "prayer"},
        {"pauses": ((60.0, 0.5), (30.0, 0.4))},
        {"pauses": ((60.0, 0.5), (90.0, 0.6))},
        {"pauses": ((math.nan, 0.5),)},
        {"pauses": ((60.0, math.nan),)},
    ],
)
def test_what_is_out_of_range_is_refused(make_setting, changes):
    with pytest.raises(InputError):
        make_setting(**changes)


def test_p_prime_is_at_most_x_prime(make_setting):
    within = replace(make_setting(), cached_after_tokens=34_000)
    assert replace(within, cached_after_tokens=90_000).cost(1e5) == within.cost(1e5)
