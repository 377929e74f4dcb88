"""Whole columns of credible tables, and the weights of turns, against one value at a time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.credibility import CredibleTables, all_roles, alone, nest
from estimator.decay import Place, decayed, weights
from estimator.histogram import Histogram
from estimator.life_table import life_table

LIVES = st.lists(
    st.tuples(st.integers(0, 30), st.booleans() | st.just(True)), min_size=1, max_size=40
)


def table_of(turns):
    calls, ended = zip(*turns, strict=True)
    return life_table(Histogram.from_turns([*calls, 6], [*ended, True]))


def geometric(mean, turns, seed):
    calls = np.random.default_rng(seed).geometric(1 / mean, turns)
    return life_table(Histogram.from_turns(calls, np.ones(turns, dtype=bool)))


def chance(table, age):
    """P(N > i | N ≥ i) of the mixture: every level's own, at the age before the last call."""
    before = max(age - 1, 0)
    shares = table.weights[:, min(before, table.mean.size - 1)]
    levels = [
        source.go_on[min(before, source.go_on.size - 1)] if age else source.any_call
        for source in table.sources
    ]
    return sum(share * level for share, level in zip(shares, levels, strict=True))


@given(st.lists(LIVES, min_size=1, max_size=4), LIVES)
@settings(deadline=None, max_examples=40)
def test_columns_of_many_roles_are_those_of_each(roles, elsewhere):
    tables = {f"role {number}": table_of(turns) for number, turns in enumerate(roles)}
    tables |= {"silent": None}
    parent = all_roles(tables, alone("standard", table_of(elsewhere)))
    together = CredibleTables.of(tables, parent)
    ages = together.mean.shape[1]
    for row, role in enumerate(together.roles):
        single = nest(role, tables[role], parent)
        odds = [single.probability_more_than(0, age) for age in range(ages)]
        assert together.survival[row] == pytest.approx(odds)
        chances = [chance(single, age) for age in range(ages)]
        assert together.continue_probability[row] == pytest.approx(chances)


@given(LIVES, LIVES)
@settings(deadline=None, max_examples=40)
def test_columns_of_one_table_are_its_rows(own, parent):
    blended = nest("own", table_of(own), alone("parent", table_of(parent)))
    ages = range(blended.mean.size)
    chances = [chance(blended, age) for age in ages]
    assert blended.continue_probabilities() == pytest.approx(chances)
    longer = range(len(ages) + 20)
    odds = [blended.probability_more_than(0, age) for age in longer]
    assert blended.survival_until(len(longer)) == pytest.approx(odds)
    assert blended.survival() == pytest.approx(odds[: len(ages)])
    assert blended.survival_until(1) == pytest.approx([1.0])


def test_continue_probability_of_many_roles_by_hand():
    """Of 20 turns 5 make no call; z = 15/18 at every age, and those of fours go on until then."""
    own = life_table(Histogram.from_turns([0] * 5 + [2] * 15, [True] * 20))
    fours = alone("fours", life_table(Histogram.from_turns([4] * 50, [True] * 50)))
    found = CredibleTables.of({"own": own}, fours).continue_probability[0]
    assert found[0] == pytest.approx(15 / 18 * 15 / 20 + 3 / 18)
    # 15 turns with a call are too few for ages of their own: 1 − 1/m with m = 2 from age 0 on.
    assert found[1:] == pytest.approx([15 / 18 * 0.5 + 3 / 18 * go_on for go_on in (1, 1, 1)])


def test_continue_probability_past_the_ages_of_the_parent():
    """40 turns, half of 3 calls, half of 9; the parent's one turn of 6 has no ages past 0."""
    own = life_table(Histogram.from_turns([3] * 20 + [9] * 20, [True] * 40))
    parent = alone("six", life_table(Histogram.from_turns([6], [True])))
    row = nest("own", own, parent).at(4)
    # At age 3, D = 20 of z = 20/23: nobody of 20 ended with call 4, and of the parent 1 in 6.
    assert row.continue_probability == pytest.approx(20 / 23 * 1 + 3 / 23 * 5 / 6)


def test_without_roles_there_are_no_rows():
    parent = alone("parent", geometric(12, 300, seed=1))
    assert CredibleTables.of({}, parent).mean.shape[0] == 0


def test_weights_by_hand():
    assert weights(5, 2).tolist() == pytest.approx([0.25, 0.5**1.5, 0.5, 0.5**0.5, 1])
    assert weights(201)[0] == pytest.approx(0.5)
    assert weights(1).tolist() == [1]
    assert weights(0).size == 0


@pytest.mark.parametrize("half_life", [None, math.inf])
def test_without_decay_every_turn_weighs_one(half_life):
    assert weights(4, half_life).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("half_life", [0, -1, math.nan])
def test_a_half_life_that_is_not_positive_is_refused(half_life):
    with pytest.raises(InputError, match="half_life: the half-life is not positive"):
        weights(3, half_life)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([1, 3.5, 200, None]),
)
@settings(deadline=None)
def test_turns_with_weights_are_the_decayed_histogram(turns, half_life):
    """Two ways to one table: the weights at once, and turn by turn."""
    exits, ended = zip(*turns, strict=True)
    weight = weights(len(turns), half_life)
    at_once = Histogram(np.zeros(len(turns), int), exits, ended, weight, np.square(weight))
    by_turn = decayed((Place(0, *turn) for turn in turns), half_life)
    assert at_once.exit.tolist() == by_turn.exit.tolist()
    assert at_once.ended.tolist() == by_turn.ended.tolist()
    assert at_once.count == pytest.approx(by_turn.weight)
    assert at_once.squares == pytest.approx(by_turn.squared)
