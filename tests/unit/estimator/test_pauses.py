"""Survival of pauses: by hand, and against lifelines."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.pauses import OVER_SECONDS, PAUSE_SECONDS, blended_pauses, pauses


def at(found, seconds):
    return found.survival[PAUSE_SECONDS.index(seconds)]


def test_the_grid_holds_what_caches_live_for():
    wanted = {60, 120, 180, 240, 270, 300, 600, 1800, 3300, 3600, 7200, 86400}
    assert wanted <= set(PAUSE_SECONDS)
    assert list(PAUSE_SECONDS) == sorted(PAUSE_SECONDS)


def test_by_hand():
    """Resumed after 50, 100 and 500 s; cut at 90 s; one rested for two days.

    At 50 s five are at risk: 4/5. At 100 s three (one was cut at 90): 4/5·2/3 = 8/15. At 500 s
    two: 4/15, which nobody leaves any more. So 11/15 go on, and of those (8/15 − 4/15)/(11/15)
    rest for more than 300 s.
    """
    found = pauses([100, 50, 500], [90, 172_800])
    assert found.resume_probability == pytest.approx(11 / 15)
    assert (found.turns, found.resumed) == (4, 3)
    assert at(found, 60.0) == pytest.approx((4 / 5 - 4 / 15) / (11 / 15))
    assert at(found, 300.0) == pytest.approx(4 / 11)
    assert at(found, 600.0) == 0.0


def test_a_pause_of_more_than_a_day_is_an_end():
    found = pauses([100, OVER_SECONDS + 1], [])
    assert (found.turns, found.resumed, found.resume_probability) == (2, 1, 0.5)
    assert at(found, 60.0) == 1.0
    assert at(found, 300.0) == 0.0


def test_without_any_turn_nothing_goes_on():
    found = pauses([], [])
    assert (found.turns, found.resumed, found.resume_probability) == (0, 0, 0.0)
    assert not found.survival.any()


def test_clocks_that_disagree_make_no_negative_pause():
    assert pauses([-3.0], []).resume_probability == 1.0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 80_000), min_size=1, max_size=30),
    st.lists(st.integers(1, 200_000), max_size=30),
)
def test_it_is_kaplan_meiers(resumed, waited):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lifelines' and pandas' own
        from lifelines import KaplanMeierFitter  # noqa: PLC0415 - slow, and needed here only

        fitter = KaplanMeierFitter().fit(
            [*resumed, *waited], [True] * len(resumed) + [False] * len(waited)
        )
        survival = fitter.survival_function_at_times(list(PAUSE_SECONDS)).to_numpy()
    found = pauses(resumed, waited)
    assert found.resume_probability == pytest.approx(1 - survival[-1])
    left = (survival - survival[-1]) / (1 - survival[-1])
    assert found.survival == pytest.approx(left, abs=1e-9)


def test_blending_by_hand():
    own = pauses([100] * 20, [])
    wider = np.ones(len(PAUSE_SECONDS))
    survival, z = blended_pauses(own, wider, 20.0)
    assert z == 0.5
    assert survival[PAUSE_SECONDS.index(300.0)] == 0.5
    assert blended_pauses(None, (), 20.0)[0].size == 0
    assert blended_pauses(own, (), 20.0)[1] == 1.0
    assert blended_pauses(pauses([], [5]), wider, 20.0)[1] == 0.0
