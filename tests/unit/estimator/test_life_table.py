import dataclasses
import doctest
import importlib

import numpy as np
import pytest
from lifelines import datasets

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.life_table import AgeRow, life_table
from estimator.mean_residual_life import mean_residual_life, mean_variance

DATA_ONLY = {"min_at_risk": 1, "min_ends": 1}


def table_of(entry, exit_, ended, **options):
    rows = zip(entry, exit_, ended, [1] * len(exit_), strict=True)
    return life_table(Histogram.from_rows(rows), **(options or DATA_ONLY))


def ended_turns(calls, **options):
    return table_of([0] * len(calls), calls, [True] * len(calls), **options)


def restricted(table, horizon):
    """RMST to the horizon and its standard error, from the table's counts alone."""
    hazard, at_risk = np.zeros(horizon), np.ones(horizon, dtype=np.int64)
    known = min(horizon, len(table.mean))
    hazard[:known] = (table.ended / table.at_risk)[:known]
    at_risk[:known] = table.at_risk[:known]
    mean = mean_residual_life(hazard, 0.0)
    return mean[0], mean_variance(hazard, at_risk, mean, 0.0)[0] ** 0.5


def test_de_moivre(oracles):
    case = oracles["de_moivre"]
    table = ended_turns(list(range(1, 10)))
    for age, mean in case["expected"]["m"].items():
        assert table.at(int(age)).mean == pytest.approx(mean, abs=case["tolerance"])


def test_given_distribution(oracles):
    case = oracles["given_distribution"]
    counts = np.array(case["input"]["pmf_N_1_to_8"]) * 100
    rows = [(0, n, True, round(count)) for n, count in enumerate(counts, start=1)]
    table = life_table(Histogram.from_rows(rows), **DATA_ONLY)
    assert table.mean == pytest.approx(case["expected"]["m"], abs=case["tolerance"])


def test_textbook_lives(oracles):
    lives = oracles["finan_23_24"]["input"]["l_x_80_to_86"]
    deaths = -np.diff(lives)
    rows = [(0, year, True, count) for year, count in enumerate(deaths, start=1)]
    table = life_table(Histogram.from_rows(rows), **DATA_ONLY)
    assert table.overall_mean == pytest.approx(oracles["finan_23_24"]["expected"]["m_80"])
    assert table.at_risk.tolist() == lives[:-1]


def test_geometric_tail(oracles):
    # one turn of ten calls: τ = 0 and m = 10/1, so the open interval is the geometric life
    expected = oracles["geometric"]["expected"]
    table = ended_turns([10], min_at_risk=20)
    for age in (0, 1, 7, 1_000):
        assert table.at(age).mean == expected["m"]
        assert table.median(age) == expected["median"]
        assert table.probability_more_than(age, 12) == pytest.approx(expected["P_gt_12"], rel=1e-12)


def test_uncensored_sample(oracles):
    case = oracles["uncensored_sample"]
    table = ended_turns(case["input"]["N"])
    for age, mean in case["expected"]["m"].items():
        assert table.at(int(age)).mean == pytest.approx(mean, abs=case["tolerance"])
    assert table.at(0).variance == pytest.approx(case["expected"]["V_0"], abs=case["tolerance"])


def test_cut_at_c_means_more_than_c_under_the_usual_rule(oracles):
    case = oracles["censored_hand"]
    duration, event = case["input"]["dur"], case["input"]["event"]
    usual = case["expected"]["usual"]
    table = table_of([0] * 5, duration, [bool(e) for e in event])
    assert table.at_risk.tolist() == usual["n"]
    assert table.ended.tolist() == usual["d"]
    assert table.at(8).survival == pytest.approx(usual["S_8"])
    assert table.survival.sum() == pytest.approx(usual["sum_S_0_to_7"])
    tail = table_of([0] * 5, duration, [bool(e) for e in event], min_at_risk=20)
    assert tail.total_ends == usual["D"]
    assert tail.overall_mean == pytest.approx(usual["E_over_D"])


def test_cut_at_c_means_c_or_more_in_tool_calls(oracles):
    case = oracles["censored_hand"]
    strict = case["expected"]["strict"]
    turns = Histogram.from_turns(case["input"]["dur"], case["input"]["event"])
    table = life_table(turns, **DATA_ONLY)
    assert table.at_risk.tolist() == strict["n"]
    assert table.at(8).survival == pytest.approx(strict["S_8"])
    assert table.overall_mean == pytest.approx(strict["m_0"])


def test_late_entries(oracles):
    case = oracles["left_truncated_hand"]
    given = case["input"]
    table = table_of(given["entry"], given["exit"], [bool(e) for e in given["event"]])
    assert table.at_risk.tolist() == case["expected"]["n"]
    assert table.ended.tolist() == case["expected"]["d"]
    survival = [table.at(age).survival for age in range(7)]
    assert survival == pytest.approx(case["expected"]["S"], abs=case["tolerance"])


