"""Samples and their credibility, by hand and against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.samples import (
    Sample,
    among_groups,
    credible,
    mean_sample,
    median_sample,
    share_sample,
)

finite = st.floats(-1e9, 1e9)


@given(st.lists(finite, min_size=1, max_size=40))
def test_median_and_quartiles_are_numpys(values):
    sample = median_sample(values)
    found = [sample.lower_quartile, sample.median, sample.upper_quartile]
    assert found == pytest.approx(np.quantile(values, [0.25, 0.5, 0.75]).tolist(), abs=1e-6)
    assert sample.value == sample.median
    assert sample.observations == len(values)


def test_a_mean_keeps_the_quartiles_of_its_values():
    sample = mean_sample([1, 2, 3, 94])
    assert sample == Sample(4, 25.0, 2.5, 1.75, 25.75)


def test_nothing_says_nothing():
    assert median_sample([]) is None
    assert mean_sample([]) is None
    assert share_sample(0, 0) is None
    assert among_groups([], 1.0) is None
    assert credible(None, 7.0, 1.0) == (7.0, 0.0)


def test_a_share():
    assert share_sample(3, 12) == Sample(12, 0.25)


@pytest.mark.parametrize(("count", "trials"), [(-1, 4), (5, 4)])
def test_an_impossible_share_is_refused(count, trials):
    with pytest.raises(InputError, match="within 0 and the trials"):
        share_sample(count, trials)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_not_finite_is_refused(wrong):
    with pytest.raises(InputError, match="must be finite"):
        median_sample([1.0, wrong])


def test_credibility_by_hand():
    """Three observations of 44,000 against K = 1 at 51,000: z = 3/4."""
    assert credible(Sample(3, 44_000.0), 51_000.0, 1.0) == (45_750.0, 0.75)


@given(st.integers(1, 500), finite, finite, st.floats(0.1, 1000))
def test_a_blend_lies_between(observations, own, wider, full):
    value, z = credible(Sample(observations, own), wider, full)
    assert 0 < z < 1
    assert min(own, wider) - 1e-3 <= value <= max(own, wider) + 1e-3


def test_a_busy_group_does_not_drown_the_others():
    """n = 1 and 99 with K = 1: weights 1/2 and 99/100, not 1 and 99."""
    together = among_groups([Sample(1, 10.0), Sample(99, 50.0)], 1.0)
    assert together == Sample(100, pytest.approx((0.5 * 10 + 0.99 * 50) / 1.49))


def test_three_groups_tell_how_they_spread():
    together = among_groups([Sample(2, value) for value in (10.0, 20.0, 60.0)], 1.0)
    assert together == Sample(6, pytest.approx(30.0), 20.0, 15.0, 40.0)
