import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactuary.errors import InputError
from estimator.actuarial_table import actuarial_table, life_table_rows
from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.report_table import as_frame

DATA_ONLY = {"min_at_risk": 1, "min_ends": 1}


def cut_by_hand():
    # exits 2, 5, 7, and 9 cut: τ = 4 with 3 at risk; beyond it 9 calls and 2 ends, m(4) = 4.5
    rows = [(0, 2, True, 1), (0, 5, True, 1), (0, 7, True, 1), (0, 9, False, 1)]
    return life_table(Histogram.from_rows(rows), min_at_risk=3, min_ends=2)


def test_textbook_lives(oracles):
    case = oracles["finan_23_24"]
    lives = case["input"]["l_x_80_to_86"]
    rows = [(0, year, True, -died) for year, died in enumerate(np.diff(lives), start=1)]
    table = life_table(Histogram.from_rows(rows), **DATA_ONLY)
    frame = as_frame(actuarial_table(table, role="Finan 23.24", radix=lives[0]))
    assert frame["l"].to_numpy() == pytest.approx(lives[:-1])
    assert frame["d"].to_numpy() == pytest.approx(-np.diff(lives))
    assert frame["q"].to_numpy() == pytest.approx(
        [33 / 250, 56 / 217, 54 / 161, 45 / 107, 34 / 62, 1]
    )
    assert frame["p"].to_numpy() == pytest.approx(1 - frame["q"].to_numpy())
    assert frame.loc[0, "e"] == pytest.approx(case["expected"]["e_80"])
    assert frame.loc[0, "m"] == pytest.approx(case["expected"]["m_80"])
    assert frame["open"].tolist() == [False] * 5 + [True]


def test_the_last_row_is_the_open_interval():
    table = actuarial_table(cut_by_hand(), role="dev", radix=100)
    frame = as_frame(table)
    assert frame["l"].tolist() == pytest.approx([100, 100, 75, 75, 75])
    assert frame["d"].tolist() == pytest.approx([0, 25, 0, 0, 75])
    assert frame["q"].tolist() == pytest.approx([0, 0.25, 0, 0, 1])
    assert frame["e"].tolist() == pytest.approx([5.875, 4.875, 5.5, 4.5, 3.5])
    assert frame["ended"].tolist() == [0, 1, 0, 0, 2]
    assert frame["at_risk"].tolist() == [4, 4, 3, 3, 3]
    assert [row[0].text for row in table.cells] == ["0", "1", "2", "3", "4+"]


def test_the_caption_says_whose_and_how_much():
    caption = actuarial_table(cut_by_hand(), role="dev", half_life_turns=200).caption
    assert caption.startswith("Life table of dev: 4 turns with at least one call, 3 ends.")
    assert "90% interval" in caption
    assert caption.endswith("weights halve every 200 turns.")
    assert "Raw" in actuarial_table(cut_by_hand(), role="dev").caption


def test_rows_by_hand():
    rows = life_table_rows(cut_by_hand())
    assert list(rows[1]) == [
        "age",
        "at_risk",
        "ended",
        "hazard",
        "survival",
        "m",
        "lower",
        "upper",
        "median",
        "extrapolated",
    ]
    second = rows[1]
    assert (second["age"], second["at_risk"], second["ended"]) == (1, 4, 1)
    assert (second["hazard"], second["survival"], second["m"]) == pytest.approx((0.25, 1, 5.875))
    # ¾ pass the next call, and (7/9)^k of them the k calls after age 4: .75·.605 = .454 at k = 2
    assert second["median"] == 5
    assert second["extrapolated"] is False
    assert len(rows) == 5


def test_rows_past_the_tail_age_are_marked():
    at_tail, beyond = life_table_rows(cut_by_hand(), [4, 6])
    assert (at_tail["extrapolated"], beyond["extrapolated"]) == (False, True)
    # (7/9)³ = .47 is the first power not above a half
    assert at_tail["median"] == beyond["median"] == 3
    assert beyond["survival"] == pytest.approx(0.75 * (7 / 9) ** 2)


turns = st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=60)


@settings(deadline=None)  # the first example imports pandas
@given(turns=turns, radix=st.sampled_from([1, 1000, 100_000]))
def test_everybody_ends_once_and_the_frame_is_the_life_table(turns, radix):
    calls, ended = zip(*turns, strict=True)
    table = life_table(Histogram.from_turns([*calls, 2], [*ended, True]), min_at_risk=3)
    frame = as_frame(actuarial_table(table, role="any", radix=radix))
    assert frame["d"].sum() == pytest.approx(radix)
    assert frame["m"].to_numpy().tolist() == table.mean.tolist()
    assert (frame["e"].to_numpy() + 1).tolist() == pytest.approx(table.mean.tolist())
    assert frame["lower"].tolist() == table.lower.tolist()
    assert frame["upper"].tolist() == table.upper.tolist()
    first, *others = life_table_rows(table)
    assert first["median"] == table.whole_median.calls
    for row in others:
        assert row["median"] == table.median(row["age"])
        assert row["m"] == table.at(row["age"]).mean


@pytest.mark.parametrize("radix", [0, -1, float("nan"), float("inf")])
def test_a_radix_is_positive(radix):
    with pytest.raises(InputError, match="radix"):
        actuarial_table(cut_by_hand(), role="dev", radix=radix)
