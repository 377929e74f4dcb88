import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.credibility import ALL_ROLES, CredibleTables, all_roles, alone, nest
from estimator.histogram import Histogram
from estimator.life_table import life_table

TURNS = st.lists(
    st.tuples(st.integers(1, 40), st.booleans() | st.just(True)), min_size=1, max_size=40
)


def constant(calls, turns):
    """Turns that all end at one call: m(0) = calls, v = 0."""
    return life_table(Histogram.from_turns([calls] * turns, [True] * turns))


def table_of(turns):
    calls, ended = zip(*turns, strict=True)
    histogram = Histogram.from_turns(calls, ended)
    return life_table(histogram) if histogram.ends else None


def geometric(mean, turns, seed=1):
    calls = np.random.default_rng(seed).geometric(1 / mean, turns)
    return life_table(Histogram.from_turns(calls, np.ones(turns, dtype=bool)))


def test_oracle_of_the_default_credibility(oracles):
    case = oracles["credibility_log"]
    given_, expected = case["input"], case["expected"]
    own = constant(given_["m_role"], given_["D"])
    # V such that the cv² of a single life, V·D²/((D−1)·m²), is the one given
    spread = given_["cv2"] * (given_["D"] - 1) * given_["m_role"] ** 2 / given_["D"] ** 2
    own = replace(own, variance=np.full_like(own.variance, spread))
    row = nest("role", own, alone("portfolio", constant(given_["m_portfolio"], 5))).at(0)
    tolerance = case["tolerance"]
    assert row.z == expected["z"]
    assert row.mean == pytest.approx(expected["m"], abs=tolerance)
    assert [row.lower, row.upper] == pytest.approx(expected["ci90"], abs=tolerance)


def test_four_levels_by_hand():
    standard = alone("standard", constant(8, 100))
    # roles of m 2 (D = 3, z = ½) and 32 (D = 9, z = ¾): log₂ m = (½·1 + ¾·5)/(5/4) = 3.4
    tables = {"short": constant(2, 3), "long": constant(32, 9), "silent": None}
    everyone = all_roles(tables, standard)
    # D = 12, z = 0.8: log₂ m = 0.8·3.4 + 0.2·3 = 3.32
    assert everyone.z[0] == pytest.approx(0.8)
    assert math.log2(everyone.mean[0]) == pytest.approx(3.32)
    short = nest("short", tables["short"], everyone)
    # ½·1 + ½·3.32 = 2.16
    assert math.log2(short.at(0).mean) == pytest.approx(2.16)
    # on a model: m 4, D = 1, z = ¼: ¼·2 + ¾·2.16 = 2.12
    on_model = nest("short on a model", constant(4, 1), short)
    row = on_model.at(0)
    assert math.log2(row.mean) == pytest.approx(2.12)
    assert [(share.name, share.turns) for share in row.rests_on] == [
        ("short on a model", 1),
        ("short", 3),
        (ALL_ROLES, 12),
        ("standard", 100),
    ]
    assert [share.weight for share in row.rests_on] == pytest.approx([0.25, 0.375, 0.3, 0.075])
    # the interval of D = 3 lives that are all alike: v = 0, cv² = 3/6
    width = 1.6448536 * math.sqrt(0.5 / 6)
    assert math.log(short.at(0).upper / short.at(0).mean) == pytest.approx(width, abs=1e-6)


def test_a_role_without_an_end_is_its_parent():
    parent = alone("parent", geometric(12, 300))
    row = nest("new", None, parent).at(5)
    assert (row.z, row.ends) == (0.0, 0.0)
    assert row.mean == pytest.approx(parent.mean[5])
    assert [share.weight for share in row.rests_on] == [0.0, 1.0]
    # the vote of 3 turns alone: cv² = 1, √(1/3)
    assert row.upper / row.mean == pytest.approx(math.exp(1.6448536 / math.sqrt(3)), rel=1e-6)
    assert row.lower >= 1
    assert nest("new", None, parent).median(5) == life_median(parent, 5)


