import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from lifelines import KaplanMeierFitter

from estimator.histogram import Histogram
from estimator.life_table import life_table

TURNS = Path(__file__).parents[3] / ".." / "shared" / "data" / "turns.csv.gz"

pytestmark = pytest.mark.skipif(
    not TURNS.exists(), reason=f"the reference turns are not there: {TURNS}"
)


@pytest.fixture(scope="module")
def main_turns():
    with gzip.open(TURNS, "rt", encoding="utf-8") as lines:
        turns = [turn for turn in csv.DictReader(lines) if turn["role"] == "main"]
    calls = np.array([int(turn["n_tool_calls"]) for turn in turns])
    return calls, np.array([turn["ended"] == "True" for turn in turns])


def test_survival_of_main_turns_agrees_with_lifelines(main_turns):
    calls, ended = main_turns
    table = life_table(Histogram.from_turns(calls, ended), min_at_risk=1, min_ends=1)
    exit_ = np.where(ended, calls, calls - 1)
    exposed = exit_ >= 1
    fitter = KaplanMeierFitter().fit(exit_[exposed], ended[exposed])
    ages = np.arange(table.tail_age + 1)
    theirs = fitter.survival_function_at_times(ages).to_numpy()
    assert table.survival == pytest.approx(theirs, abs=1e-9)


def test_counts_of_main_turns_are_those_of_the_file(main_turns):
    calls, ended = main_turns
    table = life_table(Histogram.from_turns(calls, ended))
    assert table.turns == len(calls)
    assert table.total_ends == (ended & (calls >= 1)).sum()
    # a cut turn with no call can't tell whether it would have made one
    told = ended | (calls >= 1)
    assert table.continue_probability[0] == pytest.approx((calls[told] >= 1).mean())
    assert table.at_risk[0] == ((calls >= 1) & ended).sum() + ((calls >= 2) & ~ended).sum()


def test_dropping_cut_main_turns_would_lower_the_mean(main_turns):
    calls, ended = main_turns
    kept = life_table(Histogram.from_turns(calls, ended))
    dropped = life_table(Histogram.from_turns(calls[ended], ended[ended]))
    assert dropped.overall_mean < kept.overall_mean
