import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.life_tables import RoleRows, life_tables

turns = st.lists(
    st.tuples(st.integers(0, 15), st.integers(0, 25), st.booleans(), st.integers(1, 9)).map(
        lambda turn: (turn[0], turn[0] + turn[1], turn[2], turn[3])
    ),
    max_size=30,
)
roles = st.dictionaries(st.sampled_from("abcdefgh"), turns, max_size=8)
thresholds = st.fixed_dictionaries(
    {
        "min_at_risk": st.sampled_from([1, 3, 20]),
        "min_ends": st.sampled_from([1, 3]),
        "level": st.sampled_from([0.8, 0.9]),
    }
)
COLUMNS = ("mean", "variance", "ends_effective", "lower", "upper")


def histograms_of(rows_by_role, weighted):
    return {
        role: Histogram.from_rows(
            # a weight of w/4 for each of the row's turns
            [(*row[:3], row[3] / 4, row[3] / 16) for row in rows] if weighted else rows
        )
        for role, rows in rows_by_role.items()
    }


def assert_equal_to_single_tables(tables, histograms, options):
    assert set(tables.roles) == {role for role, own in histograms.items() if own.ends}
    assert set(tables.without_ends) == set(histograms) - set(tables.roles)
    for place, role in enumerate(tables.roles):
        single = life_table(histograms[role], **options)
        ages = single.tail_age + 1
        assert tables.tail_age[place] == single.tail_age
        for name in COLUMNS:
            row, expected = getattr(tables, name)[place], getattr(single, name)
            assert row[:ages] == pytest.approx(expected, rel=1e-12, abs=1e-300), name
            assert (row[ages:] == row[single.tail_age]).all(), name


@settings(max_examples=80, deadline=None)
@given(roles, thresholds, st.booleans())
def test_equal_to_the_table_of_each_role(rows_by_role, options, weighted):
    histograms = histograms_of(rows_by_role, weighted)
    tables = life_tables(histograms, **options)
    assert_equal_to_single_tables(tables, histograms, options)
    for role in tables:
        assert np.array_equal(tables[role].mean, life_table(histograms[role], **options).mean)


@settings(max_examples=40, deadline=None)
@given(roles, thresholds, st.randoms(use_true_random=False))
def test_rows_of_many_roles_in_any_order_are_the_same(rows_by_role, options, random):
    names = list(rows_by_role)
    rows = [(names.index(role), *row) for role, own in rows_by_role.items() for row in own]
    random.shuffle(rows)
    role, entry, exit_, ended, count = zip(*rows, strict=True) if rows else ((),) * 5
    given_rows = RoleRows(names, role, entry, exit_, np.array(ended, dtype=bool), count)
    tables = life_tables(given_rows, **options)
    assert_equal_to_single_tables(tables, histograms_of(rows_by_role, False), options)


def test_blocks_of_any_size_are_put_together(monkeypatch):
    rng = np.random.default_rng(3)
    histograms = {
        f"role {place}": Histogram.from_turns(
            rng.geometric(1 / rng.integers(2, 60), 80), rng.random(80) < 0.9
        )
        for place in range(40)
    }
    for block in (1, 400, 10**6):
        monkeypatch.setattr("estimator.life_tables._BLOCK", block)
        assert_equal_to_single_tables(life_tables(histograms), histograms, {})


def test_a_later_block_may_need_more_ages(monkeypatch):
    # the longest turn is a single one, so the widest table is another role's
    monkeypatch.setattr("estimator.life_tables._BLOCK", 1)
    histograms = {
        "wide": Histogram.from_turns([30] * 40, [True] * 40),
        "long": Histogram.from_turns([2] * 40 + [90], [True] * 41),
    }
    tables = life_tables(histograms)
    assert tables.roles == ("long", "wide")
    assert tables.tail_age.tolist() == [1, 29]
    assert_equal_to_single_tables(tables, histograms, {})


def test_roles_without_an_end_are_named_and_have_no_row():
    cut = Histogram.from_turns([4, 5], [False, False])
    tables = life_tables({"plan": cut, "empty": Histogram.from_rows([])})
    assert tables.without_ends == ("plan", "empty")
    assert (len(tables), tables.mean.shape, "plan" in tables) == (0, (0, 1), False)
    with pytest.raises(InputError, match="2 turns, 0 ends"):
        tables["plan"]


def test_an_unknown_role_is_named():
    with pytest.raises(InputError, match=r"role: no such role \(got 'x'\)"):
        life_tables({})["x"]


def test_too_many_ages_are_refused(monkeypatch):
    monkeypatch.setattr("estimator.life_tables._MOST", 50)
    histograms = {str(n): Histogram.from_turns([30] * 40, [True] * 40) for n in range(2)}
    with pytest.raises(InputError, match="2 roles of up to 30 ages"):
        life_tables(histograms)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"roles": ["a", "a"]}, r"roles\[1\]: a role is named twice"),
        ({"role": [0, 2]}, r"role\[1\]: .*\(got 2\)"),
        ({"role": [0]}, "differ in length"),
        ({"count": [1, 0.5]}, r"count\[1\]: .*\(got 0\.5\)"),
        ({"count": [1, float("nan")], "squared": [1, 1]}, r"count\[1\]: .*\(got nan\)"),
        ({"exit": [2, 1], "entry": [0, 3]}, r"exit\[1\]: an ended turn"),
    ],
)
def test_rows_that_can_not_be_are_refused(change, where):
    columns = {
        "roles": ["a", "b"],
        "role": [0, 1],
        "entry": [0, 0],
        "exit": [2, 3],
        "ended": [True, True],
        "count": [1, 1],
    }
    with pytest.raises(InputError, match=where):
        RoleRows(**(columns | change))


@pytest.mark.parametrize("option", [{"min_at_risk": 0}, {"min_ends": 0.5}, {"level": 1.0}])
def test_parameters_are_checked(option):
    with pytest.raises(InputError, match=next(iter(option))):
        life_tables({}, **option)