def life_median(credible, age):
    """Smallest k with the product of the go-on chances at most ½, by brute force."""
    survival, calls = 1.0, 0
    while survival > 0.5:
        survival *= credible.sources[0].go_on[min(age + calls, credible.mean.size - 1)]
        calls += 1
    return calls


def test_each_role_goes_on_with_its_own_tail():
    tables = {"short": geometric(4, 60), "long": geometric(40, 400)}
    short, long = tables["short"], tables["long"]
    age = long.tail_age
    assert age > short.tail_age
    z = np.array([short.ends[-1] / (short.ends[-1] + 3), long.ends[-1] / (long.ends[-1] + 3)])
    logs = np.log([short.mean[-1], long.mean[-1]])
    assert math.log(all_roles(tables).mean[age]) == pytest.approx(z @ logs / z.sum())


def test_without_a_standard_all_roles_stand_alone():
    everyone = all_roles({"only": geometric(9, 50)})
    assert everyone.mean == pytest.approx(geometric(9, 50).mean)
    assert (everyone.z == 1).all()
    assert all_roles({"none": None}, alone("standard", constant(6, 4))).mean[0] == pytest.approx(6)


def test_nothing_at_all_is_refused():
    with pytest.raises(InputError, match="no standard table"):
        all_roles({"a": None})


