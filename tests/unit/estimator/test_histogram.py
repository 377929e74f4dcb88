import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.histogram import Histogram, merge

whole = st.integers(0, 30)
rows = st.lists(
    st.one_of(
        st.tuples(whole, whole, st.just(True), whole).map(
            lambda row: (min(row[:2]), max(row[:2]), *row[2:])
        ),
        st.tuples(whole, st.integers(-1, 30), st.just(False), whole),
    ),
    max_size=25,
)


def cells_of(histogram):
    return list(
        zip(
            histogram.entry.tolist(),
            histogram.exit.tolist(),
            histogram.ended.tolist(),
            histogram.count.tolist(),
            strict=True,
        )
    )


def test_equal_cells_merge_sorted_without_empty_ones():
    given_rows = [
        (0, 5, True, 2),
        (0, 3, False, 1),
        (0, 5, True, 3),
        (0, 5, False, 1),
        (1, 9, True, 0),
    ]
    assert cells_of(Histogram.from_rows(given_rows)) == [
        (0, 3, False, 1),
        (0, 5, False, 1),
        (0, 5, True, 5),
    ]


def test_a_cut_turn_is_at_risk_for_one_call_less_than_it_issued():
    turns = Histogram.from_turns([4, 4, 0, 0], [True, False, True, False])
    assert cells_of(turns) == [
        (0, -1, False, 1),
        (0, 0, True, 1),
        (0, 3, False, 1),
        (0, 4, True, 1),
    ]
    assert (turns.turns, turns.turns_with_a_call, turns.ends, turns.calls) == (4, 2, 1, 7)


def test_a_cut_turn_that_issued_one_call_is_known_to_have_a_call():
    assert Histogram.from_turns([1], [False]).turns_with_a_call == 1


def test_late_entry_carries_calls_from_entry_on():
    turns = Histogram.from_turns([9, 6], [True, False], entry=[4, 5])
    assert cells_of(turns) == [(4, 9, True, 1), (5, 5, False, 1)]
    assert (turns.calls, turns.ends, turns.turns_with_a_call) == (5, 1, 2)


def test_an_end_at_its_entry_is_no_observed_end():
    assert Histogram.from_rows([(5, 5, True, 1)]).ends == 0


def test_empty_histogram():
    empty = Histogram.from_rows([])
    assert empty == merge() == Histogram.from_rows([(0, 3, True, 0)])
    assert (empty.turns, empty.calls, empty.ends) == (0, 0, 0)


def test_cells_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Histogram.from_rows([(0, 3, True, 1)]).count[0] = 7


def test_the_caller_keeps_a_writable_array():
    count = np.array([1])
    Histogram(np.array([0]), np.array([3]), np.array([True]), count)
    count[0] = 7


def test_whole_floats_and_zero_one_truths_are_taken():
    assert Histogram.from_rows([(0.0, 3.0, 1, 2.0)]) == Histogram.from_rows([(0, 3, True, 2)])


@settings(max_examples=60, deadline=None)
@given(rows, rows)
def test_merge_is_concatenation(first, second):
    together = Histogram.from_rows(first + second)
    assert merge(Histogram.from_rows(first), Histogram.from_rows(second)) == together
    assert together.turns == sum(row[3] for row in first + second)


@settings(max_examples=60, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_order_does_not_matter(given_rows, random):
    shuffled = random.sample(given_rows, len(given_rows))
    first, second = Histogram.from_rows(given_rows), Histogram.from_rows(shuffled)
    assert first == second
    assert hash(first) == hash(second)


def test_differs_from_other_things():
    assert Histogram.from_rows([(0, 3, True, 1)]) != Histogram.from_rows([(0, 3, True, 2)])
    assert Histogram.from_rows([]) != []


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ((-1, 3, True, 1), r"entry\[0\]: .*\(got -1\)"),
        ((0, -2, False, 1), r"exit\[0\]: "),
        ((0, 2_000_000, True, 1), r"exit\[0\]: "),
        ((0, 3, True, -1), r"count\[0\]: "),
        ((0, 3, True, 1.5), r"count\[0\]: .*\(got 1\.5\)"),
        ((0, float("nan"), True, 1), r"exit\[0\]: .*\(got nan\)"),
        ((0, float("inf"), True, 1), r"exit\[0\]: "),
        ((0, None, True, 1), r"exit: not whole numbers"),
        ((0, "3", True, 1), r"exit: not whole numbers"),
        ((0, 3, "yes", 1), r"ended: not truth values"),
        ((0, 3, 2, 1), r"ended: not truth values"),
        ((0, 3, None, 1), r"ended: not truth values"),
        ((5, 4, True, 1), r"exit\[0\]: an ended turn has its exit before its entry of 5"),
        ((0, -1, True, 1), r"exit\[0\]: an ended turn"),
        ((0, 3, True), r"rows\[0\]: .*four elements"),
    ],
)
def test_what_no_turn_can_be_is_refused(row, where):
    with pytest.raises(InputError, match=where):
        Histogram.from_rows([row])


