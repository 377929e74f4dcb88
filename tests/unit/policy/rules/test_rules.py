"""What holds for every rule: a name, and a defined answer to whatever it is asked."""

import inspect
import itertools
import math

import pytest

from policy.rules.idle import idles
from policy.rules.life import Life
from policy.rules.renewal import renewals
from policy.rules.rules import RULES

THREE = {"main": 90_000.0, "turn_end": 60_000.0, "subagent": None}
LIVES = (
    Life((1.0,), (1.0,)),
    Life((1e300,), (1.0,)),
    Life.of_hazards([0.5, 0.0, 0.0, 1.0]),
    Life.of_hazards([1.0]),
    Life.of_hazards([0.2, 0.1]),
)
EXTREMES = (
    {},
    {"growth_tokens": 0.0},
    {"growth_tokens": 0.0, "first_growth_tokens": 0.0},
    {"first_growth_tokens": 500_000.0},
    {"growth_tokens": 500_000.0},
    {"growth_tokens": 1e-9},
    {"read_weight": 0.0},
    {"read_weight": 0.0, "write_weight": 0.0, "output_weight": 0.0},
    {"write_weight": 1.0},
    {"window_tokens": 0.0},
    {"window_tokens": 20_000.0},
    {"window_tokens": 41_001.0},
    {"window_tokens": 100_000.0},
    {"window_tokens": None},
    {"window_tokens": 1e12},
    {"context_after_tokens": 0.0, "cached_after_tokens": 0.0},
    {"context_after_tokens": 1e9},
    {"miss_probability": 1.0},
    {"cold_probability": 1.0},
    {"requests_after_turn": 1e12},
    {"rework_tokens": 200_000.0},
    {"quality_cost": 1e15},
    {"ttl_seconds": 0.0},
    {"pauses": ((0.0, 0.0),), "ttl_seconds": 300.0},
)
KINDS = (("shared_prefix", 0.0), ("shared_prefix", 0.6), ("no_call", 0.6), ("linear", 0.0))


def test_every_rule_goes_by_its_name(make_setting):
    assert set(RULES) == {
        "occupancy", "break-even", "reorder", "renewal", "idle", "eoq", "three-thresholds",
        "fixed-remaining", "lindy", "median-remaining", "never",
    }  # fmt: skip
    for name, rule in RULES.items():
        given = THREE if name == "three-thresholds" else {}
        assert rule(LIVES[-1], make_setting(), **given).rule == name
        own = list(inspect.signature(rule).parameters.values())[2:]
        assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in own)


SOLVED = {"renewal": renewals, "idle": idles}
# Break-even contexts are whole tokens, and what compacts by cost never compacts X′ itself.
BY_COST = ("break-even", "reorder", "renewal", "idle")


def compiled(problems):
    """Every rule on every problem, with its name."""
    for name, rule in RULES.items():
        if name in SOLVED:
            yield from ((name, problem, made) for problem, made in both(SOLVED[name], problems))
            continue
        given = THREE if name == "three-thresholds" else {}
        yield from ((name, problem, rule(*problem, **given)) for problem in problems)


def both(solve, problems):
    return zip(problems, solve(problems), strict=True)


@pytest.mark.parametrize("changes", EXTREMES, ids=str)
def test_every_setting_has_a_defined_answer(make_setting, changes):
    base = {"cold_probability": 0.4, "ttl_seconds": 300.0, "window_tokens": 150_000.0}
    problems = [
        (life, make_setting(**(base | {"call": kind, "resume_probability": resumed} | changes)))
        for life, (kind, resumed) in itertools.product(LIVES, KINDS)
    ]
    for name, (_, setting), thresholds in compiled(problems):
        idle = [threshold for _, threshold in thresholds.at_idle]
        told = [*thresholds.at_call, thresholds.at_turn_end, thresholds.at_resume, *idle]
        for threshold in told:
            assert threshold is None or (math.isfinite(threshold) and threshold >= 0)
        if name in BY_COST:
            assert all(at is None or at > setting.after_tokens for at in told), name


def test_a_window_smaller_than_x_prime_is_left_to_the_hard_limit(make_setting):
    setting = make_setting(window_tokens=30_000.0, resume_probability=0.9)
    for name in ("reorder", "renewal"):
        thresholds = RULES[name](LIVES[-1], setting)
        assert set(thresholds.at_call) == {None}
        assert thresholds.at_turn_end is None
