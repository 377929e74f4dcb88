import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.wilson import wilson_interval

DATA_ONLY = {"min_at_risk": 1, "min_ends": 1}
Z = 1.6448536269514722
lives = st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=40).filter(
    lambda turns: any(ended and calls > 0 for calls, ended in turns)
)


def ended_turns(calls, **options):
    return life_table(Histogram.from_turns(calls, [True] * len(calls)), **options)


# Newcombe (1998), table I: 15 of 148 and 0 of 20, and what is left of them, at 95%
@pytest.mark.parametrize(
    ("more", "size", "printed"),
    [
        (15, 148, (0.0624, 0.1605)),
        (133, 148, (0.8395, 0.9376)),
        (0, 20, (0.0, 0.1611)),
        (20, 20, (0.8389, 1.0)),
    ],
)
def test_without_cut_turns_it_is_the_interval_of_a_share(more, size, printed):
    calls = [3] * (size - more) + [9] * more
    table = ended_turns(calls, level=0.95, **DATA_ONLY)
    assert table.probability_interval(0, 5) == pytest.approx(printed, abs=5e-5)


def test_the_effective_size_is_that_of_greenwoods_variance():
    rng = np.random.default_rng(4)
    calls, cut_at = rng.geometric(0.08, 200), rng.geometric(0.03, 200)
    ended, exit_ = calls <= cut_at, np.minimum(calls, cut_at)
    table = life_table(
        Histogram.from_rows(zip([0] * 200, exit_, ended.tolist(), [1] * 200, strict=True)),
        level=0.95,
        **DATA_ONLY,
    )
    fitter = KaplanMeierFitter(alpha=0.05).fit(exit_, ended)
    for k in (3, 10, 20):
        odds = float(fitter.survival_function_at_times(k).iloc[0])
        # lifelines bounds log(−log S) by z·√(V/S²)/log S; the bound gives V back
        bounds = fitter.confidence_interval_survival_function_.loc[:k].iloc[-1].to_numpy()
        width = np.ptp(np.log(-np.log(bounds))) / (2 * 1.959964)
        variance = (width * odds * np.log(odds)) ** 2
        expected = wilson_interval(odds, odds * (1 - odds) / variance, 0.95)
        found = table.probability_interval(0, k)
        assert found == pytest.approx((expected[0][0], expected[1][0]), rel=1e-5)


def test_past_the_tail_age_the_mean_of_the_tail_is_uncertain():
    # one turn of ten: m = 10, log m has the variance 4/16 of the vote of 3 turns beside it, so
    # log .9⁷ has (7/9)²/4 = .151235 and n_eff = (1−.9⁷)/(.9⁷·.151235) = 7.21235
    table = ended_turns([10])
    odds, size = 0.9**7, 7.21235
    shrink = Z**2 / size
    half = np.sqrt(odds * (1 - odds) * shrink + shrink**2 / 4)
    expected = ((odds + shrink / 2 + sign * half) / (1 + shrink) for sign in (-1, 1))
    assert table.probability_interval(3, 7) == pytest.approx(tuple(expected), rel=1e-5)


def test_the_next_call_is_certain():
    assert ended_turns([1, 2, 3], **DATA_ONLY).probability_interval(1, 0.7) == (1.0, 1.0)


def test_where_nobody_was_at_risk_the_odds_may_be_anything():
    late = life_table(Histogram.from_rows([(3, 5, True, 1)]), **DATA_ONLY)
    assert late.probability_interval(0, 2) == (0.0, 1.0)


def test_median_of_ten_turns_by_hand():
    # N uniform on 1 … 10: P(N > k) = 1 − k/10. The score interval of P holds ½ iff
    # |P − ½| < 1.64485·½/√10 = .26008, so from k = 3 (P = .7) on, and no more at k = 8 (.2).
    table = ended_turns(list(range(1, 11)), **DATA_ONLY)
    assert table.median(0) == 5
    assert table.median_interval(0) == (3, 8)


def test_one_turn_of_one_call_cannot_tell_how_long_the_median_is():
    # P(N > 1) = 0 of one turn, whose upper bound z²/(1 + z²) = .730 never comes down
    table = ended_turns([1])
    assert table.probability_interval(0, 1) == pytest.approx((0.0, Z**2 / (1 + Z**2)))
    assert table.median_interval(0) == (1, None)


@settings(max_examples=30, deadline=None)
@given(lives, st.sampled_from([1, 5]), st.integers(0, 40))
def test_median_interval_is_where_the_bounds_of_the_odds_cross_a_half(turns, min_at_risk, age):
    calls, ended = zip(*turns, strict=True)
    table = life_table(Histogram.from_turns(calls, ended), min_at_risk=min_at_risk, min_ends=1)
    lower, upper = table.median_interval(age)
    assert 1 <= lower <= table.median(age)
    horizon = range(1, 200)
    bounds = [table.probability_interval(age, k) for k in horizon]
    half = 0.5 + 1e-12
    assert lower == next(k for k, (low, _) in zip(horizon, bounds, strict=True) if low <= half)
    crossed = [k for k, (_, high) in zip(horizon, bounds, strict=True) if high <= half]
    assert (upper in crossed[:1]) or (not crossed and (upper is None or upper >= 200))


@settings(max_examples=60, deadline=None)
@given(lives, st.integers(0, 40), st.integers(0, 60))
def test_odds_lie_within_their_interval(turns, age, remaining):
    calls, ended = zip(*turns, strict=True)
    table = life_table(Histogram.from_turns(calls, ended), min_at_risk=5, min_ends=1)
    lower, upper = table.probability_interval(age, remaining)
    assert 0 <= lower <= table.probability_more_than(age, remaining) <= upper <= 1


def test_nominal_90_percent_covers_about_that():
    rng = np.random.default_rng(8)
    odds, medians = 0, 0
    for _ in range(300):
        calls, cut_at = rng.geometric(0.1, 40), rng.geometric(0.03, 40)
        ended = calls <= cut_at
        table = life_table(Histogram.from_turns(np.where(ended, calls, cut_at), ended))
        lower, upper = table.probability_interval(2, 9)
        odds += lower <= 0.9**9 <= upper
        first, last = table.median_interval(2)
        medians += first <= 7 <= (last or np.inf)
    assert 0.84 <= odds / 300 <= 0.97
    assert 0.84 <= medians / 300 <= 0.98


@pytest.mark.parametrize("age", [-1, 0.5])
def test_ages_are_whole_and_not_negative(age):
    table = ended_turns([1, 2])
    for ask in (table.median_interval, lambda age: table.probability_interval(age, 1)):
        with pytest.raises(InputError, match="age: not a whole number from 0 on"):
            ask(age)


def test_remaining_calls_are_finite():
    with pytest.raises(InputError, match="remaining: "):
        ended_turns([1, 2]).probability_interval(0, float("nan"))
