import random
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.decay import MAX_HALVINGS, Change, DecayedHistogram, Place, decayed
from estimator.histogram import Histogram
from estimator.life_table import life_table

places = st.builds(Place, entry=st.just(0), exit=st.integers(1, 4), ended=st.booleans())


def brute_force(present, turns, half_life):
    """Weights by the definition, 2^((k − n)/half-life), of the turns that are still there."""
    weight, squared = defaultdict(float), defaultdict(float)
    for turn, place in present.items():
        each = 2.0 ** ((turn - turns) / half_life)
        weight[place] += each
        squared[place] += each * each
    return weight, squared


def by_place(cells):
    rows = zip(*(column.tolist() for column in cells), strict=True)
    kept = {Place(*row[:3]): row[3:] for row in rows}
    return (
        {place: weight for place, (weight, _) in kept.items()},
        {place: squared for place, (_, squared) in kept.items()},
    )


def assert_equal_weights(cells, present, turns, half_life):
    weight, squared = brute_force(present, turns, half_life)
    got_weight, got_squared = by_place(cells)
    assert got_weight.keys() <= weight.keys()
    for place in weight:
        # what is too old to weigh anything is left out
        assert got_weight.get(place, 0.0) == pytest.approx(weight[place], rel=1e-9, abs=1e-12)
        assert got_squared.get(place, 0.0) == pytest.approx(squared[place], rel=1e-9, abs=1e-12)


def test_three_turns_by_hand():
    short, long = Place(0, 3, True), Place(0, 9, False)
    cells = decayed([short, long, short], half_life=2)
    # weights 2^(−1), 2^(−½), 1
    assert cells.exit.tolist() == [3, 9]
    assert cells.ended.tolist() == [True, False]
    assert cells.weight == pytest.approx([1.5, 0.5**0.5])
    assert cells.squared == pytest.approx([1.25, 0.5])


def test_default_half_life_is_200_turns():
    cells = decayed([Place(0, 1, True), *[Place(0, 2, True)] * 200])
    assert cells.weight[0] == pytest.approx(0.5)


def test_effective_size_of_a_long_history():
    cells = decayed([Place(0, 1, True)] * 20_000, half_life=200)
    # Σ w = 1/(1−a), Σ w² = 1/(1−a²), their ratio (1+a)/(1−a) with a = 2^(−1/200)
    a = 0.5 ** (1 / 200)
    assert cells.weight[0] ** 2 / cells.squared[0] == pytest.approx((1 + a) / (1 - a), rel=1e-9)


@given(st.lists(places, max_size=60), st.sampled_from([1, 2.5, 7, 200, 1000.25]))
def test_batch_is_the_definition(turns, half_life):
    present = dict(enumerate(turns, start=1))
    assert_equal_weights(decayed(turns, half_life), present, len(turns), half_life)


@given(st.lists(places, max_size=60), st.sampled_from([None, float("inf")]))
def test_without_decay_the_weights_are_the_counts(turns, half_life):
    cells = decayed(turns, half_life)
    counts = {place: turns.count(place) for place in turns}
    weight, squared = by_place(cells)
    assert weight == squared == counts


