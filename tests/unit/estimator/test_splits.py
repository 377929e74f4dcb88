import numpy as np
import pytest
from lifelines.statistics import logrank_test

from compactuary.errors import InputError
from estimator.histogram import Histogram, merge
from estimator.report_table import as_frame, as_text
from estimator.splits import Part, Split, hazard_ratio_pays, log_rank, split, split_table


def exits(times, ended=None):
    """Turns that leave at these calls, cut ones included as being past them."""
    events = [True] * len(times) if ended is None else [bool(event) for event in ended]
    return Histogram.from_rows(
        (0, exit_, event, 1) for exit_, event in zip(times, events, strict=True)
    )


def geometric(mean, turns):
    """A sample that has the shape of its law, not of chance: its quantiles, cut never."""
    ranks = (np.arange(turns) + 0.5) / turns
    calls = np.ceil(np.log1p(-ranks) / np.log1p(-1 / mean)).astype(int)
    return Histogram.from_turns(calls, np.ones(turns, dtype=bool))


@pytest.fixture
def leukemia(oracles):
    given = oracles["leukemia_6mp"]["input"]
    placebo = given["placebo"]
    return {"6-MP": exits(given["t6mp"], given["e6mp"]), "placebo": exits(placebo)}


@pytest.fixture
def aml(oracles):
    given = oracles["aml_rmst_161"]["input"]
    return {arm: exits(given[arm]["t"], given[arm]["e"]) for arm in given}


def test_log_rank_of_the_leukemia_trial(oracles, leukemia):
    case = oracles["leukemia_6mp"]
    chi2, p = log_rank(list(leukemia.values()))
    assert chi2 == pytest.approx(case["expected"]["logrank_chi2"], abs=case["tolerance"])
    assert p == pytest.approx(4.17e-5, rel=0.01)


def test_log_rank_of_the_aml_trial(oracles, aml):
    chi2, _ = log_rank(list(aml.values()))
    assert chi2 == pytest.approx(oracles["aml_rmst_161"]["expected"]["logrank_chi2"], abs=0.05)


def test_hazard_ratios_are_those_of_coxph_with_ties_after_efron(leukemia, aml):
    # coxph of R's survival: coef 1.5721 (se .4124) and .9155 (se .5119)
    for parts, first, coefficient, error in (
        (leukemia, "6-MP", 1.5721, 0.4124),
        (aml, "nonmaintained", -0.9155, 0.5119),
    ):
        found = split(parts, by="arm")
        assert found.parts[0].label == first
        other = found.parts[1]
        assert np.log(other.hazard_ratio) == pytest.approx(coefficient, abs=1e-4)
        width = np.log(other.hazard_ratio_upper / other.hazard_ratio_lower) / 2
        assert width == pytest.approx(1.6448536 * error, abs=2e-4)


def test_counts_stand_for_as_many_turns(leukemia):
    doubled = [
        Histogram(part.entry, part.exit, part.ended, part.count * 2) for part in leukemia.values()
    ]
    columns = [
        (np.repeat(part.exit, part.count * 2), np.repeat(part.ended, part.count * 2))
        for part in leukemia.values()
    ]
    (times_a, ended_a), (times_b, ended_b) = columns
    alone = logrank_test(times_a, times_b, ended_a, ended_b)
    assert log_rank(doubled)[0] == pytest.approx(alone.test_statistic, rel=1e-9)


@pytest.mark.parametrize(
    ("hazard_ratio", "turns", "pays"),
    [
        (1.25, 200, True),
        (1.24, 10_000, False),
        (1.25, 199, False),
        (1.5, 40, True),
        (1.5, 39, False),
        (1 / 1.5, 40, True),
        (0.81, 200, False),
        (None, 40, True),
        (None, 39, False),
        (1.0, 10_000, False),
    ],
)
def test_the_rule(hazard_ratio, turns, pays):
    assert hazard_ratio_pays(hazard_ratio, turns) is pays


def test_a_planted_split_pays():
    found = split({"long": geometric(30, 300), "short": geometric(15, 60)}, by="model")
    # twice the hazard, but for the ties of whole calls
    assert found.parts[1].hazard_ratio == pytest.approx(2.0, rel=0.08)
    assert found.pays
    assert found.parts[1].pays
    assert found.p < 0.01
    assert found.reason.startswith("Splitting by model pays: short against long, hazard ratio ")
    assert "with 60 turns" in found.reason


def test_the_same_law_twice_does_not_pay():
    found = split({"one": geometric(30, 300), "two": geometric(30, 299)}, by="model")
    assert not found.pays
    assert found.parts[1].hazard_ratio == pytest.approx(1, abs=0.02)
    assert "does not pay: log-rank p = 1 is not below 0.01" in found.reason


