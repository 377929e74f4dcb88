import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter

from estimator.histogram import Histogram, merge
from estimator.life_table import life_table

calls = st.integers(1, 25)
turns = st.lists(
    st.tuples(st.integers(0, 20), calls, st.booleans()).map(
        lambda turn: (turn[0], turn[0] + turn[1], turn[2], 1)
    ),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(row[2] for row in rows))
thresholds = st.fixed_dictionaries(
    {"min_at_risk": st.sampled_from([1, 3, 20]), "min_ends": st.sampled_from([1, 3])}
)
few = settings(max_examples=80, deadline=None)
ARRAYS = [
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


def brute_force_means(rows, tail_age):
    """m(i) for i ≤ τ, turn by turn, from the conditional survival and E/D beyond τ."""
    beyond = [(exit_ - max(entry, tail_age), ended) for entry, exit_, ended, _ in rows]
    beyond = [(calls, ended) for calls, ended in beyond if calls > 0]
    tail = sum(calls for calls, _ in beyond) / sum(ended for _, ended in beyond)
    means = []
    for age in range(tail_age + 1):
        mean, survival = 0.0, 1.0
        for call in range(age + 1, tail_age + 1):
            mean += survival
            at_risk = sum(entry < call <= exit_ for entry, exit_, *_ in rows)
            ended = sum(entry < call == exit_ and e for entry, exit_, e, _ in rows)
            survival *= 1 - ended / at_risk if at_risk else 1
        means.append(mean + survival * tail)
    return means


@few
@given(turns, thresholds)
def test_means_are_those_of_a_count_turn_by_turn(rows, options):
    table = life_table(Histogram.from_rows(rows), **options)
    assert table.mean == pytest.approx(brute_force_means(rows, table.tail_age), rel=1e-12)


@few
@given(turns, thresholds)
def test_every_number_is_finite_and_in_its_range(rows, options):
    table = life_table(Histogram.from_rows(rows), **options)
    for name in ARRAYS:
        values = getattr(table, name)
        assert len(values) == table.tail_age + 1
        assert np.isfinite(values).all(), name
    assert (table.mean >= 1).all()
    assert (table.lower >= 1).all()
    assert (table.lower <= table.mean + 1e-12).all()
    assert (table.mean <= table.upper + 1e-12).all()
    assert (table.variance >= 0).all()
    for name in ("hazard", "survival", "continue_probability", "tail_share"):
        values = getattr(table, name)
        assert ((values >= 0) & (values <= 1 + 1e-12)).all(), name


@few
@given(turns, turns, thresholds, st.randoms(use_true_random=False))
def test_parts_merge_and_order_does_not_matter(first, second, options, random):
    whole = first + second
    random.shuffle(whole)
    merged = merge(Histogram.from_rows(first), Histogram.from_rows(second))
    expected = life_table(Histogram.from_rows(whole), **options)
    found = life_table(merged, **options)
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


@few
@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), thresholds)
def test_without_cut_turns_the_mean_is_the_plain_one(lives, options):
    table = life_table(Histogram.from_turns(lives, [True] * len(lives)), **options)
    sample = np.array(lives)
    plain = [(sample[sample > age] - age).mean() for age in range(table.tail_age + 1)]
    assert table.mean == pytest.approx(plain, rel=1e-12)
    assert table.at(0).variance == pytest.approx(sample.var() / len(sample), rel=1e-9, abs=1e-18)


@few
@given(turns, st.integers(1, 60), st.sampled_from([1, 10**6]))
def test_a_cut_turn_never_lowers_the_mean_at_ages_it_outlived(rows, cut_at, min_at_risk):
    before = life_table(Histogram.from_rows(rows), min_at_risk=min_at_risk, min_ends=1)
    with_cut = Histogram.from_rows([*rows, (0, cut_at, False, 1)])
    after = life_table(with_cut, min_at_risk=min_at_risk, min_ends=1)
    assume(after.tail_age == before.tail_age)
    outlived = slice(min(cut_at, before.tail_age + 1))
    assert (after.mean[outlived] >= before.mean[outlived] * (1 - 1e-12)).all()


@few
@given(turns, thresholds, st.integers(0, 50))
def test_mean_is_the_sum_of_the_odds(rows, options, age):
    table = life_table(Histogram.from_rows(rows), **options)
    horizon = max(table.tail_age - age, 0)
    within = sum(table.probability_more_than(age, k) for k in range(horizon))
    tail = table.probability_more_than(age, horizon) * table.at(table.tail_age).mean
    assert table.at(age).mean == pytest.approx(within + tail, rel=1e-9)


@few
@given(turns, thresholds, st.integers(0, 50))
def test_median_is_the_first_at_most_even_odds(rows, options, age):
    table = life_table(Histogram.from_rows(rows), **options)
    median = table.median(age)
    assert table.probability_more_than(age, median) <= 0.5 + 1e-9
    assert table.probability_more_than(age, median - 1) > 0.5


@few
@given(turns, st.lists(st.integers(1, 9), min_size=40, max_size=40))
def test_survival_agrees_with_lifelines(rows, weights):
    # lifelines needs a turn seen from its start while others may enter late
    rows = [(0, 60, False, 1)] + [(*row[:3], w) for row, w in zip(rows, weights, strict=False)]
    table = life_table(Histogram.from_rows(rows), min_at_risk=1, min_ends=1)
    entry, exit_, ended, weight = zip(*rows, strict=True)
    ages = np.arange(table.tail_age + 1)
    fitter = KaplanMeierFitter()
    fitter.fit(exit_, ended, entry=entry, weights=weight, timeline=ages)
    theirs = fitter.survival_function_at_times(ages).to_numpy()
    assert table.survival == pytest.approx(theirs, abs=1e-9)


@few
@given(turns, thresholds)
def test_medians_of_all_ages_are_those_of_each(rows, options):
    table = life_table(Histogram.from_rows(rows), **options)
    each = [table.median(age) for age in range(table.tail_age + 1)]
    assert table.medians.tolist() == each


@few
@given(turns, thresholds)
def test_restricted_mean_is_the_sum_of_the_odds_up_to_the_tail_age(rows, options):
    table = life_table(Histogram.from_rows(rows), **options)
    for age in range(table.tail_age + 1):
        odds = [table.probability_more_than(age, k) for k in range(table.tail_age - age)]
        assert table.restricted_mean[age] == pytest.approx(sum(odds), rel=1e-9, abs=1e-9)
        assert table.at(age).restricted_mean == pytest.approx(table.restricted_mean[age])
