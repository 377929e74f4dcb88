import csv
from collections import defaultdict
from datetime import datetime
from fractions import Fraction

import pytest

from examples.note_table import note_turns, write_note_table


def lives_by_role(turns):
    lives = defaultdict(list)
    for turn in turns:
        lives[turn.role].append(turn.tool_calls)
    return lives


def mean_residual_life(lives, age):
    ahead = [life - age for life in lives if life > age]
    return Fraction(sum(ahead), len(ahead))


def to_one_decimal(value):
    return f"{float(value):.1f}"


@pytest.fixture(scope="module")
def turns():
    return note_turns()


@pytest.fixture(scope="module")
def lives(turns):
    return lives_by_role(turns)


def test_there_are_3346_turns_of_13_roles_with_at_least_one_tool_call(turns, lives):
    assert len(turns) == 3346
    assert len(lives) == 13
    assert min(turn.tool_calls for turn in turns) >= 1


@pytest.mark.parametrize("seed", [17, 1, 2026])
def test_the_note_s_figures_come_out_whatever_the_seed(seed):
    lives = lives_by_role(note_turns(seed))
    assert sum(map(len, lives.values())) == 3346
    assert to_one_decimal(mean_residual_life(lives["dev-front"], 30)) == "34.8"
    after_ten = {role: mean_residual_life(its, 10) for role, its in lives.items()}
    assert to_one_decimal(after_ten.pop("dev-back")) == "46.4"
    assert to_one_decimal(after_ten.pop("triage")) == "8.1"
    assert all(8.2 < value < 46.3 for value in after_ten.values())


def test_the_heavy_role_s_estimate_hardly_falls(lives):
    by_age = [mean_residual_life(lives["dev-front"], age) for age in range(31)]
    assert all(30 <= value <= 47 for value in by_age)
    assert by_age[0] > by_age[30]


def test_light_roles_make_fewer_calls_in_all_than_the_heavy_one_has_ahead(lives):
    light = [role for role, its in lives.items() if sum(its) / len(its) < 34.8]
    assert len(light) >= 5


def test_the_break_even_of_17_parts_the_roles(lives):
    above = [role for role, its in lives.items() if mean_residual_life(its, 10) > 17]
    assert 3 <= len(above) <= 10


@pytest.mark.parametrize("half_life", [200])
def test_the_figures_hold_with_recent_turns_weighted_more(lives, half_life):
    def decayed(role, age):
        its = lives[role]
        weighted = [
            (2 ** ((k - len(its)) / half_life), life - age)
            for k, life in enumerate(its)
            if life > age
        ]
        return sum(w * ahead for w, ahead in weighted) / sum(w for w, _ in weighted)

    assert decayed("dev-front", 30) == pytest.approx(34.8, abs=0.03)
    assert decayed("dev-back", 10) == pytest.approx(46.4, abs=0.03)
    assert decayed("triage", 10) == pytest.approx(8.1, abs=0.03)


def test_the_open_tail_begins_beyond_the_prescribed_ages(lives):
    for role, its in lives.items():
        age = 30 if role == "dev-front" else 10
        assert sum(life > age for life in its) >= 20
        assert len({life for life in its if life > age}) >= 3


def test_a_request_asks_for_at_least_one_call_but_the_last_one(turns):
    assert all(2 <= turn.requests <= turn.tool_calls + 1 for turn in turns)
    calls, requests = sum(t.tool_calls for t in turns), sum(t.requests for t in turns)
    assert requests / calls == pytest.approx(0.92, abs=0.02)


def test_ids_are_unique_and_a_session_has_one_role(turns):
    assert len({turn.turn_id for turn in turns}) == len(turns)
    assert len({(turn.session_id, turn.role) for turn in turns}) == len(
        {turn.session_id for turn in turns}
    )


def test_turns_of_a_session_do_not_overlap(turns):
    ends = {}
    for turn in turns:
        start = datetime.fromisoformat(turn.started_at)
        end = datetime.fromisoformat(turn.ended_at)
        assert start < end
        assert start >= ends.get(turn.session_id, start)
        ends[turn.session_id] = end


def test_the_file_has_the_columns_of_a_turn_table_and_the_same_bytes_twice(tmp_path, turns):
    assert write_note_table(tmp_path / "a.csv") == 3346
    write_note_table(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert ",".join(rows[0]) == (
        "source,session_id,turn_id,role,model,started_at,ended_at,status,tool_calls,requests"
    )
    assert [int(row["tool_calls"]) for row in rows] == [turn.tool_calls for turn in turns]
    assert {row["status"] for row in rows} == {"ended"}


def test_another_seed_gives_other_rows(turns):
    assert note_turns(18) != turns
