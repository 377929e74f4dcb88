import numpy as np

from backtest.bootstrap import drawn_ratios

REPEATS = 200


def test_two_sessions_alike_leave_no_doubt():
    found = drawn_ratios(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([10.0, 10.0]), ["a", "b"])
    assert found.estimate.tolist() == [0.1, 0.0]
    assert found.lower.tolist() == found.upper.tolist() == [0.1, 0.0]
    assert found.shown.tolist() == found.shown_together.tolist() == [True, False]


def test_units_of_a_session_are_drawn_together():
    difference = np.array([[*[1.0] * 10, *[-1.0] * 10]])
    found = drawn_ratios(difference, np.full(20, 10.0), ["a"] * 10 + ["b"] * 10)
    assert (found.lower[0], found.upper[0]) == (-0.1, 0.1)


def test_a_row_may_have_a_denominator_of_its_own():
    above = np.array([[1.0, 0.0], [0.0, 3.0]])
    found = drawn_ratios(above, np.array([[10.0, 0.0], [0.0, 10.0]]), ["a", "b"])
    # A draw without the row's session says nothing else than the estimate.
    assert found.estimate.tolist() == found.lower.tolist() == found.upper.tolist() == [0.1, 0.3]


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    generator = np.random.default_rng(1)
    rows, bills = generator.normal(size=(3, 50)), generator.uniform(1, 2, 50)
    names = [str(unit) for unit in range(50)]
    whole = drawn_ratios(rows, bills, names)
    monkeypatch.setattr("backtest.bootstrap._CELLS", 70)
    parts = drawn_ratios(rows, bills, names)
    assert np.allclose(whole.lower, parts.lower, rtol=1e-12)
    assert np.array_equal(whole.shown_together, parts.shown_together)


def gambles(generator, sessions=80, rules=12):
    """Bills of rules that win and lose alike: each compacts once, where C is exactly m·s.

    What remains is geometric with mean 20, so a rule's saving is (n − 20)·s whenever it acts.
    """
    bills = generator.uniform(0.5, 1.5, sessions) * 200.0
    remaining = generator.geometric(1 / 20, size=(rules, sessions))
    return remaining - 20.0, bills


def test_nothing_is_found_where_there_is_nothing():
    generator = np.random.default_rng(5)
    claims = pointwise = 0
    names = [f"{number:03}" for number in range(80)]
    for repeat in range(REPEATS):
        differences, bills = gambles(generator)
        found = drawn_ratios(differences, bills, names, draws=400, seed=repeat)
        claims += found.shown_together.any()
        pointwise += found.shown.any()
    assert claims <= 15
    # Each interval for itself claims something most of the time: hence the correction.
    assert pointwise > 100


def test_a_true_difference_is_found_among_many_rules():
    generator = np.random.default_rng(6)
    names = [f"{number:03}" for number in range(200)]
    found = 0
    for repeat in range(50):
        differences, bills = gambles(generator, sessions=200)
        differences[3] -= 10.0
        shown = drawn_ratios(differences, bills, names, draws=400, seed=repeat)
        found += bool(shown.shown_together[3]) and shown.estimate[3] == shown.estimate.min()
    assert found >= 45


def test_intervals_cover():
    generator = np.random.default_rng(7)
    names = [f"{number:03}" for number in range(80)]
    covered = total = 0
    for repeat in range(100):
        differences, bills = gambles(generator)
        found = drawn_ratios(differences, bills, names, draws=400, seed=repeat)
        covered += int(((found.lower <= 0) & (found.upper >= 0)).sum())
        total += len(differences)
    assert 0.85 <= covered / total <= 0.95
