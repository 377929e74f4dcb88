"""The median of whole turns: what the data show, and the tail's only where they don't."""

import statistics

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter

from estimator.actuarial_table import actuarial_table, life_table_rows
from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.note_table import RoleLife, note_table
from estimator.whole_median import WholeMedian, observed_median

calls = st.lists(st.integers(1, 60), min_size=1, max_size=60)


def printed(histogram):
    table = note_table([RoleLife.of("dev", histogram)], ages=[0])
    return dict(zip(table.heads, table.cells[0], strict=True))["p50"].text


@pytest.mark.parametrize("made", [1, 2, 24, 36])
def test_half_of_one_turn_is_that_turn(made):
    one = Histogram.from_turns([made], [True])
    assert life_table(one).whole_median == (made, False)
    assert printed(one) == f"{made}"


@given(made=calls)
def test_without_cut_turns_it_is_the_median_of_the_calls(made):
    table = life_table(Histogram.from_turns(made, [True] * len(made)))
    assert table.whole_median == (statistics.median_low(made), False)


@settings(deadline=None)
@example(turns=[(2, True), (2, True), (10, False), (10, False), (10, False)])
@given(turns=st.lists(st.tuples(st.integers(2, 30), st.booleans()), min_size=1, max_size=40))
def test_with_cut_turns_it_is_lifelines_median(turns):
    made, ended = map(list, zip(*turns, strict=True))
    table = life_table(Histogram.from_turns([*made, 9], [*ended, True]))
    # A cut turn that issued n calls is at risk up to call n − 1.
    exits = [call if end else call - 1 for call, end in zip(made, ended, strict=True)]
    fitted = KaplanMeierFitter().fit([*exits, 9], [*ended, True])
    curve = fitted.survival_function_["KM_estimate"]
    # Its own median misses a curve that comes down to ½ but for rounding: ⅔ · ¾.
    half = curve[curve <= 0.5 + 1e-9].index
    assert table.observed_median == (None if half.empty else half[0])


def test_where_most_are_cut_it_is_the_open_tails_and_marked():
    # one end at call 2 of four turns, three at risk up to call 3: ¾ go on, and nobody is seen later
    cut = Histogram.from_turns([2, 4, 4, 4], [True, False, False, False])
    # 11 calls and one end: (10/11)⁷ = .513, (10/11)⁸ = .467
    assert life_table(cut).whole_median == WholeMedian(8, extrapolated=True)
    assert printed(cut) == "8~"
    row = note_table([RoleLife.of("dev", cut)], ages=[0])
    assert (row.records()[0]["p50"], row.records()[0]["p50_extrapolated"]) == (8, True)
    assert "~ at p50: too many turns are cut" in row.caption
    assert actuarial_table(life_table(cut), role="dev").cells[0][8].text == "8~"


def test_what_is_seen_carries_no_mark():
    few = Histogram.from_turns([2, 30, 40], [True] * 3)
    table = note_table([RoleLife.of("dev", few)], ages=[0])
    assert table.records()[0]["p50_extrapolated"] is False
    assert "p50:" not in table.caption.replace("mean and p50:", "")
    assert actuarial_table(life_table(few), role="dev").cells[0][8].text == "30"
    assert life_table_rows(life_table(few))[0]["median"] == 30


def test_what_decides_keeps_the_open_tail():
    # 36 calls and one end: (35/36)²⁴ = .509, (35/36)²⁵ = .494
    assert life_table(Histogram.from_turns([36], [True])).median(0) == 25


def test_weights_count_as_turns_do():
    light = Histogram([0, 0], [2, 9], [True, True], [1.0, 3.0], [1.0, 9.0])
    assert life_table(light).whole_median == (9, False)


def test_nothing_is_said_of_what_lies_behind_a_gap():
    # nobody at risk for call 2, so whether half would have ended there is not known
    assert observed_median(np.array([0.0, 0.0, 3.0]), np.array([4.0, 0.0, 3.0])) is None
    assert observed_median(np.array([2.0, 0.0, 3.0]), np.array([4.0, 0.0, 3.0])) == 1
