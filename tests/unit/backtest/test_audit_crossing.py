"""The crossing of P(paid), against a likelihood maximised by brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backtest.crossing import crossing
from compactuary.errors import InputError

# The note's own thirteen: 4 of 4 with 17 calls ahead and more, 0 of 7 with 9 and fewer, two near.
NOTE_CALLS = [0, 1, 2, 4, 5, 7, 9, 12, 14, 17, 25, 40, 60]
NOTE_PAID = [False] * 7 + [False, True] + [True] * 4


def brute(calls, paid):
    """Return the crossing and its 90% interval from a grid of crossings and slopes."""
    at = np.expm1(np.linspace(0, np.log1p(300), 1_500))
    slopes = np.append(0.0, np.geomspace(0.01, 60, 400))
    x = np.log1p(np.asarray(calls, dtype=float))
    sign = np.where(paid, 1.0, -1.0)
    best = np.full(at.size, -np.inf)
    for slope in slopes:
        value = -np.logaddexp(0.0, -sign * slope * (x - np.log1p(at)[:, None])).sum(axis=1)
        best = np.maximum(best, value)
    inside = at[best >= best.max() - 1.6448536**2 / 2]
    return at[best.argmax()], inside.min(), inside.max()


def test_the_crossing_is_the_likelihoods_top():
    rng = np.random.default_rng(4)
    calls = rng.geometric(0.06, 80)
    paid = rng.random(80) < 1 / (1 + np.exp(-2.5 * (np.log1p(calls) - np.log1p(12))))
    found = crossing(calls, paid)
    top, lower, upper = brute(calls, paid)
    assert found.calls == pytest.approx(top, rel=0.01)
    assert found.lower == pytest.approx(lower, rel=0.02)
    assert found.upper == pytest.approx(upper, rel=0.02)
    assert not found.separable


def test_data_that_separate_give_a_bracket_and_no_point():
    found = crossing(NOTE_CALLS, NOTE_PAID)
    assert found.separable
    assert found.calls is None
    assert (found.most_lost, found.least_paid) == (12, 14)
    assert (found.cases, found.paid) == (13, 5)
    assert found.lower < 12
    assert found.upper > 14
    _, lower, upper = brute(NOTE_CALLS, NOTE_PAID)
    assert found.lower == pytest.approx(lower, rel=0.03)
    assert found.upper == pytest.approx(upper, rel=0.03)


@pytest.mark.parametrize(
    ("calls", "paid", "reason"),
    [
        ([], [], "no compaction was judged"),
        ([3, 9], [True, True], "all have the same verdict"),
        ([3, 9], [False, False], "all have the same verdict"),
        ([1, 2, 30, 40], [True, True, False, False], "does not rise"),
    ],
)
def test_no_crossing_is_told_where_there_is_none(calls, paid, reason):
    found = crossing(calls, paid)
    assert reason in found.reason
    assert (found.calls, found.lower, found.upper) == (None, None, None)


def test_few_data_leave_the_interval_open():
    # Paid at 10, lost at 8, 9 and 20: any crossing far out fits nearly as well.
    found = crossing([8, 9, 10, 20, 21], [False, False, True, False, True])
    assert found.upper is None
    assert found.lower < found.calls


@given(st.lists(st.tuples(st.integers(0, 300), st.booleans()), min_size=2, max_size=30))
@settings(max_examples=40, deadline=None)
def test_the_interval_holds_the_crossing_and_the_bracket(rows):
    calls, paid = zip(*rows, strict=True)
    found = crossing(calls, paid)
    if found.reason:
        return
    inside = found.least_paid if found.separable else found.calls
    assert found.lower <= inside
    assert found.upper is None or inside <= found.upper + 1e-9


def test_planted_crossings_are_covered():
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(30):
        calls = rng.geometric(1 / 15, 60) - 1
        paid = rng.random(60) < 1 / (1 + np.exp(-3 * (np.log1p(calls) - np.log1p(17))))
        found = crossing(calls, paid)
        covered += not found.reason and found.lower <= 17 <= (found.upper or np.inf)
    assert covered >= 23


@pytest.mark.parametrize(
    ("calls", "paid", "told"),
    [([1, 2], [True], "as many"), ([-1, 2], [True, False], "0 or more")],
)
def test_wrong_numbers_are_refused(calls, paid, told):
    with pytest.raises(InputError, match=told):
        crossing(calls, paid)