def test_the_message_names_the_row_the_value_and_the_remedy():
    with pytest.raises(InputError) as caught:
        Histogram.from_rows([(0, 3, True, 1), (0, 4, True, -2)])
    message = str(caught.value)
    assert message.startswith("count[1]: ")
    assert "-2" in message
    assert message.endswith("apply signed changes before")


def test_columns_differ_in_length():
    with pytest.raises(InputError, match="calls, ended: the columns differ in length"):
        Histogram.from_turns([1, 2], [True])


def test_two_dimensions_are_refused():
    with pytest.raises(InputError, match="calls: has 2 dimensions"):
        Histogram.from_turns([[1, 2]], [True])


def test_ragged_values_are_refused():
    with pytest.raises(InputError, match="calls: not an array"):
        Histogram.from_turns([[1, 2], [3]], [True])


def test_negative_calls_are_refused():
    with pytest.raises(InputError, match=r"calls\[1\]: "):
        Histogram.from_turns([1, -1], [True, False])


def test_weights_add_up_with_their_squares():
    turns = Histogram.from_turns([3, 3, 5], [True, True, False], weight=[0.5, 0.25, 1.0])
    assert cells_of(turns) == [(0, 3, True, 0.75), (0, 4, False, 1.0)]
    assert turns.squared.tolist() == [0.3125, 1.0]
    assert (turns.turns, turns.turns_with_a_call, turns.ends, turns.calls) == (
        1.75,
        1.75,
        0.75,
        6.25,
    )


def test_five_columns_are_weights():
    rows = [(0, 3, True, 0.5, 0.25), (0, 3, True, 0.5, 0.25), (0, 4, True, 0.0, 0.0)]
    assert cells_of(Histogram.from_rows(rows)) == [(0, 3, True, 1.0)]
    assert Histogram.from_rows(rows).squared.tolist() == [0.5]


def test_whole_counts_are_weights_of_one():
    whole_turns, weighted = Histogram.from_turns([3, 3], [True] * 2), [(0, 3, True, 0.5, 0.25)]
    merged = merge(whole_turns, Histogram.from_rows(weighted))
    assert merged.count.tolist() == [2.5]
    assert merged.squared.tolist() == [2.25]
    ones = Histogram.from_turns([3, 3], [True] * 2, weight=[1, 1])
    assert ones == whole_turns
    assert hash(ones) == hash(whole_turns)
    assert ones.count.dtype != whole_turns.count.dtype


def test_sparse_cells_merge_like_dense_ones():
    rows = [(900_000, 1_000_000, True, 1), (0, 3, False, 2), (900_000, 1_000_000, True, 4)]
    assert cells_of(Histogram.from_rows(rows)) == [
        (0, 3, False, 2),
        (900_000, 1_000_000, True, 5),
    ]


def test_a_weight_too_small_to_be_squared_weighs_nothing():
    assert Histogram.from_turns([3], [True], weight=[1e-200]) == Histogram.from_rows([])


def test_a_merged_count_is_bounded():
    with pytest.raises(InputError, match=r"count\[0\]: .*\(got 1800000000"):
        merge(*[Histogram.from_rows([(0, 3, True, 900_000_000)])] * 2)


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ((0, 3, True, float("nan"), 1.0), r"count\[0\]: not a weight .*\(got nan\)"),
        ((0, 3, True, float("inf"), 1.0), r"count\[0\]: not a weight"),
        ((0, 3, True, -0.5, 0.25), r"count\[0\]: not a weight .*\(got -0\.5\)"),
        ((0, 3, True, 0.5, float("nan")), r"squared\[0\]: not a weight"),
        ((0, 3, True, 0.5, 0.5), r"squared\[0\]: no weights that add up to 0\.5"),
        ((0, 3, True, 0.5, 0.0), r"squared\[0\]: no weights"),
        ((0, 3, True, "1", 1.0), r"count: not weights"),
        ((0, 3.5, True, 1.0, 1.0), r"exit\[0\]: not a whole number"),
    ],
)
def test_what_no_weights_can_be_is_refused(row, where):
    with pytest.raises(InputError, match=where):
        Histogram.from_rows([row])


def test_a_turn_has_a_weight_of_its_own():
    with pytest.raises(InputError, match=r"weight\[1\]: .*\(got nan\)"):
        Histogram.from_turns([1, 2], [True, True], weight=[1.0, float("nan")])
    with pytest.raises(InputError, match="calls, weight: the columns differ in length"):
        Histogram.from_turns([1, 2], [True, True], weight=[1.0])


def test_rows_are_all_weighted_or_none():
    with pytest.raises(InputError, match=r"rows\[1\]: .*in all rows or in none"):
        Histogram.from_rows([(0, 3, True, 1), (0, 3, True, 1.0, 1.0)])
