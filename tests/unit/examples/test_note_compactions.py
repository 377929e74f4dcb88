"""The note's compactions: what it publishes comes out of the rows by hand."""

import pytest

from examples.note_compactions import JUDGED, PRODUCTION


def by_hand(row):
    """Net at r = .1, w = 1.25, o = 5, with P = 28,000, S + R = 5,000 and I = 500 tokens."""
    call = 0.1 * row.context_before + 500 + 5 * 5_000
    # Without a request after it nothing is cached again.
    cached = 1.15 * (row.context_after - 28_000) if row.ahead else 0
    return 0.1 * (row.context_before - row.context_after) * row.ahead - call - cached


def test_thirteen_were_judged_as_the_note_says():
    assert len(JUDGED) == 13
    many = [row for row in JUDGED if row.ahead >= 17]
    few = [row for row in JUDGED if row.ahead <= 9]
    near = [row for row in JUDGED if 9 < row.ahead < 17]
    assert [by_hand(row) > 0 for row in many] == [True] * 4
    assert [by_hand(row) > 0 for row in few] == [False] * 7
    assert [abs(by_hand(row)) < 6_000 for row in near] == [True] * 2
    assert all(abs(by_hand(row)) > 6_000 for row in (*many, *few))


def test_of_eighty_three_in_ten_paid_and_the_sum_is_positive():
    assert len(PRODUCTION) == 80
    nets = [by_hand(row) for row in PRODUCTION]
    won, lost = [net for net in nets if net > 0], [-net for net in nets if net < 0]
    assert len(won) / 80 == pytest.approx(0.3)
    assert sum(won) / len(won) / (sum(lost) / len(lost)) == pytest.approx(10, abs=0.5)
    assert sum(nets) == pytest.approx(6_128_450)
