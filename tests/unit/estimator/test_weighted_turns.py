import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.histogram import Histogram, merge
from estimator.life_table import life_table

COLUMNS = [
    "at_risk",
    "ended",
    "ends",
    "at_risk_effective",
    "ends_effective",
    "hazard",
    "survival",
    "mean",
    "variance",
    "lower",
    "upper",
    "continue_probability",
    "tail_share",
]
few = settings(max_examples=80, deadline=None)
turns = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 20), st.booleans(), st.floats(1e-6, 4)).map(
        lambda turn: (turn[0], turn[0] + turn[1], turn[2], turn[3])
    ),
    min_size=1,
    max_size=30,
).filter(lambda rows: any(row[2] for row in rows))
thresholds = st.fixed_dictionaries(
    {"min_at_risk": st.sampled_from([1, 3, 20]), "min_ends": st.sampled_from([1, 3])}
)


def weighted(rows, scale=1.0):
    return Histogram.from_rows(
        (entry, exit_, ended, scale * weight, (scale * weight) ** 2)
        for entry, exit_, ended, weight in rows
    )


def effective(values):
    squares = sum(value**2 for value in values)
    return sum(values) ** 2 / squares if squares else 0.0


@few
@given(turns, thresholds)
def test_turns_that_all_weigh_one_make_the_unweighted_table(rows, options):
    ones = [(*row[:3], 1.0) for row in rows]
    expected = life_table(Histogram.from_rows((*row[:3], 1) for row in rows), **options)
    found = life_table(weighted(ones), **options)
    for name in COLUMNS:
        want = getattr(expected, name)
        assert getattr(found, name) == pytest.approx(want, rel=1e-12, abs=1e-15), name


@few
@given(turns, thresholds)
def test_sums_and_effective_sizes_are_those_of_a_count_turn_by_turn(rows, options):
    table = life_table(weighted(rows), **options)
    for age in range(table.tail_age + 1):
        at_risk = [w for entry, exit_, _, w in rows if entry <= age < exit_]
        ends = [w for entry, exit_, ended, w in rows if ended and exit_ > max(entry, age)]
        row = table.at(age)
        assert row.at_risk == pytest.approx(sum(at_risk), rel=1e-12)
        assert row.at_risk_effective == pytest.approx(effective(at_risk), rel=1e-11)
        assert row.ends == pytest.approx(sum(ends), rel=1e-12)
        assert row.ends_effective == pytest.approx(effective(ends), rel=1e-11)


@few
@given(turns, thresholds)
def test_mean_and_variance_are_those_of_the_recursion_by_hand(rows, options):
    table = life_table(weighted(rows), **options)
    beyond = [
        (exit_ - max(entry, table.tail_age), ended, w)
        for entry, exit_, ended, w in rows
        if exit_ > table.tail_age
    ]
    ends = sum(w for _, ended, w in beyond if ended)
    mean = sum(w * calls for calls, _, w in beyond) / ends
    variance = sum((w * (calls - mean * ended)) ** 2 for calls, ended, w in beyond) / ends**2
    for age in range(table.tail_age, -1, -1):
        if age < table.tail_age:
            at_risk = [w for entry, exit_, _, w in rows if entry <= age < exit_]
            ended = sum(w for entry, exit_, e, w in rows if e and entry <= age == exit_ - 1)
            hazard = ended / sum(at_risk) if at_risk else 0.0
            size = effective(at_risk) or 1.0
            variance = (1 - hazard) ** 2 * variance + mean**2 * hazard * (1 - hazard) / size
            mean = 1 + (1 - hazard) * mean
        assert table.mean[age] == pytest.approx(mean, rel=1e-9)
        assert table.variance[age] == pytest.approx(variance, rel=1e-7, abs=1e-9)


@few
@given(turns, thresholds, st.sampled_from([1e-30, 0.37, 1e30]))
def test_the_unit_of_weights_does_not_matter(rows, options, scale):
    one, other = life_table(weighted(rows), **options), life_table(weighted(rows, scale), **options)
    assume(one.tail_age == other.tail_age)
    for name in ("mean", "at_risk_effective", "ends_effective", "survival"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9), name


