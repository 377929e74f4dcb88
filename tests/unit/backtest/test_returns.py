import numpy as np
import pytest

from backtest.learning import learned
from backtest.plan import NEVER, Plan
from backtest.returns import Waits, fit_returns, idle_thresholds, waits_of, with_idle
from backtest.scenario import Scenario, fixed_aftermath
from backtest.sequences import sequences_of
from policy.rules.idle import asked_share
from policy.rules.rules import RULES
from policy.stopping import Problem, solve
from tests.unit.backtest.sequences_by_hand import turn

SHORT = Scenario(0.1, 300.0)
SESSION = sequences_of(
    [
        turn([10e3, 12e3], [0, 100]),
        turn([13e3], [700]),
        turn([15e3, 16e3], [990, 1_000]),
        turn([5e3], [50], unit="agent", main=False),
    ]
)


def knowledge(sequences):
    return learned(sequences, fixed_aftermath(sequences, 5e3), SHORT.ttl_seconds)


def test_waits_follow_every_turn_of_a_main_session():
    waits = waits_of(SESSION, knowledge(SESSION), SHORT)
    rows = waits.row - SESSION.begins[list(SESSION.main).index(True)]
    assert rows.tolist() == [1, 2, 4]
    assert waits.pause_seconds.tolist() == [600, 290, np.inf]
    odds, age = waits.known.T
    assert np.expm1(age) == pytest.approx([100, 700, 1_000])
    # Of three waits two end, one of them late, both after the question: one late return in three.
    assert odds == pytest.approx([np.log(1 / 2)] * 3)


def test_the_regression_finds_what_decides():
    generator = np.random.default_rng(0)
    known = generator.normal(size=(4_000, 2))
    odds = 1 / (1 + np.exp(-(0.5 + 1.5 * known[:, 0])))
    late = generator.random(4_000) < odds
    pause = np.where(late, 900.0, np.inf)
    found = fit_returns(Waits(np.arange(4_000), pause, known), ttl_seconds=300.0)
    errors = found.probability(known) - odds
    assert np.abs(errors).mean() < 0.02
    assert found.probability(known).mean() == pytest.approx(late.mean(), abs=1e-3)


def test_pauses_too_short_to_be_asked_in_teach_nothing():
    known = np.zeros((4, 2))
    waits = Waits(np.arange(4), np.array([10.0, 280.0, 400.0, np.inf]), known)
    assert fit_returns(waits, 300.0).probability(known[:1]) == pytest.approx(0.5)
    nobody = fit_returns(Waits(np.arange(2), np.array([1.0, 2.0]), known[:2]), 300.0)
    assert nobody.probability(known[:1]) == pytest.approx(0.5)


def test_a_threshold_is_where_the_saving_times_the_chance_is_the_cost():
    habits = learned(SESSION, fixed_aftermath(SESSION, 5e3), 300.0).main
    setting = habits.setting(Scenario(0.05, summary_output_tokens=200.0))
    chances = np.array([0.0, 0.3, 0.6, 1.0])
    found = idle_thresholds({"p": (habits.life, setting)}, ["p"] * 4, chances)
    assert found[0] == NEVER
    assert (np.diff(found[1:]) < 0).all()
    solution = solve([Problem(habits.life, setting, asked_share(setting, 285.0))])[0]
    for chance, context in zip(chances[1:], found[1:], strict=True):
        saved = solution.value(solution.cold, context) - solution.cold[0]
        assert chance * saved == pytest.approx(setting.summary_cost(context), rel=1e-6)


def test_at_the_average_chance_it_is_the_rule_idle():
    # Nobody comes back between the question after 285 s and the expiry after 300.
    sequences = sequences_of(
        [turn([10e3, 12e3], [0, 100]), turn([13e3], [700]), turn([15e3, 16e3], [900, 950])]
    )
    habits = learned(sequences, fixed_aftermath(sequences, 5e3), 300.0).main
    setting = habits.setting(Scenario(0.05, summary_output_tokens=200.0))
    rule = RULES["idle"](habits.life, setting).at("idle", idle_seconds=285.0)
    # Of three waits one is short, one is long, and one is for ever.
    found = idle_thresholds({"p": (habits.life, setting)}, ["p"], np.array([1 / 2]))[0]
    assert rule == pytest.approx(found, rel=1e-9)


def test_only_waits_that_last_are_asked_in():
    plan = Plan(np.full(6, 1.0), np.full(6, 2.0), np.full(2, 3.0))
    waits = waits_of(SESSION, knowledge(SESSION), SHORT)
    asked = with_idle(plan, SESSION, waits, np.array([11.0, 12.0, 13.0]), Scenario(0.1, 300.0))
    main = list(SESSION.main).index(True)
    begin = SESSION.begins[main]
    assert asked.before_request.tolist() == [1.0] * 6
    assert np.isfinite(asked.in_pause).sum() == 2
    assert asked.in_pause[begin + 2] == 11.0
    assert asked.in_pause[begin + 3] == 12.0
    assert asked.after_last[main] == 13.0
    later = with_idle(plan, SESSION, waits, np.array([11.0, 12.0, 13.0]), Scenario(0.1, 310.0))
    assert np.isfinite(later.in_pause).sum() == 1
