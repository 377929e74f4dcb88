"""Drift: each closed turn once, in order; one alarm for a change, none without."""

import random
from statistics import fmean

import pytest

from api.drift_watch import drift_report, watch_drift
from ledger.clock import iso
from ledger.database import reading, writing
from ledger.drift_states import read_drift_states
from ledger.events import TurnReached, TurnStarted
from ledger.recording import record

BEGIN_MS = 1_800_000_000_000
#: Ten turns a day: 3,652 a year.
STEP_MS = 8_640_000


def turns(lives, *, role="main", first=0, prefix="t"):
    """Ended turns of these lives, one every `STEP_MS`."""
    for number, calls in enumerate(lives, start=first):
        at_ms = BEGIN_MS + number * STEP_MS
        name = f"{prefix}{number:06}"
        yield TurnStarted(name, "s", "s", "test", role, at_ms)
        yield TurnReached(name, "s", "ended", None, at_ms, calls)


def lives(mean, count, seed):
    draw = random.Random(seed)
    return [1 + int(draw.expovariate(1 / (mean - 0.5))) for _ in range(count)]


@pytest.fixture
def tell(sqlite_ledger):
    def told(*batches):
        with writing(sqlite_ledger) as connection:
            record(connection, [event for batch in batches for event in batch])

    return told


@pytest.fixture
def watch(sqlite_ledger):
    """Watch the roles named, and return the report by role."""

    def watched(*roles):
        watch_drift(sqlite_ledger, roles or ["main"])
        with reading(sqlite_ledger) as connection:
            return {row["role"]: row for row in drift_report(connection)}

    return watched


@pytest.fixture
def states(sqlite_ledger):
    def stored():
        with reading(sqlite_ledger) as connection:
            return read_drift_states(connection)

    return stored


def test_three_hundred_turns_with_a_call_make_a_reference(tell, watch):
    told = [0, *[10] * 298, 0]
    tell(turns(told))
    row = watch()["main"]
    assert (row["status"], row["reference_turns"]) == ("gathering a reference", 298)
    assert (row["reference_needed"], row["statistic"], row["threshold"]) == (300, None, None)
    tell(turns([20, 20], first=300))
    row = watch()["main"]
    assert (row["status"], row["turns_watched"]) == ("watching", 0)
    assert row["reference"]["turns"] == 300
    assert row["reference"]["m"]["0"] == pytest.approx((298 * 10 + 2 * 20) / 300)
    assert row["since"] == {"turns": 0, "m": dict.fromkeys(("0", "5", "10", "20", "40"))}
    # 302 turns over the 301 steps between the first and the last.
    assert row["threshold"] == pytest.approx(302 / 301 * 3652.5, rel=1e-4)


def test_a_change_raises_one_alarm_with_both_tables(tell, watch):
    before, after = lives(20, 500, seed=1), lives(10, 260, seed=2)
    told = before + after
    tell(turns(told))
    row = watch()["main"]
    [alarm] = row["alarms"]
    raised = int(alarm["turn_id"].removeprefix("t"))
    assert 500 <= raised < 700
    assert alarm["direction"] == "shorter"
    assert alarm["at"] == iso(BEGIN_MS + raised * STEP_MS)
    assert alarm["turns_since_reference"] == raised - 299
    assert alarm["before"]["turns"] == 300
    assert alarm["before"]["m"]["0"] == pytest.approx(fmean(told[:300]))
    # After it: the latest turns, from about where the change began.
    began = raised + 1 - alarm["after"]["turns"]
    assert abs(began - 500) <= 20
    assert alarm["after"]["m"]["0"] == pytest.approx(fmean(told[began : raised + 1]))
    for age in (5, 10, 20):
        left = [calls - age for calls in told[:300] if calls > age]
        assert alarm["before"]["m"][str(age)] == pytest.approx(fmean(left))
    # What came behind it is the beginning of a new reference.
    assert (row["status"], row["reference_turns"]) == (
        "gathering a reference",
        len(told) - raised - 1,
    )


def test_longer_turns_are_told_as_longer(tell, watch):
    tell(turns(lives(20, 400, seed=3) + lives(40, 300, seed=4)))
    assert [alarm["direction"] for alarm in watch()["main"]["alarms"]] == ["longer"]


def test_a_new_reference_is_gathered_behind_an_alarm(tell, watch):
    told = lives(20, 400, seed=5) + lives(10, 700, seed=6)
    tell(turns(told))
    row = watch()["main"]
    [alarm] = row["alarms"]
    raised = int(alarm["turn_id"].removeprefix("t"))
    assert row["status"] == "watching"
    assert row["turns_watched"] == len(told) - raised - 301
    # Its rate is that of its own 300 turns, a step each.
    assert row["threshold"] == pytest.approx(3652.5)
    assert row["reference"]["m"]["0"] == pytest.approx(fmean(told[raised + 1 : raised + 301]))
    assert row["since"]["m"]["0"] == pytest.approx(fmean(told[raised + 301 :]))


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_without_a_change_there_is_no_alarm(tell, watch, seed):
    tell(turns(lives(20, 2000, seed=seed)))
    row = watch()["main"]
    assert row["alarms"] == []
    assert row["turns_watched"] == 1700
    assert row["statistic"] < row["threshold"]