def test_one_turn_at_a_time_is_the_batch_through_many_rescalings():
    draw = random.Random(7)
    turns = [Place(0, draw.randint(1, 5), draw.random() < 0.8) for _ in range(4000)]
    histogram = DecayedHistogram(half_life=3)
    rescalings = set()
    for turn, place in enumerate(turns, start=1):
        histogram = histogram.with_changes([Change(place, turn)])
        rescalings.add(histogram.halvings)
    assert len(rescalings) >= 3
    assert_equal_weights(histogram.cells(), dict(enumerate(turns, start=1)), 4000, 3)
    for mine, theirs in zip(histogram.cells(), decayed(turns, 3), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.parametrize("half_life", [1, 5, 200, None])
def test_a_resumed_cut_turn_takes_its_own_weight_along(half_life):
    draw = random.Random(11)
    histogram = DecayedHistogram(half_life)
    present, turns = {}, 0
    for _ in range(3000):
        changes = []
        cut = [turn for turn, place in present.items() if not place.ended and turn > turns - 30]
        if cut and draw.random() < 0.3:
            turn = draw.choice(cut)
            old = present[turn]
            present[turn] = Place(0, old.exit + draw.randint(1, 3), draw.random() < 0.5)
            changes = [Change(old, turn, -1), Change(present[turn], turn)]
        turns += 1
        present[turns] = Place(0, draw.randint(1, 6), draw.random() < 0.5)
        histogram = histogram.with_changes([*changes, Change(present[turns], turns)])
    assert_equal_weights(histogram.cells(), present, turns, half_life or float("inf"))


def test_an_emptied_cell_is_gone():
    cut, whole = Place(0, 4, False), Place(0, 9, True)
    histogram = DecayedHistogram(half_life=1.7).with_changes(
        [Change(cut, 1), Change(cut, 2), Change(whole, 3)]
    )
    resumed = histogram.with_changes(
        [Change(cut, 1, -1), Change(cut, 2, -1), Change(whole, 1), Change(whole, 2)]
    )
    assert set(resumed.sums) == {whole}
    assert resumed.cells().weight == pytest.approx([1 + 2 ** (-1 / 1.7) + 2 ** (-2 / 1.7)])


def test_very_old_turns_weigh_nothing_and_do_no_harm():
    histogram = DecayedHistogram(half_life=1).with_changes([Change(Place(0, 1, True), 1)])
    late = 10 * MAX_HALVINGS
    cells = histogram.with_changes([Change(Place(0, 2, True), late)]).cells()
    assert cells.exit.tolist() == [2]
    assert cells.weight.tolist() == cells.squared.tolist() == [1.0]


def test_order_within_a_batch_does_not_matter():
    changes = [Change(Place(0, turn % 4, True), turn) for turn in range(1, 50)]
    forward = DecayedHistogram(10).with_changes(changes).cells()
    backward = DecayedHistogram(10).with_changes(reversed(changes)).cells()
    for mine, theirs in zip(forward, backward, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_weights_are_exact_at_whole_half_lives():
    cells = decayed([Place(0, turn, True) for turn in range(1, 8)], half_life=1)
    assert [Fraction(weight) for weight in cells.weight] == [Fraction(1, 2**k) for k in range(7)][
        ::-1
    ]


@pytest.mark.parametrize("half_life", [0, -1, float("nan")])
def test_a_half_life_that_is_not_positive_is_refused(half_life):
    with pytest.raises(InputError, match="half_life: the half-life is not positive"):
        DecayedHistogram(half_life)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change(Place(0, 1, True), 0), "numbered from 1"),
        (Change(Place(0, 1, True), 1, 2), "comes .* or leaves"),
        (Change(Place(0, 1, True), 1, -1), "does not hold it"),
    ],
)
def test_impossible_changes_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        DecayedHistogram().with_changes([change])


def incremental(turns, half_life):
    changes = [Change(place, turn) for turn, place in enumerate(turns, start=1)]
    return DecayedHistogram(half_life).with_changes(changes).histogram()


@pytest.mark.parametrize("half_life", [None, float("inf")])
def test_without_decay_the_histogram_is_the_plain_one(half_life):
    turns = [Place(0, 3, True), Place(0, 5, False), Place(0, 3, True)]
    plain = Histogram([0, 0], [3, 5], [True, False], [2, 1])
    assert incremental(turns, half_life) == plain


def test_recent_turns_decide_a_decayed_table():
    turns = [Place(0, 4, True)] * 1000 + [Place(0, 8, True)] * 200
    table = life_table(incremental(turns, 200))
    # Σ w of the last 200 of 1,200 turns: (1 − ½)/(1 − 2^−6) of all, and N = 4 or 8
    share = 0.5 / (1 - 2.0**-6)
    assert table.overall_mean == pytest.approx(4 + 4 * share)
    assert table.ends_effective[0] < 600