@few
@given(turns, turns)
def test_parts_merge(first, second):
    merged, whole = merge(weighted(first), weighted(second)), weighted(first + second)
    assert merged.exit.tolist() == whole.exit.tolist()
    assert merged.count == pytest.approx(whole.count, rel=1e-12)
    assert merged.squared == pytest.approx(whole.squared, rel=1e-12)
    found, expected = life_table(merged), life_table(whole)
    assert found.tail_age == expected.tail_age
    assert found.mean == pytest.approx(expected.mean, rel=1e-9)


def test_the_tail_age_asks_for_effective_sizes():
    # 30 turns at risk, but 29 of them weigh next to nothing: (1 + 29e-3)²/(1 + 29e-6) = 1.06
    light = Histogram.from_turns([9] * 30, [True] * 30, weight=[1.0] + [1e-3] * 29)
    table = life_table(light, min_at_risk=2, min_ends=1)
    assert table.tail_age == 0
    assert table.at(0).at_risk_effective == pytest.approx(1.029**2 / 1.000029)
    assert life_table(light, min_at_risk=1, min_ends=1).tail_age == 8


def test_equal_weights_that_round_reach_a_threshold():
    equal = Histogram.from_turns([5] * 20, [True] * 20, weight=[0.1] * 20)
    assert life_table(equal, min_at_risk=20, min_ends=20).tail_age == 4


def test_student_interval_on_effective_ends_by_hand():
    # weights 1, 1, ½: D = 2.5²/2.25 = 2.7778; m = (2 + 4 + ½·6)/2.5 = 3.6
    # V = (1·1.6² + 1·.4² + ¼·2.4²)/2.5² = 4.16/6.25 = .6656
    turns = Histogram.from_turns([2, 4, 6], [True] * 3, weight=[1, 1, 0.5])
    row = life_table(turns).at(0)
    assert row.mean == pytest.approx(3.6)
    assert row.variance == pytest.approx(0.6656)
    assert row.ends_effective == pytest.approx(2.5**2 / 2.25)
    # exact t(1.7778) is 3.2099 at 95%; √(.6656·2.7778/1.7778)/3.6 = .28328
    width = 3.2099 * 0.28328
    assert row.upper == pytest.approx(3.6 * np.exp(width), rel=0.03)
    assert row.lower == pytest.approx(max(1.0, 3.6 * np.exp(-width)), rel=0.03)


def test_a_light_late_turn_is_not_lost_in_the_rounding_of_heavy_ones():
    # past age 6 only the light one is left, and it ends at 9
    rows = [(1, 6, True, 1e6), (2, 6, True, 3.3e6), (5, 9, True, 1e-9)]
    table = life_table(weighted(rows), min_at_risk=1, min_ends=1)
    assert table.at_risk[6:].tolist() == [1e-9] * 3
    assert table.mean[6:].tolist() == [3.0, 2.0, 1.0]
    assert table.at_risk_effective[6:] == pytest.approx([1.0] * 3)


def test_equal_turns_have_the_width_of_the_credibility_interval_whatever_they_weigh():
    # V = 0, D = 1.5²/.77 = 2.92208: cv² = 3/(D + 3), and the width z·√(cv²/(D + 3)) = z·√3/(D + 3)
    turns = Histogram.from_turns([5] * 3, [True] * 3, weight=[0.4, 0.5, 0.6])
    upper = life_table(turns).upper[0]
    assert upper == pytest.approx(5 * np.exp(1.6448536 * 3**0.5 / 5.92208), rel=1e-5)
    thirds = Histogram.from_turns([5] * 3, [True] * 3, weight=[0.1, 0.1, 0.1])
    assert life_table(thirds).upper[0] == pytest.approx(8.03868, rel=1e-5)


def test_all_cut_or_weightless_there_is_no_table():
    for rows in ([(0, 5, False, 0.5, 0.25)], [(0, 5, True, 0.0, 0.0)]):
        with pytest.raises(InputError, match="no turn ended"):
            life_table(Histogram.from_rows(rows))