def test_many_ends_leave_nothing_to_borrow():
    parent = alone("parent", constant(3, 10))
    gaps = [
        abs(math.log(nest("own", geometric(50, turns), parent).mean[0] / own.mean[0]))
        for turns in (10, 1000, 100_000)
        for own in [geometric(50, turns)]
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-4


@given(TURNS, TURNS)
@settings(deadline=None)
def test_result_is_between_own_and_parent_and_weights_add_up(own_turns, parent_turns):
    own, parent_table = table_of(own_turns), table_of([*parent_turns, (7, True)])
    parent = alone("parent", parent_table)
    blended = nest("own", own, parent)
    ages = np.arange(blended.mean.size)
    theirs = parent.mean[np.minimum(ages, parent.mean.size - 1)]
    mine = own.mean[np.minimum(ages, own.tail_age)] if own else theirs
    assert (blended.mean >= np.minimum(mine, theirs) * (1 - 1e-12)).all()
    assert (blended.mean <= np.maximum(mine, theirs) * (1 + 1e-12)).all()
    assert (blended.mean >= 1 - 1e-12).all()
    assert blended.weights.sum(axis=0) == pytest.approx(1)
    assert ((blended.lower <= blended.mean) & (blended.mean <= blended.upper)).all()


@given(st.integers(1, 500), st.integers(1, 500))
def test_z_rises_with_the_ends(fewer, more):
    parent = alone("parent", constant(3, 10))
    few, many = (nest("own", constant(9, ends), parent).z[0] for ends in (fewer, more))
    assert (few < many) == (fewer < more)


@given(st.lists(TURNS, min_size=2, max_size=5), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_order_of_roles_does_not_matter(roles, shuffle):
    tables = {f"role {number}": table_of([*turns, (3, True)]) for number, turns in enumerate(roles)}
    names = list(tables)
    shuffle.shuffle(names)
    one, other = all_roles(tables), all_roles({name: tables[name] for name in names})
    assert one.mean.tolist() == other.mean.tolist()
    assert one.sources[0].go_on.tolist() == other.sources[0].go_on.tolist()


@given(TURNS, TURNS, st.integers(0, 60))
@settings(deadline=None, max_examples=50)
def test_the_mixture_is_a_distribution(own_turns, parent_turns, age):
    parent = alone("parent", table_of([*parent_turns, (7, True)]))
    blended = nest("own", table_of(own_turns), parent)
    odds = [blended.probability_more_than(age, calls) for calls in range(12)]
    assert odds[0] == pytest.approx(1)
    assert all(later <= sooner + 1e-12 for sooner, later in pairwise(odds))
    median = blended.median(age)
    assert blended.probability_more_than(age, median) <= 0.5 + 1e-9
    assert median == 1 or blended.probability_more_than(age, median - 1) > 0.5


def test_odds_are_the_weighted_odds_of_the_levels():
    own, other = geometric(5, 400, seed=2), geometric(30, 400, seed=3)
    blended = nest("own", own, alone("other", other))
    for age, calls in [(0, 4), (7, 11), (25, 90), (400, 3)]:
        z = blended.at(age).z
        mixed = z * own.probability_more_than(age, calls)
        mixed += (1 - z) * other.probability_more_than(age, calls)
        assert blended.probability_more_than(age, calls) == pytest.approx(mixed)
    assert blended.survival()[9] == pytest.approx(blended.probability_more_than(0, 9))


def test_the_mixed_mean_is_that_of_the_levels():
    own, other = geometric(5, 400, seed=2), geometric(30, 400, seed=3)
    blended = nest("own", own, alone("other", other))
    odds = sum(blended.probability_more_than(3, calls) for calls in range(1500))
    z = blended.at(3).z
    assert odds == pytest.approx(z * own.mean[3] + (1 - z) * other.mean[3])


def test_all_roles_are_a_role_drawn_by_its_credibility():
    tables = {"short": geometric(4, 60), "long": geometric(40, 400)}
    z = {role: table.total_ends / (table.total_ends + 3) for role, table in tables.items()}
    everyone = all_roles(tables)
    for calls in (1, 10, 60):
        drawn = sum(
            z[role] * table.probability_more_than(0, calls) for role, table in tables.items()
        )
        assert everyone.probability_more_than(0, calls) == pytest.approx(drawn / sum(z.values()))


def test_continue_probability_is_of_the_call_just_made():
    own = life_table(Histogram.from_turns([0] * 5 + [2] * 15, [True] * 20))
    blended = nest("own", own, alone("parent", constant(4, 50)))
    # 20 turns asked before their first call, 5 made none; z = 15/18, the parent always goes on
    assert blended.at(0).continue_probability == pytest.approx(15 / 18 * 0.75 + 3 / 18)


def test_one_pass_over_many_roles_is_role_by_role():
    tables = {
        f"role {number}": geometric(3 + number % 40, 5 + number % 200, seed=number)
        for number in range(200)
    }
    tables |= {"silent": None}
    parent = all_roles(tables, alone("standard", constant(30, 500)))
    together = CredibleTables.of(tables, parent)
    for number, role in enumerate(together.roles):
        single = nest(role, tables[role], parent)
        for name in ("mean", "lower", "upper", "z", "ends"):
            np.testing.assert_allclose(getattr(together, name)[number], getattr(single, name))


def test_weighted_turns_count_by_their_effective_number():
    histogram = Histogram([0], [6], [True], [4.0], squared=[2.0])
    row = nest("decayed", life_table(histogram), alone("parent", constant(3, 10))).at(0)
    # (Σ w)²/Σ w² = 16/2
    assert row.ends == pytest.approx(8)
    assert row.z == pytest.approx(8 / 11)


def test_impossible_ages_and_remainders_are_refused():
    blended = alone("parent", constant(3, 10))
    for age in (-1, 2.5):
        with pytest.raises(InputError, match="age: not a whole number from 0 on"):
            blended.at(age)
    for remaining in (-1, math.nan, math.inf):
        with pytest.raises(InputError, match="remaining"):
            blended.probability_more_than(0, remaining)


def test_odds_far_beyond_the_data_cost_nothing():
    blended = nest("own", geometric(9, 50), alone("parent", constant(3, 10)))
    assert blended.probability_more_than(10**9, 10**12) == 0.0
    assert blended.probability_more_than(10**9, 0) == 1.0


def test_a_break_even_between_two_calls_is_that_of_the_lower():
    blended = nest("own", geometric(9, 50), alone("parent", constant(3, 10)))
    assert blended.probability_more_than(2, 5.9) == blended.probability_more_than(2, 5)
