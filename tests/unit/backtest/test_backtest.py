"""The backtest on invented sessions whose best rule is known, or where there is none."""

import numpy as np
import pytest

from backtest.anonymous import Aliases, plain_role
from backtest.backtest import Leavings, Options, backtest
from backtest.candidates import CANDIDATES
from backtest.role_savings import role_savings
from backtest.scenario import Scenario, fixed_aftermath
from backtest.sequences import sequences_of
from compactuary.errors import InputError
from tests.unit.backtest.sequences_by_hand import turn

PRICES = Scenario(0.1)
SMALL = Leavings("X′ = P + 16k", fixed_aftermath, fixed_aftermath)
RULES = ("never", "occupancy 150k", "eoq", "break-even", "reorder")


def invented(seed, *, sessions, mean, growth, role="main"):
    """Sessions of one turn that ends after each request with the same probability."""
    generator = np.random.default_rng(seed)
    told = []
    for number in range(sessions):
        many = int(generator.geometric(1 / mean))
        contexts = 18e3 + growth * np.arange(many)
        times = 1e9 + 1e5 * number + 20.0 * np.arange(many)
        name = f"{role}{number:03}"
        told.append(turn(contexts, times, session=name, role=role, main=role == "main"))
    return told


def found(turns, rules=RULES, **more):
    return backtest(sequences_of(turns), PRICES, Options(rules=rules, leavings=SMALL, **more))


def test_the_best_rule_is_found_where_one_is():
    # Memoryless turns, even growth, no pauses: the reorder point is optimal.
    told = found(invented(3, sessions=300, mean=60, growth=1_500.0))
    rows = {one.rule: one for one in told.rules}
    assert told.rules[0].rule == "reorder"
    assert rows["reorder"].relative < -0.1
    assert rows["reorder"].shown
    assert rows["reorder"].shown_together
    assert rows["reorder"].cost < rows["eoq"].cost < rows["occupancy 150k"].cost
    assert rows["reorder"].share > 0.5
    for one in told.rules:
        assert one.interval[0] <= one.relative <= one.interval[1]
        assert one.regret >= -1e-12


def test_nothing_is_found_where_nothing_ever_fills():
    told = found(invented(4, sessions=60, mean=8, growth=100.0))
    assert all(one.relative == 0 and not one.shown_together for one in told.rules)
    assert told.rules[0].share is None
    assert {one.compactions for one in told.rules if not one.hindsight} == {0}


def test_a_role_is_switched_on_where_it_pays_and_m_may_not_matter():
    turns = invented(5, sessions=120, mean=80, growth=1_500.0, role="builder")
    turns += invented(6, sessions=60, mean=5, growth=200.0, role="reader")
    turns += invented(7, sessions=14, mean=80, growth=1_500.0, role="rare")[-4:]
    rows = {one.role: one for one in role_savings(found(turns), "reorder")}
    assert rows["builder"].verdict == "on"
    assert rows["builder"].saving > 0
    assert rows["builder"].saving_interval[0] > 0
    assert rows["reader"].verdict == "nothing to decide"
    assert (rows["reader"].with_m, rows["reader"].m_matters) == (0, False)
    assert (rows["rare"].verdict, rows["rare"].m_matters) == ("too few sessions", None)
    with pytest.raises(InputError, match="was not among the rules compared"):
        role_savings(found(turns), "renewal")


@pytest.mark.parametrize(
    "wrong",
    [{"rules": ()}, {"rules": ("no",)}, {"split": "x"}, {"horizon": "x"}, {"draws": 0}],
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(InputError):
        found(invented(8, sessions=20, mean=5, growth=100.0), **wrong)


def test_every_baseline_is_there():
    names = {f"occupancy {size}" for size in ("60k", "80k", "100k", "120k", "150k", "167k")}
    names |= {"never", "occupancy 80%", "occupancy 95%", "eoq", "three-thresholds", "lindy"}
    names |= {"fixed-remaining", "median-remaining", "median-session"}
    assert names | {"break-even", "break-even session"} <= set(CANDIDATES)


def test_another_limit_is_another_baseline():
    turns = invented(9, sessions=40, mean=200, growth=2_000.0)
    options = Options(rules=("occupancy 80%",), leavings=SMALL)
    far = Scenario(0.1, limit_tokens=950e3, window_tokens=1e6)
    told = backtest(sequences_of(turns), far, options)
    near = backtest(sequences_of(turns), PRICES, options)
    assert told.baseline.compactions < near.baseline.compactions
    assert told.trial.best_tokens[0] in (*range(40_000, 950_001, 1_000),)


def test_other_names_keep_their_order_and_tell_nothing():
    sequences = sequences_of(
        [turn([1e4], [n], session=name, project=name[0]) for n, name in enumerate(("b1", "a2"))]
        + [turn([1e4], [9], session="a1", project="a", role="Fix /etc, please")]
    )
    told = Aliases(sequences.project, key=b"k").sequences(sequences)
    assert told.project == ("project 1", "project 1", "project 2")
    assert list(told.session) == sorted(told.session)
    assert told.role[0] == "another role"
    again = Aliases(sequences.project).sequences(sequences)
    assert again.session != told.session
    assert plain_role("feature-dev:code_architect") == "feature-dev:code_architect"
