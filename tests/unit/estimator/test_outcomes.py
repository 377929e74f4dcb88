import math

import numpy as np
import pytest

from estimator.outcomes import (
    Judged,
    advice_worth,
    continue_check,
    probability_tenths,
    remaining_check,
    wait_worth,
)

NAN = math.nan


def judged(**columns):
    """Make decisions of as many turns and sessions, all to wait, C = 12 and s = 2."""
    rows = len(columns["remaining"])
    whole = {
        "turn": range(rows),
        "session": range(rows),
        "ended": [True] * rows,
        "requests": columns["remaining"],
        "expected": [4.0] * rows,
        "continue_probability": [NAN] * rows,
        "probability_pays": [NAN] * rows,
        "break_even": [6.0] * rows,
        "cost": [12.0] * rows,
        "saving": [2.0] * rows,
        "compact": [False] * rows,
        "forced": [False] * rows,
    } | columns
    kinds = {"turn": int, "session": int, "ended": bool, "compact": bool, "forced": bool}
    return Judged(**{name: np.array(whole[name], kinds.get(name, float)) for name in whole})


EMPTY = judged(remaining=[])


def test_nothing_says_nothing():
    assert remaining_check(EMPTY) is None
    assert continue_check(EMPTY) is None
    assert probability_tenths(EMPTY) == []
    assert (advice_worth(EMPTY).turns, advice_worth(EMPTY).net_tokens) == (0, 0)
    assert wait_worth(EMPTY).missed_tokens is None


def test_what_remained_against_m():
    told = remaining_check(judged(remaining=[1, 3, 8], expected=[2, 2, 4]))
    assert (told.decisions, told.ended) == (3, 3)
    assert told.observed == pytest.approx(4)
    assert told.expected == pytest.approx(8 / 3)
    assert told.ratio == pytest.approx(1.5)
    assert told.lower < 1.5 < told.upper


def test_m_supposes_that_the_turn_goes_on():
    # 0 remained: no further call, which the other check is about; a cut one may be such a turn.
    told = remaining_check(judged(remaining=[0, 0, 3, 5], ended=[True, False, True, True]))
    assert (told.decisions, told.observed, told.ratio) == (2, 4, 1)


def test_cut_turns_count_for_what_they_made():
    told = remaining_check(judged(remaining=[4, 6, 5], ended=[True, True, False]))
    # The open tail from the first call on: 4 + 6 + 4 calls, and 2 ends.
    assert (told.decisions, told.ended) == (3, 2)
    assert told.observed == pytest.approx(7)


def test_decisions_of_one_session_widen_the_interval():
    remaining = [1, 2, 1, 2, 9, 10, 9, 10]
    alone = remaining_check(judged(remaining=remaining))
    alike = remaining_check(judged(remaining=remaining, session=[1] * 4 + [2] * 4))
    assert alone.ratio == alike.ratio
    assert alike.upper - alike.lower > 2 * (alone.upper - alone.lower)


def test_without_an_end_the_mean_is_unknown():
    told = remaining_check(judged(remaining=[5, 9], ended=[False, False]))
    assert (told.decisions, told.ended, told.expected) == (2, 0, 4)
    assert (told.observed, told.ratio, told.lower) == (None, None, None)


def test_turns_without_another_call_against_those_expected():
    told = continue_check(
        judged(
            remaining=[0, 0, 2, 1, 0, 7],
            ended=[True, True, True, False, False, True],
            continue_probability=[0.5, 0.5, 0.75, 0.75, 0.1, NAN],
        )
    )
    # The fifth was cut right there, the sixth had no forecast.
    assert (told.decisions, told.ended) == (4, 2)
    assert told.expected == pytest.approx(1.5)
    assert told.ratio == pytest.approx(4 / 3)
    # Residuals ½, ½, −¼, −¼: √(⅝ · 4/3) / 2 on the log scale, t = 2.3534 at 3.
    factor = math.exp(2.3533634 * math.sqrt(0.625 * 4 / 3) / 2)
    assert (told.lower, told.upper) == pytest.approx((4 / 3 / factor, 4 / 3 * factor), rel=1e-4)


def test_tenths_of_the_chance_to_pay():
    tenths = probability_tenths(
        judged(
            remaining=[20, 1, 20, 20, 0],
            probability_pays=[0.05, 0.09, 0.95, 1.0, 0.5],
        )
    )
    assert [(tenth.lowest, tenth.highest) for tenth in tenths] == [(0, 0.1), (0.9, 1)]
    assert [tenth.probability for tenth in tenths] == pytest.approx([0.07, 0.975])
    assert [tenth.paid.share for tenth in tenths] == [0.5, 1]


def test_only_the_first_advice_of_a_turn_counts():
    told = advice_worth(
        judged(
            turn=[1, 1, 1, 2, 3, 4],
            remaining=[10, 9, 8, 2, 30, 50],
            ended=[True, True, True, True, False, True],
            compact=[False, True, True, True, True, True],
            forced=[False, False, False, False, False, True],
        )
    )
    # Turn 1 from its second decision: 9·2 − 12; turn 2: 2·2 − 12; turn 3 is open at 30·2 − 12.
    assert (told.turns, told.ended, told.forced) == (3, 2, 1)
    assert (told.net_tokens, told.cut_net_tokens) == (6 - 8, 48)
    assert (told.paid.paid, told.paid.unpaid) == (2, 1)


def test_what_waiting_missed_and_avoided():
    told = wait_worth(
        judged(
            remaining=[10, 2, 0, 3, 40],
            ended=[True, True, True, False, True],
            compact=[False] * 4 + [True],
        )
    )
    # n·2 − 12: 8, −8, −12 over the ended ones; 10 remained of 6 in one of three.
    assert (told.decisions, told.ended) == (4, 3)
    assert told.missed_tokens == pytest.approx(8 / 3)
    assert told.avoided_tokens == pytest.approx(20 / 3)
    # The cut one leaves at 3 of 6 behind both that ended: 1 − 2/4.
    assert told.would_have_paid.share == pytest.approx(0.5)


def test_unknown_requests_are_left_out_of_what_counts_requests():
    rows = judged(remaining=[5, 9], requests=[NAN, 9], compact=[True, True])
    assert (advice_worth(rows).turns, advice_worth(rows).net_tokens) == (1, 6)
