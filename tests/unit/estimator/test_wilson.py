import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.wilson import wilson_interval


# R. G. Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, the score method at 95%
@pytest.mark.parametrize(
    ("found", "size", "printed"),
    [
        (81, 263, (0.2553, 0.3662)),
        (15, 148, (0.0624, 0.1605)),
        (0, 20, (0.0000, 0.1611)),
        (1, 29, (0.0061, 0.1718)),
    ],
)
def test_printed_intervals(found, size, printed):
    lower, upper = wilson_interval(found / size, size, level=0.95)
    assert (lower[0], upper[0]) == pytest.approx(printed, abs=5e-5)


@given(st.floats(0, 1), st.floats(0.01, 1e9), st.sampled_from([0.5, 0.9, 0.99]))
def test_the_bounds_solve_the_score_equation(odds, size, level):
    lower, upper = wilson_interval(odds, size, level)
    assert 0 <= lower[0] <= odds <= upper[0] <= 1
    z = {0.5: 0.6744897502, 0.9: 1.6448536270, 0.99: 2.5758293035}[level]
    for bound in (lower[0], upper[0]):
        if 0 < bound < 1:
            score = (odds - bound) ** 2 * size
            assert score == pytest.approx(z**2 * bound * (1 - bound), rel=1e-5, abs=1e-9)


def test_nothing_observed_bounds_nothing_and_everything_leaves_the_estimate():
    lower, upper = wilson_interval([0.3, 0.3], [0, np.inf])
    assert lower.tolist() == [0, 0.3]
    assert upper.tolist() == [1, 0.3]


@pytest.mark.parametrize(
    ("odds", "size", "level", "where"),
    [
        (1.1, 5, 0.9, "probability"),
        (float("nan"), 5, 0.9, "probability"),
        (0.5, -1, 0.9, "size"),
        (0.5, float("nan"), 0.9, "size"),
        (0.5, 5, 90, "level"),
    ],
)
def test_out_of_range_is_refused(odds, size, level, where):
    with pytest.raises(InputError, match=rf"^{where}"):
        wilson_interval(odds, size, level)