@pytest.mark.parametrize("ecog", [0, 1, 2])
def test_lung_cancer_restricted_means(oracles, ecog):
    case = oracles["lung_rmst_730"]
    lung = datasets.load_lung()
    group = lung[lung["ph.ecog"] == ecog]
    table = table_of([0] * len(group), group["time"].tolist(), group["status"].tolist())
    expected = case["expected"][f"ecog{ecog}"]
    assert (table.turns, int(group["status"].sum())) == (expected["n"], expected["events"])
    mean, error = restricted(table, case["input"]["tau"])
    assert mean == pytest.approx(expected["rmean"], abs=case["tolerance"]["rmean"])
    assert error == pytest.approx(expected["se"], abs=case["tolerance"]["se"])
    assert table.median(0) == expected["median"]


def test_waltons_restricted_mean(oracles):
    case = oracles["waltons_rmst_10"]
    flies = datasets.load_waltons()
    group = flies[flies["group"] == "miR-137"]
    table = table_of([0] * len(group), group["T"].tolist(), group["E"].tolist())
    mean, error = restricted(table, case["input"]["tau"])
    assert mean == pytest.approx(case["expected"]["rmst_miR137"], abs=case["tolerance"]["rmst"])
    assert error == pytest.approx(case["expected"]["se_miR137"], abs=case["tolerance"]["se"])


@pytest.mark.parametrize("arm", ["maintained", "nonmaintained"])
def test_leukemia_maintenance_restricted_means(oracles, arm):
    case = oracles["aml_rmst_161"]
    given = case["input"][arm]
    table = table_of([0] * len(given["t"]), given["t"], given["e"])
    assert restricted(table, 161) == pytest.approx(case["expected"][arm], abs=case["tolerance"])


def test_freireich(oracles):
    case = oracles["leukemia_6mp"]
    given, expected = case["input"], case["expected"]
    treated = table_of([0] * 21, given["t6mp"], given["e6mp"])
    assert restricted(treated, 35) == pytest.approx(
        (expected["rmst35_6mp"], expected["se"]), abs=case["tolerance"]
    )
    placebo = ended_turns(given["placebo"])
    assert placebo.overall_mean == pytest.approx(expected["mean_placebo"], abs=case["tolerance"])


def test_tail_age_is_the_last_with_enough_at_risk_and_enough_ends_beyond():
    calls = [2] * 10 + [5] * 4 + [9] * 2
    # at risk for call i+1: 16, 16, 6, 6, 6, 2 …; ends beyond i: 16, 16, 6, 6, 6, 2 …
    assert ended_turns(calls, min_at_risk=6, min_ends=3).tail_age == 4
    assert ended_turns(calls, min_at_risk=7, min_ends=3).tail_age == 1
    assert ended_turns(calls, min_at_risk=1, min_ends=7).tail_age == 1
    assert ended_turns(calls, min_at_risk=17, min_ends=1).tail_age == 0


def test_open_interval_by_hand():
    # exits 2, 5e, 7e, 9 cut: τ = 4 with min_at_risk 3; beyond it 1 + 3 + 5 calls, 2 ends
    table = table_of([0] * 4, [2, 5, 7, 9], [True, True, True, False], min_at_risk=3, min_ends=2)
    assert table.tail_age == 4
    tail = table.at(4)
    assert tail.mean == 9 / 2
    # ((1 − 4.5)² + (3 − 4.5)² + (5 − 0)²)/2²
    assert tail.variance == pytest.approx((3.5**2 + 1.5**2 + 5**2) / 4)
    # hazards 0, 1/4, 0, 0: m(2) = 2 + 4.5, m(1) = 1 + 3/4·6.5, m(0) = 1 + 5.875
    assert table.mean == pytest.approx([6.875, 5.875, 6.5, 5.5, 4.5])
    # from age 0 three quarters reach the tail: 0.75·4.5/6.875
    assert table.at(0).tail_share == pytest.approx(0.75 * 4.5 / 6.875)
    assert table.at(0).restricted_mean == pytest.approx(6.875 - 0.75 * 4.5)


def test_past_the_tail_age_everything_is_marked_and_goes_on_geometrically():
    table = table_of([0] * 4, [2, 5, 7, 9], [True, True, True, False], min_at_risk=3, min_ends=2)
    at_tail, beyond = table.at(4), table.at(7)
    assert (at_tail.extrapolated, beyond.extrapolated) == (False, True)
    assert beyond.survival == pytest.approx(0.75 * (1 - 1 / 4.5) ** 3)
    assert beyond.continue_probability == pytest.approx(1 - 1 / 4.5)
    assert at_tail.continue_probability == 1.0
    differing = {"age", "extrapolated", "survival", "continue_probability"}
    for field in dataclasses.fields(AgeRow):
        if field.name not in differing:
            assert getattr(beyond, field.name) == getattr(at_tail, field.name)


