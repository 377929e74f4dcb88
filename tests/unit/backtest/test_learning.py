import numpy as np
import pytest

from backtest.learning import learned, session_life
from backtest.observed import learned_aftermath, observed_compactions
from backtest.scenario import Scenario, fixed_aftermath
from backtest.sequences import sequences_of
from compactuary.errors import InputError
from tests.unit.backtest.sequences_by_hand import turn

# Requests at 0 10 | 400 410 420 | 500, and a sub-agent of two.
SESSION = [
    turn([10e3, 12e3], [0, 10]),
    turn([13e3, 15e3, 17e3], [400, 410, 420]),
    turn([20e3], [500]),
    turn([5e3, 9e3], [20, 1_000], unit="agent", main=False),
]


def test_habits_are_the_means_of_what_was_seen():
    sequences = sequences_of(SESSION)
    found = learned(sequences, fixed_aftermath(sequences, 1e3, 200.0), ttl_seconds=300.0)
    main, subagent = found.main, found.subagent
    assert main.growth_tokens == 2e3
    assert main.first_growth_tokens == pytest.approx((1e3 + 3e3) / 2)
    # Three turns end, two of them are followed: by 390 s and by 80 s.
    assert main.resume_probability == pytest.approx(2 / 3)
    assert main.cold_probability == 0.5
    assert main.requests_after_turn == pytest.approx((4 + 1 + 0) / 3)
    assert dict(main.pauses)[75.0] == 1.0
    assert dict(main.pauses)[300.0] == 0.5
    assert main.miss_probability == 0.0
    assert (main.prefix_tokens, main.after_tokens, main.rework_tokens) == (10e3, 11e3, 200.0)
    # 2, 3 and 1 requests: on average 2.
    assert main.life.expected[0] == pytest.approx(2.0)
    assert subagent.miss_probability == 1.0
    assert (subagent.resume_probability, subagent.requests_after_turn) == (0.0, 0.0)
    assert subagent.growth_tokens == 4e3


def test_a_project_has_its_own_way_of_going_on_as_far_as_it_was_seen():
    other = [turn([10e3, 12e3], [at, at + 10], project="q", session=str(at)) for at in range(30)]
    sequences = sequences_of([*SESSION, *other])
    found = learned(sequences, fixed_aftermath(sequences), 300.0)
    everywhere = 2 / 33
    assert found.main.resume_probability == pytest.approx(everywhere)
    assert found.of_project("p").resume_probability == pytest.approx(
        (2 + 10 * everywhere) / (3 + 10)
    )
    assert found.of_project("q").resume_probability == pytest.approx(10 * everywhere / 40)
    assert found.of_project("p").cold_probability == pytest.approx((1 + 10 * 0.5) / (2 + 10))
    assert found.of_project("q").cold_probability == 0.5
    assert found.of_project("p").growth_tokens == found.main.growth_tokens
    assert found.of_project("never seen") == found.main


def test_a_cut_turn_is_no_end():
    cut = turn([10e3, 12e3, 14e3], [600, 610, 620], ended=False, asked_for_tools=True)
    sequences = sequences_of([*SESSION, cut])
    life = learned(sequences, fixed_aftermath(sequences), 300.0).main.life
    # 2 + 3 + 1 requests, and three that were survived, over three ends.
    assert life.expected[0] == pytest.approx(3.0)


def test_without_any_end_there_is_nothing_to_learn():
    sequences = sequences_of([turn([1e3, 2e3], ended=False)])
    with pytest.raises(InputError, match="no turn of a main session ended"):
        learned(sequences, fixed_aftermath(sequences), 300.0)


def test_sub_agents_never_seen_are_taken_for_sessions_of_one_turn():
    sequences = sequences_of(SESSION[:3])
    found = learned(sequences, fixed_aftermath(sequences), 300.0)
    assert found.subagent.life == found.main.life
    assert found.subagent.resume_probability == 0.0


def test_sessions_live_in_requests():
    assert session_life(sequences_of(SESSION)).expected[0] == pytest.approx(6.0)


def test_a_setting_is_forced_at_the_limit():
    sequences = sequences_of(SESSION)
    main = learned(sequences, fixed_aftermath(sequences), 300.0).main
    setting = main.setting(Scenario(0.1, limit_tokens=90e3))
    assert setting.limit_tokens() == pytest.approx(90e3)
    assert setting.summary_cost(50e3) == pytest.approx(0.1 * 50e3 + 5 * 6e3)


def test_compactions_in_the_logs_are_falls_that_last():
    calm = [60e3, 62e3, 64e3, 66e3]
    real = turn([*calm, 30e3, 35e3, 40e3, 45e3], session="real")
    dip = turn([*calm, 1e3, 68e3, 70e3], session="dip")
    small = turn([20e3, 5e3, 6e3], session="small")
    sequences = sequences_of([real, dip, small])
    seen = observed_compactions(sequences)
    assert [sequences.session[unit] for unit in seen.unit] == ["p/real"]
    assert (seen.before_tokens.tolist(), seen.after_tokens.tolist()) == ([66e3], [30e3])
    # Three requests of 5k behind it, three of 2k ahead.
    assert seen.rework_tokens.tolist() == [9e3]


def test_an_aftermath_is_learned_from_the_units_that_may_be_known():
    told = [
        turn([15e3, 70e3, 80e3, 35e3, 36e3, 60e3], session="a"),
        turn([15e3, 70e3, 80e3, 45e3, 46e3, 47e3], session="b"),
        turn([15e3, 16e3], session="c"),
    ]
    sequences = sequences_of(told)
    everybody = np.ones(3, dtype=bool)
    truth = learned_aftermath(sequences, everybody, own=True)
    assert (truth.after_tokens - truth.prefix_tokens).tolist() == [20e3, 30e3, 25e3]
    believed = learned_aftermath(sequences, np.array([True, False, True]), own=False)
    assert (believed.after_tokens - believed.prefix_tokens).tolist() == [20e3] * 3
    nothing = learned_aftermath(sequences, np.array([False, False, True]), own=False)
    assert (nothing.after_tokens - nothing.prefix_tokens).tolist() == [16e3] * 3