def test_a_real_but_small_difference_does_not_pay():
    found = split({"one": geometric(30, 4000), "two": geometric(26, 4000)}, by="model")
    assert found.p < 0.01
    assert 1.1 < found.parts[1].hazard_ratio < 1.25
    assert not found.pays
    assert "the parts differ" in found.reason


def test_a_difference_in_too_few_turns_does_not_pay():
    found = split({"one": geometric(30, 300), "two": geometric(8, 30)}, by="model")
    assert found.p < 0.01
    assert found.parts[1].hazard_ratio > 2
    assert not found.pays


def test_three_parts_are_each_compared_with_the_largest():
    parts = {"big": geometric(30, 500), "same": geometric(30, 250), "short": geometric(15, 220)}
    found = split(parts, by="project")
    assert [part.label for part in found.parts] == ["big", "same", "short"]
    assert [part.pays for part in found.parts] == [False, False, True]
    assert found.degrees_of_freedom == 2
    assert found.parts[0].hazard_ratio is None
    assert found.parts[1].p > 0.5
    assert found.parts[1].mean == pytest.approx(30, rel=0.02)


def test_parts_with_few_ends_are_listed_and_not_tested():
    parts = {
        "open": Histogram.from_turns([5] * 700, [False] * 700),
        "big": geometric(30, 300),
        "short": geometric(15, 60),
    }
    found = split(parts, by="model")
    # the reference is the largest part that was tested
    assert [part.label for part in found.parts] == ["big", "open", "short"]
    untested = found.parts[1]
    assert (untested.turns, untested.ends, untested.mean, untested.hazard_ratio) == (
        700,
        0,
        None,
        None,
    )
    assert found.degrees_of_freedom == 1
    assert found.pays


def test_one_part_has_nothing_to_be_compared_with():
    found = split({"only": geometric(30, 300)}, by="model")
    assert (found.chi2, found.p, found.pays) == (None, None, False)
    assert "nothing to compare" in found.reason


def test_parts_that_do_not_overlap_have_no_finite_ratio():
    found = split({"long": exits([50] * 60), "short": exits([2] * 50)}, by="model")
    assert found.parts[1].hazard_ratio is None
    assert found.pays
    assert "no finite hazard ratio" in found.reason


def test_late_turns_are_in_the_cox_model_only():
    late = Histogram.from_rows([(10, exit_, True, 1) for exit_ in range(11, 31)])
    early = geometric(15, 60)
    together = merge(early, late)
    parts = {"long": geometric(30, 300), "short": early}
    found = split(parts | {"short": together}, by="model")
    plain = split(parts, by="model")
    assert found.late_entries == 20
    assert found.chi2 == pytest.approx(plain.chi2)
    assert found.parts[1].hazard_ratio != pytest.approx(plain.parts[1].hazard_ratio, rel=1e-3)
    assert "20 turns seen from a later call on" in split_table(found, role="dev").caption


def test_turns_without_a_call_change_nothing():
    parts = {"long": geometric(30, 300), "short": geometric(15, 60)}
    none = Histogram.from_rows([(0, 0, True, 500)])
    more = merge(parts["short"], none)
    assert split(parts | {"short": more}, by="model") == split(parts, by="model")


def test_a_split_as_a_table():
    part = Part("short <b>", 60, 55, 15.0, 12.0, 19.0, 2.0, 1.5, 2.6, 0.0001, pays=True)
    first = Part("long", 300, 280, 30.0, 27.0, 33.0)
    found = Split("first_tool", (first, part), 15.1, 1, 0.0001, True, "It pays.", 0.9, 0)
    table = split_table(found, role="dev", unknown_turns=7)
    lines = as_text(table).splitlines()
    assert lines[0].split() == ["first", "tool", "turns", "ends", "m(0)", "hazard", "ratio", "p"]
    assert lines[3].split("  ")[0] == "*short <b>"
    assert "2.00 (1.50–2.60)" in lines[3]
    assert "It pays." in table.caption
    assert "7 turns tell no first tool" in table.caption
    frame = as_frame(table)
    assert frame["hazard_ratio"].tolist()[1] == 2.0
    assert frame["pays"].tolist() == [False, True]


def test_weighted_turns_are_refused():
    weighted = Histogram([0], [5], [True], [6.5], [6.0])
    with pytest.raises(InputError, match=r"weights.*raw histograms"):
        split({"one": weighted, "two": exits([1] * 9)}, by="model")
    with pytest.raises(InputError, match="weights"):
        log_rank([weighted, weighted])


def test_nothing_to_split_is_refused():
    with pytest.raises(InputError, match="trigger: no turn can be told apart"):
        split({}, by="trigger")
    with pytest.raises(InputError, match="two parts with an end"):
        log_rank([exits([3, 4]), exits([3], [False])])
    with pytest.raises(InputError, match="level"):
        split({"one": exits([3])}, by="model", level=90)
