import numpy as np

from backtest.plan import NEVER, Plan, by_unit, plan_of
from backtest.sequences import sequences_of
from policy.thresholds import Thresholds
from tests.unit.backtest.sequences_by_hand import turn

# A sub-agent of three requests, then a session: three requests | 400 s | one | 100 s | one.
SEQUENCES = sequences_of(
    [
        turn([5e3, 6e3, 7e3], [0, 10, 500], unit="agent", main=False),
        turn([5e3, 6e3, 7e3], [0, 10, 20]),
        turn([8e3], [420]),
        turn([9e3], [520]),
    ]
)
SUBAGENT = Thresholds("some", (10.0, None), at_turn_end=1.0, at_resume=20.0)


def test_thresholds_are_looked_up_by_age_cache_and_kind():
    main = Thresholds("some", (30.0, 40.0), at_turn_end=50.0, at_resume=60.0)
    plan = plan_of(main, SUBAGENT, SEQUENCES, 300.0)
    assert plan.before_request.tolist() == [10, NEVER, 20, 30, 40, 40, 60, 30]
    assert plan.in_pause.tolist() == [NEVER] * 6 + [50, 50]
    assert plan.after_last.tolist() == [NEVER, 50]
    by_session = plan_of(main, SUBAGENT, SEQUENCES, 300.0, by_session=True)
    assert by_session.before_request.tolist() == [10, NEVER, 20, 30, 40, 40, 60, 40]


def test_only_a_wait_that_lasts_is_asked_while_idle():
    idle = ((200.0, 70.0), (300.0, None))
    main = Thresholds("some", (30.0,), 80.0, None, idle, ask_again_seconds=250.0)
    plan = plan_of(main, SUBAGENT, SEQUENCES, 300.0)
    # The end of the turn would compact from 80, the question while idle from 70.
    assert plan.in_pause[6:].tolist() == [70, 80]
    assert plan.after_last.tolist() == [NEVER, 70]


def test_nobody_waits_behind_a_turn_in_flight():
    flying = sequences_of([turn([5e3], [0]), turn([6e3], [9], ended=False, in_flight=True)])
    main = Thresholds("some", (30.0,), 80.0)
    assert plan_of(main, SUBAGENT, flying, 300.0).after_last.tolist() == [NEVER]


def test_each_unit_may_follow_a_plan_of_its_own():
    ones = Plan(np.ones(8), np.ones(8), np.ones(2))
    twos = Plan(np.full(8, 2.0), np.full(8, 2.0), np.full(2, 2.0))
    mixed = by_unit([twos, ones], SEQUENCES)
    assert mixed.before_request.tolist() == [2, 2, 2, 1, 1, 1, 1, 1]
    assert mixed.in_pause.tolist() == [2, 2, 2, 1, 1, 1, 1, 1]
    assert mixed.after_last.tolist() == [2, 1]
