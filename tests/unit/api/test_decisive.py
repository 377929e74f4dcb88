"""The tables that decide, with parents by hand: roles borrow from all roles, models from roles."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from api import decisive
from api.decisive import Lives, decisive_tables, standards
from api.role_tables import raw_table
from estimator.credibility import alone
from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.standard_table import standard_name
from policy.decision import decide
from policy.question import Question
from policy.snapshot import Snapshot, Standard, TableKey

ORACLES = Path(__file__).parents[2] / "data" / "oracles_estimator.json"


def constant(calls, turns):
    """Turns that all end at one call: m(0) = calls, D = turns."""
    return life_table(Histogram.from_turns([calls] * turns, [True] * turns))


def lives_of(**roles):
    lives = Lives()
    for role, life in roles.items():
        lives.take(role, {"": life}, {})
    return lives


def tables_of(lives, unit="tool_calls"):
    whole = next(iter(lives.roles.values()))
    raw = {
        TableKey("raw", unit, role): raw_table(role, unit, life, None)
        for role, life in lives.roles.items()
    }
    raw[TableKey("portfolio", unit)] = raw_table("all roles", unit, whole, None)
    return decisive_tables(unit, lives, raw, lambda role: 2.0 if role is None else None)


@pytest.fixture
def standard_of_eights(monkeypatch):
    """Let the standard table be 100 turns of 8 calls, for every kind of role."""
    eights = constant(8, 100)
    monkeypatch.setattr(decisive, "_standard_life", lambda _kind, _unit: eights)
    monkeypatch.setattr(decisive, "_standard", lambda _kind, _unit: alone("eights", eights))


def test_oracle_of_the_default_credibility(monkeypatch):
    case = json.loads(ORACLES.read_text(encoding="utf-8"))["credibility_log"]
    told, expected, tolerance = case["input"], case["expected"], case["tolerance"]
    parent = alone("all roles", constant(told["m_portfolio"], 5))
    monkeypatch.setattr(decisive, "all_roles", lambda _roles, _standard: parent)
    own = constant(told["m_role"], told["D"])
    # V such that the cv² of a single life, V·D²/((D−1)·m²), is the one given.
    spread = told["cv2"] * (told["D"] - 1) * told["m_role"] ** 2 / told["D"] ** 2
    own = replace(own, variance=np.full_like(own.variance, spread))
    table = tables_of(lives_of(scout=own))[TableKey("decisive", "tool_calls", "scout")]
    assert table.credibility[0] == expected["z"]
    assert table.effective_ends[0] == told["D"]
    assert table.expected[0] == pytest.approx(expected["m"], abs=tolerance)
    assert [table.lower[0], table.upper[0]] == pytest.approx(expected["ci90"], abs=tolerance)
    assert table.level == 0.9


def test_four_levels_by_hand(standard_of_eights):
    lives = lives_of(short=constant(2, 3), long=constant(32, 9))
    # On a model: 4 calls, one end, z = ¼. The role's table is that of its 3 turns of 2.
    on_models = {"m": constant(4, 1), "n": constant(2, 2)}
    lives.take("short", {"": constant(2, 3), **on_models}, on_models)
    tables = tables_of(lives)
    logs = {
        (key.shelf, key.role, key.model): math.log2(table.expected[0])
        for key, table in tables.items()
    }
    # All roles: (½·1 + ¾·5)/(5/4) = 3.4, D = 12, z = 0.8, so 0.8·3.4 + 0.2·3.
    assert logs["fallback", "", ""] == pytest.approx(3.32)
    assert logs["decisive", "short", ""] == pytest.approx(0.5 * 1 + 0.5 * 3.32)
    assert logs["decisive", "long", ""] == pytest.approx(0.75 * 5 + 0.25 * 3.32)
    assert logs["decisive", "short", "m"] == pytest.approx(0.25 * 2 + 0.75 * 2.16)
    snapshot = Snapshot.of(1, "", tables, standard={("tool_calls", ""): Standard("eights", 100)})
    question = Question("short", 0, cost=1.0, saving=1.0, model="m")
    answer = decide(
        question, snapshot, None, at=datetime(2026, 11, 30, tzinfo=UTC), decision_id="d"
    )
    shares = [(share.name, share.turns) for share in answer.basis.rests_on[:2]]
    assert shares == [("short on m", 1), ("short", 3)]
    assert [share.name for share in answer.basis.rests_on[2:]] == ["all roles", "eights"]
    weights = [share.weight for share in answer.basis.rests_on]
    assert weights == pytest.approx([0.25, 0.375, 0.3, 0.075])
    assert math.log2(answer.expected_remaining_calls) == pytest.approx(2.12)
    # Nobody has told a pace: all roles' 2 requests per call.
    assert answer.expected_remaining_requests == pytest.approx(2 * 2**2.12)


def test_roles_that_talk_and_roles_that_work_borrow_from_their_own_standard(monkeypatch):
    lives = {"main": constant(16, 100), "subagent": constant(4, 100)}
    monkeypatch.setattr(decisive, "_standard_life", lambda kind, _unit: lives[kind])
    monkeypatch.setattr(decisive, "_standard", lambda kind, _unit: alone(kind, lives[kind]))
    tables = tables_of(lives_of(main=constant(8, 3), scout=constant(8, 3)))
    logs = {(key.shelf, key.role): math.log2(table.expected[0]) for key, table in tables.items()}
    # All roles: m 8, D = 6, z = ⅔.
    talks, works = 2 / 3 * 3 + 1 / 3 * 4, 2 / 3 * 3 + 1 / 3 * 2
    assert logs["fallback", "main"] == pytest.approx(talks)
    assert logs["fallback", ""] == pytest.approx(works)
    assert logs["decisive", "main"] == pytest.approx(0.5 * 3 + 0.5 * talks)
    assert logs["decisive", "scout"] == pytest.approx(0.5 * 3 + 0.5 * works)


def test_odds_of_a_blended_table_are_those_of_the_mixture(standard_of_eights):
    """3 of 6 votes for turns of 2, the rest for all roles: of 3 such turns, z = ½, and eights."""
    table = tables_of(lives_of(scout=constant(2, 3)))[TableKey("decisive", "tool_calls", "scout")]
    # The open tail begins at 0 for so few turns: own S(k) = ½^k.
    share = 0.5 + 0.5 * 0.5
    eight = life_table(Histogram.from_turns([8] * 100, [True] * 100)).survival
    for age in range(len(table.survival)):
        assert table.survival[age] == pytest.approx(share * 0.5**age + (1 - share) * eight[age])


def test_a_role_goes_on_past_its_own_ages_and_says_so(standard_of_eights):
    table = tables_of(lives_of(scout=constant(2, 3)))[TableKey("decisive", "tool_calls", "scout")]
    assert (table.observed_age, table.tail_age) == (0, 7)
    assert not table.remaining(0).extrapolated
    assert table.remaining(1).extrapolated
    assert table.at_risk == (3,) * 8


def test_standards_are_named_and_told_apart_by_unit():
    found = standards()
    assert set(found) == {
        (unit, name) for unit in ("tool_calls", "requests") for name in ("main", "")
    }
    assert {standard.name for standard in found.values()} == {standard_name()}
    assert len({standard.turns for standard in found.values()}) == 4
