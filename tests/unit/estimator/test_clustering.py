import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.clustering import SessionTurns, clustered_life_table
from estimator.histogram import Histogram
from estimator.life_table import life_table

few = settings(max_examples=60, deadline=None)
turns = st.lists(
    st.tuples(st.integers(1, 15), st.booleans(), st.integers(0, 6)), min_size=1, max_size=30
).filter(lambda rows: any(row[1] for row in rows))
late_turns = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 12), st.booleans(), st.integers(0, 5)).map(
        lambda turn: (turn[0], turn[0] + turn[1], *turn[2:])
    ),
    min_size=2,
    max_size=25,
).filter(lambda rows: any(row[2] for row in rows))
thresholds = st.fixed_dictionaries(
    {"min_at_risk": st.sampled_from([1, 3, 20]), "min_ends": st.sampled_from([1, 3])}
)


def alike_sessions(sessions, size, seed):
    """Turns of geometric lives whose mean differs from session to session."""
    rng = np.random.default_rng(seed)
    session = np.repeat(np.arange(sessions), size)
    means = np.exp(rng.normal(2.0, 0.6, sessions))
    calls = rng.geometric(1 / (1 + means[session]))
    ended = rng.random(session.size) < 0.85
    return np.zeros_like(session), calls, ended, session


@few
@given(turns, thresholds)
def test_turns_that_are_sessions_of_their_own_make_the_usual_table(rows, options):
    calls, ended, _ = map(np.array, zip(*rows, strict=True))
    own = SessionTurns(np.zeros_like(calls), calls, ended, np.arange(len(calls)))
    clustered, usual = clustered_life_table(own, **options), life_table(own.histogram, **options)
    assert clustered.variance == pytest.approx(usual.variance, rel=1e-9, abs=1e-12)
    assert clustered.sessions.tolist() == usual.ends.tolist()
    for name in ("lower", "upper"):
        assert getattr(clustered, name) == pytest.approx(getattr(usual, name), rel=1e-6)


@few
@given(late_turns, thresholds)
def test_influences_are_derivatives_by_the_weight_of_a_session(rows, options):
    entry, exit_, ended, session = map(np.array, zip(*rows, strict=True))
    table = clustered_life_table(SessionTurns(entry, exit_, ended, session), **options)
    total = np.zeros_like(table.mean)
    step = 1e-6
    for one in set(session.tolist()):
        shifted = []
        for sign in (-1, 1):
            weight = np.where(session == one, 1 + sign * step, 1.0)
            heavier = Histogram(entry, exit_, ended, weight, weight**2)
            shifted.append(fixed_tail_mean(heavier, table.tail_age))
        total += ((shifted[1] - shifted[0]) / (2 * step)) ** 2
    assert table.variance == pytest.approx(total, rel=1e-4, abs=1e-6)


def fixed_tail_mean(histogram, tail_age):
    """m(0) … m(τ) of weighted turns, from the sums alone."""
    w, entry, exit_ = histogram.count, histogram.entry, histogram.exit
    past = exit_ > np.maximum(entry, tail_age)
    calls = (exit_ - np.maximum(entry, tail_age))[past]
    means = [w[past] @ calls / w[past & histogram.ended].sum()]
    for age in range(tail_age - 1, -1, -1):
        at_risk = w[(entry <= age) & (exit_ > age)].sum()
        ended = w[histogram.ended & (entry <= age) & (exit_ == age + 1)].sum()
        means.append(1 + (1 - (ended / at_risk if at_risk else 0)) * means[-1])
    return np.array(means[::-1])


