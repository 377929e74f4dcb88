import numpy as np
import pytest
from scipy import stats

from compactuary.errors import InputError
from estimator.student_t import t_quantile

FREEDOM = np.concatenate((np.arange(1, 200), [300, 1_000, 10_000, 10**6, 10**9]))


@pytest.mark.parametrize("level", [0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999])
def test_agrees_with_scipy(level):
    exact = stats.t.ppf((1 + level) / 2, FREEDOM)
    assert t_quantile(FREEDOM, level) == pytest.approx(exact, rel=1e-5)


def test_printed_table():
    # 95th percentiles of any printed t table
    printed = [6.314, 2.920, 2.353, 2.132, 2.015, 1.812, 1.725, 1.697, 1.658]
    freedom = [1, 2, 3, 4, 5, 10, 20, 30, 120]
    assert t_quantile(freedom, 0.9) == pytest.approx(printed, abs=5e-4)


def test_a_scalar_gives_one_quantile():
    assert t_quantile(4, 0.9).shape == (1,)


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
@pytest.mark.parametrize(
    ("lowest", "highest", "too_wide"),
    [(1, 2, 0.04), (2, 3, 0.005), (3, 60, 0.002), (60, 4e3, 1e-6)],
)
def test_between_whole_degrees_it_is_a_little_too_wide(level, lowest, highest, too_wide):
    freedom = np.linspace(lowest, highest, 301)
    ratio = t_quantile(freedom, level) / stats.t.ppf((1 + level) / 2, freedom)
    assert ratio.min() > 1 - 1e-5
    assert ratio.max() < 1 + too_wide


def test_the_shape_is_kept():
    assert t_quantile(np.full((3, 4), 7.0)).shape == (3, 4)


@pytest.mark.parametrize("freedom", [0, -3, 0.5, float("nan"), float("inf")])
def test_degrees_of_freedom_are_finite_and_from_1_on(freedom):
    with pytest.raises(InputError, match=r"degrees_of_freedom: .*not numbers from 1 on"):
        t_quantile([3, freedom])


@pytest.mark.parametrize("level", [0.0, 1.0, 90, float("nan")])
def test_the_level_is_between_0_and_1(level):
    with pytest.raises(InputError, match=r"level: .*two-sided level such as 0.9"):
        t_quantile(3, level)
