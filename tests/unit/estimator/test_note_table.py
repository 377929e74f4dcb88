import csv
import doctest
import importlib
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.note_table import RoleLife, note_table
from estimator.report_table import as_csv, as_frame

# m(0) = 20/5; τ = 0, so that it holds at every age
TURNS = Histogram.from_turns(calls=[0, 1, 2, 3, 4, 10], ended=[True] * 6)
CUT_ONLY = Histogram.from_turns(calls=[4, 0], ended=[False, False])


def row_of(role="dev", histogram=TURNS, **more):
    return RoleLife.of(role, histogram, **more)


def test_a_row_by_hand():
    table = note_table([row_of(break_even_requests=3.9)], ages=[0, 7])
    row = table.records()[0]
    assert (row["role"], row["turns"], row["mean"], row["p50"]) == ("dev", 5, 4.0, 3)
    assert (row["m_0"], row["at_risk_0"], row["extrapolated_0"], row["pays_0"]) == (
        4.0,
        5,
        False,
        True,
    )
    assert (row["m_7"], row["extrapolated_7"]) == (4.0, True)
    assert [cell.text for cell in table.cells[0]] == ["dev", "5", "4.0", "3", "4.0", "4.0~"]
    assert [cell.bold for cell in table.cells[0]] == [False] * 4 + [True, True]
    assert table.heads == ("role", "turns", "mean", "p50", "m(0)", "m(7)")


def test_the_median_of_the_open_interval_is_that_of_a_geometric_life():
    # .75³ = .42 is the first power not above a half
    assert note_table([row_of()], ages=[0]).records()[0]["p50"] == 3


@pytest.mark.parametrize(
    ("line", "pace", "pays"),
    [(4.0, None, False), (3.99, None, True), (3.0, 0.75, False), (3.0, 0.8, True), (0, None, True)],
)
def test_bold_is_strictly_above_the_break_even_in_requests(line, pace, pays):
    row = row_of(break_even_requests=line, requests_per_call=pace)
    table = note_table([row], ages=[0])
    assert table.records()[0]["pays_0"] is pays
    assert table.cells[0][-1].bold is pays


def test_without_a_break_even_nothing_is_bold_and_the_caption_says_so():
    table = note_table([row_of()], ages=[0])
    assert table.records()[0]["pays_0"] is None
    assert not table.cells[0][-1].bold
    assert "nothing is bold" in table.caption


def test_break_evens_of_their_own_get_a_column():
    rows = [
        row_of(model="one", break_even_requests=2),
        row_of(model="two", break_even_requests=5),
        row_of("new", CUT_ONLY, model="three"),
    ]
    table = note_table(rows, ages=[0])
    assert table.heads == ("role", "model", "turns", "mean", "p50", "break-even", "m(0)")
    assert [row["pays_0"] for row in table.records()] == [True, False, None]
    assert [[cell.text for cell in row[1:]] for row in table.cells] == [
        ["one", "5", "4.0", "3", "2.0", "4.0"],
        ["two", "5", "4.0", "3", "5.0", "4.0"],
        ["three", "1", "", "", "", ""],
    ]
    assert "above the row's break-even" in table.caption


def test_a_role_without_an_end_has_turns_and_nothing_else():
    row = note_table([row_of("new", CUT_ONLY, break_even_requests=1)], ages=[0]).records()[0]
    known = {"role": "new", "turns": 1, "break_even_requests": 1.0}
    assert {name: value for name, value in row.items() if value is not None} == known


def test_detail_shows_interval_and_number_at_risk():
    # V = 0 and one end: m·exp(±1.6449·√(1/4)) = 6·2.276
    one = RoleLife.of("dev", Histogram.from_turns([6], [True]))
    assert note_table([one], ages=[0], detail=True).cells[0][-1].detail == "(2.6–13.7; 1)"
    assert "90% interval" in note_table([one], ages=[0], detail=True).caption
    assert note_table([one], ages=[0]).cells[0][-1].detail == ""


def test_the_caption_says_unit_and_weights():
    assert "remaining requests" in note_table([row_of()], unit="requests").caption
    assert "Raw: every turn" in note_table([row_of()]).caption
    assert "halve every 200 turns" in note_table([row_of()], half_life_turns=200).caption


def test_all_roles_together_stand_last():
    table = note_table([row_of()], whole=row_of("all roles"))
    assert table.total
    assert [row["role"] for row in table.records()] == ["dev", "all roles"]


def test_no_roles_make_an_empty_table():
    assert note_table([]).records() == []


turns = st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=80)


@settings(deadline=None)  # the first example imports pandas
@given(turns=turns)
def test_frame_and_csv_carry_the_numbers_of_the_life_table(turns):
    calls, ended = zip(*turns, strict=True)
    histogram = Histogram.from_turns([*calls, 3], [*ended, True])
    ages = [0, 5, 40]
    table = note_table([row_of(histogram=histogram)], ages=ages)
    frame, read = as_frame(table), next(csv.DictReader(StringIO(as_csv(table))))
    life = life_table(histogram)
    for age in ages:
        row = life.at(age)
        for name, value in (
            (f"m_{age}", row.mean),
            (f"lower_{age}", row.lower),
            (f"upper_{age}", row.upper),
            (f"at_risk_{age}", row.at_risk),
        ):
            assert frame.loc[0, name] == value
            assert float(read[name]) == value
        assert read[f"extrapolated_{age}"] == str(row.extrapolated)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ages": [0, 0]}, "ages: an age is named twice"),
        ({"ages": [-1]}, "age: not a whole number"),
        ({"unit": "tokens"}, "unit: no such unit .*tool_calls"),
    ],
)
def test_wrong_parameters_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        note_table([row_of()], **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"requests_per_call": 0},
        {"requests_per_call": float("nan")},
        {"break_even_requests": -1},
        {"break_even_requests": float("inf")},
    ],
)
def test_wrong_rows_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        row_of(**wrong)


def test_the_example_of_the_module():
    failures, examples = doctest.testmod(importlib.import_module("estimator.note_table"))
    assert (failures, examples > 0) == (0, True)
