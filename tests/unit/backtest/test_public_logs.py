"""The replay of public logs against the figures that two independent replays gave."""

import numpy as np
import pytest

from backtest.candidates import CANDIDATES
from backtest.comparison import compared
from backtest.occupancies import fixed_plans
from backtest.replay import replay
from backtest.scenario import Scenario, fixed_aftermath
from backtest.sources import sequences_from_tables
from backtest.trial import halves, run_trial
from tests.conftest import SHARED, needs_shared_data

pytestmark = needs_shared_data
SEEDS = (1,)
RULES = {name: CANDIDATES[name] for name in ("never", "renewal", "idle", "idle by project")}

# The model, §4: r, TTL, Q; best fixed threshold (%), its share of what is possible; renewal (%).
PUBLISHED = [
    (0.10, 300.0, 0.0, -25.5, 0.81, -26.9),
    (0.10, 3_600.0, 0.0, -21.4, 0.83, -21.9),
    (0.05, 300.0, 0.0, -19.2, 0.69, -21.5),
    (0.025, 300.0, 0.0, -15.0, 0.58, -18.3),
    (0.10, 300.0, 50e3, -18.1, 0.73, -18.6),
    (0.025, 3_600.0, 0.0, -5.7, 0.49, -5.6),
]


@pytest.fixture(scope="module")
def logs():
    return sequences_from_tables(SHARED / "data")


@pytest.fixture(scope="module")
def compare(logs):
    known = {}

    def rows(read, ttl, quality):
        scenario = Scenario(read, ttl, quality)
        if scenario not in known:
            splits = halves(logs, SEEDS)
            trial = run_trial(logs, fixed_aftermath(logs), scenario, splits, candidates=RULES)
            known[scenario] = {row.rule: row for row in compared(trial, logs.session, draws=500)}
        return known[scenario]

    return rows


@pytest.mark.parametrize(("read", "ttl", "quality", "best", "share", "renewal"), PUBLISHED)
def test_the_published_table_comes_out_again(compare, read, ttl, quality, best, share, renewal):
    rows = compare(read, ttl, quality)
    found = rows["best fixed threshold"]
    assert 100 * found.relative == pytest.approx(best, abs=0.4)
    assert found.share == pytest.approx(share, abs=0.015)
    assert 100 * rows["renewal"].relative == pytest.approx(renewal, abs=0.5)


@pytest.mark.parametrize(
    ("read", "at_turn_end", "while_idle", "by_project"),
    [(0.10, 0.84, 0.86, 0.87), (0.05, 0.77, 0.82, 0.83), (0.025, 0.70, 0.78, 0.79)],
)
def test_renewal_beats_every_fixed_threshold_where_caches_are_short(
    compare, read, at_turn_end, while_idle, by_project
):
    rows = compare(read, 300.0, 0.0)
    assert rows["renewal"].interval[1] < 0
    assert rows["renewal"].share >= at_turn_end
    assert rows["idle"].share >= while_idle
    assert rows["idle by project"].share >= by_project


@pytest.mark.parametrize(("read", "ttl", "quality"), [row[:3] for row in PUBLISHED])
def test_renewal_is_nowhere_dearer_than_the_best_by_more_than_noise(compare, read, ttl, quality):
    assert compare(read, ttl, quality)["renewal"].difference <= 0.003


def test_the_best_thresholds_are_where_they_were_found(logs):
    sizes = np.arange(60, 80, 5) * 1e3
    plans = fixed_plans(logs, tuple(sizes))
    cost = replay(logs, fixed_aftermath(logs), Scenario(0.1), plans).cost.sum(axis=1)
    assert sizes[np.argmin(cost)] in (65e3, 70e3)