def test_odds_cross_the_tail_age():
    table = table_of([0] * 4, [2, 5, 7, 9], [True, True, True, False], min_at_risk=3, min_ends=2)
    assert table.probability_more_than(0, 0) == 1.0
    assert table.probability_more_than(0, 2) == pytest.approx(0.75)
    assert table.probability_more_than(0, 6) == pytest.approx(0.75 * (1 - 1 / 4.5) ** 2)
    assert table.probability_more_than(0, 6.9) == table.probability_more_than(0, 6)
    # 0.75·0.7778 = .583, ·0.7778 = .454: the second call past τ
    assert table.median(0) == 6
    # .7778³ = .470
    assert table.median(4) == table.median(40) == 3


@pytest.mark.parametrize("most", range(1, 60))
def test_median_at_an_exact_half(most):
    # N uniform on 1 … 2·most: exactly half the turns make more than `most` calls
    assert ended_turns(list(range(1, 2 * most + 1))).median(0) == most


def test_median_of_a_life_that_always_ends():
    assert ended_turns([1, 1], min_at_risk=20).median(5) == 1


def test_continue_probability_asks_first_whether_there_is_a_call():
    # one of four turns that could tell made none; a cut turn that issued nothing can't tell
    turns = Histogram.from_turns([0, 1, 5, 5, 0], [True, True, True, False, False])
    table = life_table(turns, **DATA_ONLY)
    assert table.continue_probability.tolist() == pytest.approx([3 / 4, 2 / 3, 1, 1, 1])
    assert (table.turns, table.turns_with_a_call) == (5, 3)


def test_late_entries_cannot_tell_whether_there_is_a_call():
    mixed = table_of([0, 0, 2], [0, 4, 6], [True, True, True])
    assert mixed.continue_probability[0] == 1 / 2
    late = table_of([1, 1], [4, 6], [True, True])
    assert late.continue_probability[0] == 1.0


def test_turns_without_exposure_are_counted_and_nothing_else():
    table = table_of([0, 0, 5, 5, 2], [3, 8, 4, 5, 2], [True, True, False, False, True])
    assert table.at_risk.tolist() == [2, 2, 2, 1, 1, 1, 1, 1]
    assert table.overall_mean == 11 / 2
    assert (table.turns, table.total_ends) == (5, 2)


def test_an_age_nobody_was_at_risk_at_is_certain_to_be_passed():
    table = table_of([3], [5], [True])
    assert table.at_risk.tolist() == [0, 0, 0, 1, 1]
    assert table.mean.tolist() == [5, 4, 3, 2, 1]


def test_late_entrants_pass_an_age_where_survival_reached_zero():
    table = table_of([0, 2], [1, 5], [True, True])
    assert table.survival.tolist() == [1, 0, 0, 0, 0]
    assert table.mean.tolist() == [1, 4, 3, 2, 1]
    assert table.tail_share.tolist() == [0, 0.25, 1 / 3, 0.5, 1]


def test_without_an_end_there_is_no_table():
    with pytest.raises(InputError, match=r"5 turns, 0 ends.*all roles"):
        life_table(Histogram.from_turns([0, 0, 4, 5, 6], [True, True, False, False, False]))
    with pytest.raises(InputError, match="0 turns"):
        life_table(Histogram.from_rows([]))


@pytest.mark.parametrize("option", [{"min_at_risk": 0}, {"min_ends": 0}, {"min_at_risk": 1.5}])
def test_thresholds_are_whole_and_positive(option):
    with pytest.raises(InputError, match=r"min_\w+: not a whole number from 1 on"):
        ended_turns([1, 2], **option)


def test_level_is_between_0_and_1():
    with pytest.raises(InputError, match="level"):
        ended_turns([1, 2], level=95)


@pytest.mark.parametrize("age", [-1, 1.5, float("nan")])
def test_ages_are_whole_and_not_negative(age):
    table = ended_turns([1, 2])
    for ask in (table.at, table.median, lambda age: table.probability_more_than(age, 1)):
        with pytest.raises(InputError, match="age: not a whole number from 0 on"):
            ask(age)


@pytest.mark.parametrize("remaining", [-1, float("nan"), float("inf")])
def test_remaining_calls_are_finite(remaining):
    with pytest.raises(InputError, match="remaining: "):
        ended_turns([1, 2]).probability_more_than(0, remaining)


def test_numpy_integers_are_ages():
    assert ended_turns([1, 2]).at(np.int64(1)).age == 1


@pytest.mark.parametrize(
    "name",
    [
        "clustering",
        "histogram",
        "life_table",
        "life_tables",
        "mean_residual_life",
        "student_t",
        "wilson",
    ],
)
def test_examples_of_the_docstrings(name):
    failures, examples = doctest.testmod(importlib.import_module(f"estimator.{name}"))
    assert failures == 0
    assert examples > 0
