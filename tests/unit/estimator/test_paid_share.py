import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.paid_share import paid_share

OPEN = False


def share_of(rows, break_even=10.0, sessions=None, level=0.9):
    """Judge (remaining, ended) rows."""
    remaining = np.array([row[0] for row in rows], dtype=float)
    ended = np.array([row[1] for row in rows], dtype=bool)
    even = np.broadcast_to(np.asarray(break_even, dtype=float), remaining.shape)
    session = np.arange(len(rows)) if sessions is None else np.array(sessions)
    return paid_share(remaining, ended, even, session, level)


def test_without_cuts_it_is_the_plain_share():
    told = share_of([(2, True), (11, True), (10, True), (40, True)])
    assert (told.paid, told.unpaid, told.undecided, told.decisions) == (2, 2, 0, 4)
    # More than the break-even must remain: 10 of 10 does not pay.
    assert told.share == pytest.approx(0.5)


def test_kaplan_meier_by_hand():
    rows = [(2, True), (5, OPEN), (8, True), (20, True), (12, OPEN)]
    told = share_of(rows)
    # 1 of 5 ends at 2; the cut one leaves; 1 of the 3 left ends at 8: 4/5 · 2/3.
    assert told.share == pytest.approx(8 / 15)
    assert (told.paid, told.unpaid, told.undecided) == (2, 2, 1)


def test_dropping_the_cut_turns_instead_would_say_something_else():
    rows = [(2, True)] * 5 + [(9, OPEN)] * 10 + [(11, True)] * 5
    assert share_of(rows).share == pytest.approx(15 / 20)  # ended ones alone: 5/10


def test_one_that_at_least_reached_a_call_was_not_watched_there():
    # Three ended at 5; the open one reached 5 and says nothing of ending there: 1 − 3/4.
    assert share_of([(5, True)] * 3 + [(5, OPEN), (30, True)]).share == pytest.approx(1 / 4)


def test_decisions_with_different_break_evens_share_the_scale():
    # In break-evens: 0.5, 0.8 cut, 0.9, and paid.
    told = share_of([(5, True), (8, OPEN), (18, True), (3, True)], [10.0, 10.0, 20.0, 2.0])
    assert told.share == pytest.approx(3 / 4 * 1 / 2)


def test_nothing_saved_never_pays_and_no_cost_pays_with_the_first_request():
    told = share_of([(50, OPEN), (3, True)], np.inf)
    assert (told.share, told.paid, told.unpaid) == (0.0, 0, 2)
    told = share_of([(1, True), (0, True)], 0.0)
    assert (told.share, told.paid, told.unpaid) == (0.5, 1, 1)


@pytest.mark.parametrize("rows", [[], [(3, OPEN)], [(1, True)] + [(4, OPEN)] * 9])
def test_what_no_turn_was_seen_far_enough_for_is_unknown(rows):
    told = share_of(rows)
    assert (told.share, told.lower, told.upper) == (None, None, None)
    assert told.undecided == sum(not ended for _, ended in rows)


def test_decisions_of_one_session_count_as_alike():
    rows = [(20, True)] * 2 + [(1, True)] * 2
    # Influences ±½/4; alone Σ² · 4/3 = 1/12, so ¼ / (1/12) = 3 decisions; in pairs 2 · (¼)² · 2,
    # one. Wilson at p = ½ is ½ ± √(¼·s + s²/4)/(1 + s), s = z²/n.
    alone, paired = share_of(rows), share_of(rows, sessions=[7, 7, 9, 9])
    for told, size in ((alone, 3), (paired, 1)):
        s = 1.6448536269514722**2 / size
        half = np.sqrt(s / 4 + s**2 / 4) / (1 + s)
        assert (told.lower, told.upper) == pytest.approx((0.5 - half, 0.5 + half))


def test_where_all_agree_sessions_are_what_is_counted():
    told = share_of([(20, True)] * 100, sessions=[n % 4 for n in range(100)])
    s = 1.6448536269514722**2 / 4
    assert told.share == 1
    assert (told.lower, told.upper) == pytest.approx((1 / (1 + s), 1))


ROWS = st.lists(st.tuples(st.integers(0, 25), st.booleans()), min_size=1, max_size=40)


@settings(deadline=None)  # the import takes its time once
@given(ROWS)
def test_it_is_the_survival_that_lifelines_computes(rows):
    from lifelines import KaplanMeierFitter  # noqa: PLC0415 - slow to import

    told = share_of(rows)
    if told.share is None:
        return
    # It takes whoever leaves at a time as watched there: who at least reached it leaves before.
    times = [made + 1 if ended else made + 0.5 for made, ended in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = KaplanMeierFitter().fit(times, [ended for _, ended in rows])
    assert told.share == pytest.approx(float(fitted.predict(11.0)), abs=1e-12)
    assert 0 <= told.lower <= told.share <= told.upper <= 1


@given(ROWS, st.randoms())
def test_the_order_of_decisions_tells_nothing(rows, random):
    shuffled = list(enumerate(rows))
    random.shuffle(shuffled)
    sessions = [number // 3 for number, _ in shuffled]
    told = share_of([row for _, row in shuffled], sessions=sessions)
    plain = share_of(rows, sessions=[number // 3 for number in range(len(rows))])
    assert told.share == (None if plain.share is None else pytest.approx(plain.share))
    assert told.lower == (None if plain.lower is None else pytest.approx(plain.lower))
