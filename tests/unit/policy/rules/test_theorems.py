"""T1 to T3: where break-even is necessary, where it is enough, and where it is too early."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from policy.rules.break_even import break_even
from policy.rules.life import Life
from policy.stopping import Problem, solve

ORACLES = json.loads(
    (Path(__file__).parents[3] / "data" / "oracles_stopping.json").read_text("utf-8")
)


def random_turn(draw, make_setting, *, clear):
    """A one-turn session without a limit, with a falling, a constant or a rising hazard."""
    mean, shape = draw.uniform(2, 60), draw.choice([0.6, 1.0, 1.6])
    hazards = [min(0.95, (age + 1.0) ** (shape - 1) / mean) for age in range(draw.randint(2, 250))]
    setting = make_setting(
        read_weight=draw.choice([0.025, 0.05, 0.1, 0.3]),
        growth_tokens=draw.uniform(300, 4_000),
        first_growth_tokens=draw.uniform(0, 9_000),
        context_after_tokens=draw.uniform(18_000, 60_000),
        miss_probability=draw.choice([0.0, 0.1]),
    )
    return Problem(Life.of_hazards(hazards), setting.without_call() if clear else setting)


def test_t1_break_even_is_necessary_in_a_million_states(make_setting):
    draw = random.Random(8)
    problems = [random_turn(draw, make_setting, clear=not number % 4) for number in range(48)]
    states = compacted = violations = 0
    for problem, found in zip(problems, solve(problems), strict=True):
        life, setting, contexts = problem.life, problem.setting, found.context_tokens
        m = np.array([life.remaining(age) for age in range(len(found.at_call))])[:, None]
        thresholds = np.array([[np.inf if at is None else at] for at in found.at_call])
        compact = contexts >= thresholds
        gain = m * setting.saving(contexts) - setting.cost(contexts)
        violations += (compact & (gain <= 0)).sum()
        states, compacted = states + compact.size, compacted + compact.sum()
    assert violations == ORACLES["theorem_necessity"]["expected"]["violations"]
    assert states > 1_000_000
    assert compacted > 100_000


@pytest.mark.parametrize("read", [0.05, 0.1])
def test_t2_break_even_is_optimal_where_nothing_grows_and_the_hazard_rises(make_setting, read):
    setting = make_setting(
        read_weight=read, growth_tokens=0.0, first_growth_tokens=0.0, window_tokens=400_000.0
    )
    life = Life.of_hazards([0.01 * age for age in range(1, 60)])
    found = solve([Problem(life, setting)], keep_ages=True)[0]
    contexts, step = found.context_tokens, found.context_tokens[1] - found.context_tokens[0]
    within, after = contexts <= setting.limit_tokens(), setting.after_tokens
    for age, threshold in enumerate(found.at_call):
        m = life.remaining(age)
        never = read * m * contexts
        now = setting.cost(contexts) + read * m * after
        now[0] = never[0]
        best = np.minimum(never, now)[within]
        assert found.by_age[age][within] == pytest.approx(best, rel=1e-9)
        wanted = break_even(life, setting).at_call[min(age, 58)]
        if threshold is None:
            assert wanted is None or wanted > setting.limit_tokens() - step
        else:
            assert abs(threshold - wanted) < step


def test_t3_break_even_fires_too_early_where_the_hazard_falls(make_setting):
    case = ORACLES["theorem_myopic_optimal"]
    # Half the turns last 4 requests on average, half 60; s = 1,000 per request and C = 30 s.
    first, second, hazards = 0.5, 0.5, []
    for _ in range(400):
        hazards.append((first / 4 + second / 60) / (first + second))
        first, second = first * 3 / 4, second * 59 / 60
    life = Life.of_hazards(hazards)
    assert life.remaining(0) == pytest.approx(32.0, abs=0.01)
    setting = make_setting(
        write_weight=0.0,
        context_after_tokens=10_000.0,
        cached_after_tokens=10_000.0,
        summary_output_tokens=0.0,
        instruction_tokens=0.0,
        growth_tokens=0.0,
        first_growth_tokens=0.0,
        window_tokens=61_200.0,
    ).with_linear_call(0.0, 1_000.0 * case["input"]["C_over_s"])
    found = solve([Problem(life, setting)])[0]
    never = 0.1 * 20_000 * life.remaining(0)
    gain = (never - found.value(found.warm, 20_000.0)) / 1_000
    assert gain == pytest.approx(case["expected"]["optimal"], abs=case["tolerance"])
    # Break-even compacts at once and gains m − C/s.
    assert break_even(life, setting).at_call[0] <= 20_000 < found.at_call[0]
    assert life.remaining(0) - 30 == pytest.approx(case["expected"]["myopic"], abs=0.01)
