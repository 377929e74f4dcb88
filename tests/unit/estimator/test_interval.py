import numpy as np
import pytest

from estimator.histogram import Histogram
from estimator.interval import credibility_log_width, life_cv2, mean_interval
from estimator.life_table import life_table


def interval_of(calls, ended=None, **options):
    turns = Histogram.from_turns(calls, [True] * len(calls) if ended is None else ended)
    row = life_table(turns, **options).at(0)
    return row.lower, row.upper


def test_student_interval_by_hand():
    # m = 4, V = 2, D = 5, t(4) = 2.131847 (printed 2.132):
    # √(2·5/4)/4 = 0.395285, times t = 0.842687, 4·e^∓0.842687
    lower, upper = interval_of([1, 2, 3, 4, 10], min_at_risk=1, min_ends=1)
    assert (lower, upper) == pytest.approx((1.72221, 9.29041), rel=1e-4)


def test_student_interval_of_the_open_tail_by_hand():
    # τ = 0: m = 20/5, V = ((1−4)² + (2−4)² + (3−4)² + (4−4)² + (10−4)²)/5² = 50/25 = 2
    assert interval_of([1, 2, 3, 4, 10]) == pytest.approx((1.72221, 9.29041), rel=1e-4)


def test_level_widens_by_the_printed_quantile():
    # t(4) at 97.5% is printed as 2.776: 4·e^∓(0.395285·2.776)
    widths = np.exp(0.395285 * 2.776)
    assert interval_of([1, 2, 3, 4, 10], level=0.95) == pytest.approx(
        (4 / widths, 4 * widths), rel=1e-3
    )


def test_one_end_has_the_width_of_the_credibility_interval():
    # D = 1: v = 1, cv² = (1 + 3)/4 = 1, 1.6448536·√(1/4) = 0.8224268, 10·e^∓0.8224268
    assert interval_of([10]) == pytest.approx((4.39364, 22.7602), rel=1e-5)


def test_equal_turns_have_the_width_of_the_credibility_interval():
    # V = 0, D = 3: cv² = 3/6, 1.6448536·√(0.5/6) = 0.474828, 5·e^∓0.474828
    assert interval_of([5, 5, 5]) == pytest.approx((3.10996, 8.03868), rel=1e-5)


def test_lower_bound_is_the_call_that_is_certain():
    lower, upper = interval_of([1, 1, 1, 1])
    # m = 1, D = 4: cv² = 3/7, 1.6448536·√(3/49) = 0.406996
    assert (lower, upper) == pytest.approx((1.0, 1.50230), rel=1e-5)


def test_credibility_oracle(oracles):
    case = oracles["credibility_log"]
    ends = np.array([case["input"]["D"]])
    width = credibility_log_width(np.array([float(case["input"]["cv2"])]), ends)
    low, high = case["expected"]["ci90"]
    middle = case["expected"]["m"]
    found = (middle * np.exp(-width[0]), middle * np.exp(width[0]))
    assert found == pytest.approx((low, high), abs=case["tolerance"])


def test_cv2_of_uncensored_lives_is_the_sample_one():
    calls = np.array([1, 2, 3, 4, 10])
    # V = σ²/n with σ² = 10, so v = (σ²/n)·n²/((n−1)·m²) = s²/m², s² = 12.5 the n−1 variance
    v = life_cv2(np.array([4.0]), np.array([2.0]), np.array([5]))
    assert v[0] == pytest.approx(calls.var(ddof=1) / calls.mean() ** 2)
    assert life_cv2(np.array([4.0]), np.array([2.0]), np.array([1]))[0] == 1.0


def test_a_flat_array_of_ages_is_bounded_age_by_age():
    mean, variance = np.array([4.0, 10.0]), np.array([2.0, 0.0])
    lower, upper = mean_interval(mean, variance, np.array([5, 1]))
    assert lower == pytest.approx([1.72221, 4.39364], rel=1e-4)
    assert upper == pytest.approx([9.29041, 22.7602], rel=1e-4)


@pytest.mark.parametrize("turns", [10, 40])
def test_nominal_90_percent_covers_about_that(turns):
    rng = np.random.default_rng(20)
    covered = 0
    for _ in range(400):
        calls, cut_at = rng.geometric(0.1, turns), rng.geometric(0.03, turns)
        ended = calls <= cut_at
        lower, upper = interval_of(np.where(ended, calls, cut_at), ended)
        covered += lower <= 10 <= upper
    assert 0.83 <= covered / 400 <= 0.95