def test_looking_twice_changes_nothing(tell, watch, states):
    tell(turns(lives(20, 350, seed=7)))
    first = watch()
    stored = states()
    assert watch() == first
    assert states() == stored


def test_bit_by_bit_is_as_at_once(tell, watch, states):
    """Stored and restored between every few turns, through an alarm and the next reference."""
    told = lives(20, 400, seed=8) + lives(10, 500, seed=9)
    for first in range(0, len(told), 45):
        tell(turns(told[first : first + 45], first=first))
        tell(turns(told[first : first + 45], role="once", first=first, prefix="o"))
        watch()
    watch("once")
    found = states()
    assert len(found["main"]["alarms"]) == 1
    for state in found.values():
        state["turn_id"] = state["turn_id"][1:]
        for alarm in state["alarms"]:
            alarm["turn_id"] = alarm["turn_id"][1:]
    assert found["main"] == found["once"]


def test_a_turn_that_comes_in_late_is_not_shown(tell, watch):
    tell(turns([10] * 20, first=100))
    assert watch()["main"]["reference_turns"] == 20
    tell(turns([99] * 5))
    assert watch()["main"]["reference_turns"] == 20
    tell(turns([10], first=120))
    assert watch()["main"]["reference_turns"] == 21


def test_open_untimed_and_unknown_turns_are_no_news(tell, watch):
    tell(
        [
            TurnStarted("open", "s", "s", "test", "main", BEGIN_MS),
            TurnStarted("untimed", "s", "s", "test", "main"),
            TurnReached("untimed", "s", "ended", None, None, 9),
            TurnStarted("unknown", "s", "s", "test", "main", BEGIN_MS, entry_calls=None),
            TurnReached("unknown", "s", "ended", None, BEGIN_MS + 1, 9),
        ],
        turns([10] * 2, first=1),
    )
    assert watch()["main"]["reference_turns"] == 2


def test_a_cut_turn_counts_for_the_calls_it_was_at_risk(tell, watch):
    cut = [
        TurnStarted("cut", "s", "s", "test", "main", BEGIN_MS),
        TurnReached("cut", "s", "cut", None, BEGIN_MS, 15),
    ]
    tell(cut, turns([10] * 5, first=1))
    row = watch()["main"]
    # Six turns are too few for ages of their own: m(0) = (14 + 5·10)/5 ends.
    assert row["reference"] == {
        "turns": 6,
        "m": {age: pytest.approx(64 / 5) for age in ("0", "5", "10", "20", "40")},
    }


def test_a_turn_longer_than_any_life_table_is_cut_there(tell, watch):
    """Which is news all the same: a million calls where ten were usual."""
    tell(turns([*[10] * 150, 1_500_000, *[10] * 149, 1_500_000, 10]))
    row = watch()["main"]
    [alarm] = row["alarms"]
    assert (alarm["direction"], alarm["turns_since_reference"]) == ("longer", 1)
    assert alarm["after"] == {"turns": 1, "m": dict.fromkeys(("0", "5", "10", "20", "40"))}
    assert row["reference_turns"] == 1


def test_roles_are_watched_apart(tell, watch):
    tell(
        turns(lives(20, 700, seed=14)),
        turns(lives(20, 400, seed=15) + lives(8, 300, seed=16), role="Plan", prefix="p"),
        turns([5] * 3, role="scout", prefix="x"),
    )
    report = watch("main", "Plan", "nobody")
    assert list(report) == ["Plan", "main"]  # nobody has no turns to be watched
    assert [len(report[role]["alarms"]) for role in report] == [1, 0]
    assert watch("scout")["scout"]["reference_turns"] == 3


def test_nothing_to_watch_stores_nothing(sqlite_ledger, states):
    watch_drift(sqlite_ledger, [])
    assert states() == {}


def test_an_alarm_is_logged_with_role_and_direction(tell, sqlite_ledger, caplog):
    """A command sets no formatter: the words alone must tell it."""
    tell(turns(lives(20, 400, seed=3) + lives(40, 300, seed=4), role="dev"))
    assert watch_drift(sqlite_ledger, ["dev"]) == 1
    [record] = [one for one in caplog.records if one.name.endswith("drift_watch")]
    assert record.getMessage() == "turns of dev became longer"
    assert (record.role, record.direction) == ("dev", "longer")