def test_variance_is_that_of_a_jackknife_over_sessions():
    entry, exit_, ended, session = alike_sessions(60, 5, seed=1)
    table = clustered_life_table(SessionTurns(entry, exit_, ended, session))
    left_out = []
    for one in range(60):
        kept = session != one
        ones = np.ones(int(kept.sum()))
        rest = Histogram(entry[kept], exit_[kept], ended[kept], ones, ones)
        left_out.append(fixed_tail_mean(rest, table.tail_age))
    jackknife = np.var(left_out, axis=0) * 59
    many = table.sessions >= 30
    assert many.sum() >= 5
    assert table.variance[many] == pytest.approx(jackknife[many], rel=0.12)
    # turns that are alike tell less: their variance is above that of independent ones
    alone = life_table(Histogram(entry, exit_, ended, np.ones_like(exit_)))
    assert table.variance[0] > 1.3 * alone.variance[0]
    assert (table.mean == alone.mean).all()


def test_two_sessions_by_hand():
    # τ = 0, m = 5: influences ((2−5)·2)/4 and ((8−5)·2)/4, V = 2·1.5² = 4.5
    turns = SessionTurns([0] * 4, [2, 2, 8, 8], [True] * 4, ["b", "b", "a", "a"])
    table = clustered_life_table(turns)
    assert (table.variance[0], table.sessions[0]) == (4.5, 2)
    # t(1) = 6.3138, √(4.5·2/1)/5 = .6: 5·e^(6.3138·.6)
    assert table.upper[0] == pytest.approx(5 * np.exp(6.313752 * 0.6), rel=1e-5)
    assert table.lower[0] == 1.0


def test_one_session_has_the_interval_of_one_end():
    # V is 0 by construction; z·√(cv²/(1+3)) with cv² = 1 on one vote: 5·e^(1.64485/2)
    turns = SessionTurns([0, 0], [2, 8], [True, True], [7, 7])
    table = clustered_life_table(turns)
    assert table.sessions.tolist() == [1]
    assert table.upper[0] == pytest.approx(5 * np.exp(1.6448536 / 2), rel=1e-6)


def test_sessions_with_an_end_beyond_the_age():
    turns = SessionTurns([0] * 5, [3, 1, 2, 9, 4], [True, True, True, False, True], [1, 1, 2, 3, 4])
    table = clustered_life_table(turns, min_at_risk=1, min_ends=1)
    # last ends: session 1 at 3, 2 at 2, 4 at 4, and 3 never
    assert table.sessions.tolist() == [3, 3, 2, 1]


def test_blocks_of_sessions_add_up(monkeypatch):
    turns = SessionTurns(*alike_sessions(40, 4, seed=2))
    whole = clustered_life_table(turns)
    monkeypatch.setattr("estimator.clustering._BLOCK", 3 * len(whole.mean))
    parts = clustered_life_table(turns)
    assert parts.variance == pytest.approx(whole.variance, rel=1e-12)
    assert parts.sessions.tolist() == whole.sessions.tolist()


def test_clustered_intervals_cover_more():
    covered = {"clustered": 0, "alone": 0}
    # the mean over sessions of 1 + a lognormal
    truth = 1 + np.exp(2.0 + 0.6**2 / 2)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        session = np.repeat(np.arange(30), 6)
        calls = rng.geometric(1 / (1 + np.exp(rng.normal(2.0, 0.6, 30))[session]))
        turns = SessionTurns(np.zeros_like(calls), calls, np.ones(180, dtype=bool), session)
        tables = {"clustered": clustered_life_table(turns), "alone": life_table(turns.histogram)}
        for name, table in tables.items():
            covered[name] += table.lower[0] <= truth <= table.upper[0]
    assert covered["alone"] / 150 < 0.75
    assert covered["clustered"] / 150 > 0.78


@pytest.mark.parametrize("session", [[0.5, 1], [None, "a"], [[1], [2]], [True, False]])
def test_sessions_are_codes_or_names(session):
    with pytest.raises(InputError, match="session: sessions are neither"):
        SessionTurns([0, 0], [1, 2], [True, True], session)


def test_each_turn_has_a_session():
    with pytest.raises(InputError, match="entry, exit, ended, session: the columns differ"):
        SessionTurns([0, 0], [1, 2], [True, True], [1])


def test_all_cut_there_is_no_table():
    with pytest.raises(InputError, match="no turn ended"):
        clustered_life_table(SessionTurns([0], [3], [False], [1]))
