"""Estimates: decayed tables by brute force; what is kept up to date is what is made anew."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, insert

from api.estimates import RECENT_TURNS, Estimates, build_snapshot, within_horizon
from estimator.histogram import MAX_CALLS
from estimator.life_table import life_table
from estimator.standard_table import standard_table
from ledger.database import reading, writing
from ledger.events import (
    UNKNOWN_SUBAGENT,
    AgentTold,
    RequestMade,
    TurnReached,
    TurnStarted,
    thread_of,
)
from ledger.recording import record
from ledger.schema import ledger_version, metadata
from ledger.usage import Usage

NOW_MS = 1_800_000_000_000


def turn(turn_id, calls, *, role="main", status="ended", model=None, at_ms=None, requests=None):
    return [
        TurnStarted(turn_id, "s", "s", "test", role, at_ms, model=model),
        TurnReached(turn_id, "s", status, None, at_ms, calls, requests),
    ]


@pytest.fixture
def told(sqlite_ledger):
    """Record turns, and return the snapshot of all that the ledger has."""

    def tell(*turns):
        with writing(sqlite_ledger) as connection:
            record(connection, [event for events in turns for event in events])
        with reading(sqlite_ledger) as connection:
            return build_snapshot(connection, Estimates(), NOW_MS)

    return tell


def standard_mean(role):
    return float(life_table(standard_table(role)).mean[0])


def lone(own, ends, standard):
    """m(0) of the only role: it borrows from all roles, itself, and those from elsewhere."""
    z = ends / (ends + 3)
    parent = z * math.log(own) + (1 - z) * math.log(standard)
    return math.exp(z * math.log(own) + (1 - z) * parent)


def test_a_role_of_more_turns_than_are_read_is_as_if_all_were_weighed(told):
    """1,700 turns, the first 500 twice as long; the last 1,400 hold all but 1/128 of the weight."""
    lives = [24 + number % 13 if number < 500 else 12 + number % 7 for number in range(1700)]
    assert len(lives) > RECENT_TURNS
    snapshot = told(
        *(turn(f"t{number:05}", calls, at_ms=NOW_MS + number) for number, calls in enumerate(lives))
    )
    table = snapshot.lookup("tool_calls", "main").table
    weight = [0.5 ** ((len(lives) - 1 - number) / 200) for number in range(len(lives))]
    mean = sum(w * calls for w, calls in zip(weight, lives, strict=True)) / sum(weight)
    ends = sum(weight) ** 2 / sum(w * w for w in weight)
    assert table.expected[0] == pytest.approx(lone(mean, ends, standard_mean("main")), rel=0.01)
    # Of n turns at q = ½^(1/200): (Σw)²/Σw² = (1+q)/(1−q) · (1−qⁿ)/(1+qⁿ), with q^1400 = 1/128.
    q = 0.5 ** (1 / 200)
    assert table.effective_ends[0] == pytest.approx((1 + q) / (1 - q) * 127 / 129)
    assert table.half_life_turns == 200
    # What is shown beside it is raw, and so is what is printed.
    assert (table.turns, table.at_risk[0], table.ends[0]) == (1700, 1700, 1700)
    assert snapshot.tables["tool_calls"]["main"].expected[0] == pytest.approx(sum(lives) / 1700)


def test_the_newest_turn_weighs_most_and_its_time_decides_which_it_is(told):
    early, late = (
        told(*(turn(f"{number}", 9, at_ms=NOW_MS + number) for number in range(5)), new)
        .lookup("tool_calls", "main")
        .table.expected[0]
        for new in (turn("old", 900, at_ms=NOW_MS - 1), turn("new", 900, at_ms=NOW_MS + 99))
    )
    weight = [0.5 ** (back / 200) for back in range(7)]
    # The old one is there in both: 900, five of 9, and then 900 again.
    for lives, found in [([9] * 5 + [900], early), ([900, *[9] * 5, 900], late)]:
        used = weight[: len(lives)]
        mean = sum(w * calls for w, calls in zip(used, lives, strict=True)) / sum(used)
        ends = sum(used) ** 2 / sum(w * w for w in used)
        assert found == pytest.approx(lone(mean, ends, standard_mean("main")))


def test_open_turns_count_as_cut_where_they_stand(told):
    """Open ones hold 8 calls: 7 at risk, no end. With so few, m(0) is calls ÷ ends."""
    ended = [turn(f"a{number}", 10, at_ms=NOW_MS) for number in range(5)]
    standing = [turn(f"b{number}", 8, at_ms=NOW_MS, status="open") for number in range(5)]
    table = told(*ended, *standing).lookup("tool_calls", "main").table
    weight = [0.5 ** (back / 200) for back in range(10)]  # by id at the same time: b first
    calls = sum(w * 7 for w in weight[:5]) + sum(w * 10 for w in weight[5:])
    ends = sum(weight[5:]) ** 2 / sum(w * w for w in weight[5:])
    own = calls / sum(weight[5:])
    assert own > 16
    assert table.effective_ends[0] == pytest.approx(ends)
    assert table.expected[0] == pytest.approx(lone(own, ends, standard_mean("main")))


def test_a_role_without_an_end_takes_the_fallback(told):
    snapshot = told(
        turn("a", 5, role="Plan"),
        turn("b", 3, role="scout", status="cut"),
        turn("c", 3, role="guide", status="open"),
        turn("d", 3, role="project/main", status="cut"),
    )
    assert set(snapshot.decisive["tool_calls"]) == {("Plan", "")}
    worker = snapshot.fallback["tool_calls"][""]
    for role in ("scout", "guide", "nobody"):
        assert snapshot.lookup("tool_calls", role).table is worker
    talker = snapshot.fallback["tool_calls"]["main"]
    assert snapshot.lookup("tool_calls", "project/main").table is talker
    assert (worker.source, talker.source) == ("all_roles", "all_roles")
    # One end of 5 calls, z = ¼: the rest is that kind's standard, which is not the same for both.
    for table, role in ((worker, "scout"), (talker, "main")):
        expected = 0.25 * math.log(5) + 0.75 * math.log(standard_mean(role))
        assert math.log(table.expected[0]) == pytest.approx(expected)
    assert worker.expected[0] != pytest.approx(talker.expected[0])


def test_where_only_cut_turns_are_known_the_standard_answers(told):
    snapshot = told(turn("a", 50, status="cut"))
    found = snapshot.lookup("tool_calls", "main")
    assert (found.table.source, found.table.half_life_turns) == ("standard", None)
    assert found.table.expected[0] == pytest.approx(standard_mean("main"))


def test_ends_too_long_ago_to_be_read_decide_nothing(told):
    """They are printed all the same."""
    since = (
        turn(f"c{number:05}", 3, status="cut", at_ms=NOW_MS + number)
        for number in range(RECENT_TURNS)
    )
    snapshot = told(turn("a", 50, at_ms=NOW_MS - 1), *since)
    found = snapshot.lookup("tool_calls", "main")
    assert (found.table.source, found.table.credibility[0]) == ("standard", 0)
    assert found.table.turns == standard_table("main").turns_with_a_call
    assert snapshot.portfolio["tool_calls"].turns == RECENT_TURNS + 1


def test_the_standard_behind_a_fallback_counts_turns_of_the_unit(told):
    snapshot = told(turn("a", 5))
    for unit in ("tool_calls", "requests"):
        for role in ("main", "scout"):
            standard = snapshot.lookup(unit, role).standard
            assert standard.turns == standard_table(role, unit).turns_with_a_call


def test_tables_by_model_only_where_turns_ended_on_two(told):
    snapshot = told(
        turn("a", 5, model="m"),
        turn("b", 7, model="m"),
        turn("c", 3, model="n", status="cut"),
        turn("d", 4, role="Plan", model="m"),
        turn("e", 6, role="Plan", model="n"),
        turn("f", 9, role="Plan"),
        turn("g", 4, role="scout", model="m"),
        turn("h", 4, role="scout"),
    )
    assert set(snapshot.decisive["tool_calls"]) == {
        ("main", ""),
        ("Plan", ""),
        ("Plan", "m"),
        ("Plan", "n"),
        ("scout", ""),
    }
    found = snapshot.lookup("tool_calls", "Plan", "n")
    assert [table.role for table in found.borrows] == ["Plan", "all roles"]
    assert (found.table.role, found.table.turns, found.table.ends[0]) == ("Plan on n", 1, 1)


def test_counts_beside_a_table_by_model_are_raw(told):
    """Of 300 turns on m, then 300 on n: their weights are not what is counted."""
    lives = [("m", 5)] * 300 + [("n", 9)] * 300
    snapshot = told(
        *(
            turn(f"t{number:03}", calls, model=model, at_ms=NOW_MS + number)
            for number, (model, calls) in enumerate(lives)
        )
    )
    table = snapshot.lookup("tool_calls", "main", "m").table
    assert (table.turns, table.at_risk[0], table.ends[0]) == (300, 300, 300)
    # The newest turn on m weighs ½^(300/200): what the ends amount to does not depend on that.
    q = 0.5 ** (1 / 200)
    assert table.effective_ends[0] == pytest.approx((1 + q) / (1 - q) * (1 - q**300) / (1 + q**300))


def test_a_turn_leaves_the_role_that_it_was_first_taken_for(told, sqlite_ledger):
    kept = Estimates()
    thread = thread_of("s", "a1")
    told([TurnStarted("t", "s", thread, "test", UNKNOWN_SUBAGENT, NOW_MS)])
    told([TurnReached("t", "s", "ended", None, NOW_MS, 6)])
    with reading(sqlite_ledger) as connection:
        before = build_snapshot(connection, kept, NOW_MS)
    told([AgentTold("s", "a1", "test", "Plan", None, NOW_MS)])
    with reading(sqlite_ledger) as connection:
        after = build_snapshot(connection, kept, NOW_MS)
    assert set(before.decisive["tool_calls"]) == {(UNKNOWN_SUBAGENT, "")}
    assert set(after.decisive["tool_calls"]) == {("Plan", "")}
    table = after.decisive["tool_calls"]["Plan", ""]
    assert table.expected[0] == pytest.approx(lone(6, 1, standard_mean("Plan")))


def test_a_resumed_turn_counts_once_with_the_end_it_came_to(told, sqlite_ledger):
    kept = Estimates()
    told(turn("a", 4, status="cut", at_ms=NOW_MS), turn("b", 6, at_ms=NOW_MS + 1))
    with reading(sqlite_ledger) as connection:
        before = build_snapshot(connection, kept, NOW_MS)
    told([TurnReached("a", "s", "ended", None, NOW_MS + 2, 11)])
    with reading(sqlite_ledger) as connection:
        after = build_snapshot(connection, kept, NOW_MS)
    older = 0.5 ** (1 / 200)
    # First 3 calls at risk before the 6 that ended; then 6 that ended before 11 that did.
    for snapshot, own, ends in (
        (before, 3 * older + 6, 1),
        (after, (6 * older + 11) / (older + 1), (1 + older) ** 2 / (1 + older**2)),
    ):
        table = snapshot.lookup("tool_calls", "main").table
        assert table.effective_ends[0] == pytest.approx(ends)
        assert table.expected[0] == pytest.approx(lone(own, ends, standard_mean("main")))


def test_a_change_in_requests_alone_moves_the_order_of_calls_too(told, sqlite_ledger):
    kept = Estimates()
    cut = turn("a", 5, status="cut", at_ms=NOW_MS, requests=2)
    told(cut, turn("b", 50, at_ms=NOW_MS + 1))
    with reading(sqlite_ledger) as connection:
        before = build_snapshot(connection, kept, NOW_MS)
    told([TurnReached("a", "s", "cut", None, NOW_MS + 2, 5, 3)])
    with reading(sqlite_ledger) as connection:
        after = build_snapshot(connection, kept, NOW_MS)
    older = 0.5 ** (1 / 200)
    # 4 calls at risk of the cut turn, first the older one, then the newer.
    for snapshot, own in ((before, (4 * older + 50) / 1), (after, (4 + 50 * older) / older)):
        table = snapshot.lookup("tool_calls", "main").table
        assert table.expected[0] == pytest.approx(lone(own, 1, standard_mean("main")))


def test_requests_per_call_of_a_role_that_has_not_told_is_that_of_all(told):
    paced = [turn(f"p{number}", 8, requests=6) for number in range(5)]
    snapshot = told(
        *paced, turn("a", 4, role="Plan", model="m"), turn("b", 4, role="Plan", model="n")
    )
    for role, model in [("main", None), ("Plan", None), ("Plan", "m"), ("nobody", None)]:
        table = snapshot.lookup("tool_calls", role, model).table
        assert table.requests_per_call == pytest.approx(6 / 8)
    assert snapshot.tables["tool_calls"]["Plan"].requests_per_call is None  # printed: its own alone
    alone = told(turn("c", 4, role="Plan"))
    assert alone.lookup("requests", "nobody").table.requests_per_call == pytest.approx(6 / 8)


def test_a_place_beyond_the_horizon_is_cut_at_it():
    assert within_horizon((3, 9, True)) == (3, 9, True)
    assert within_horizon((0, MAX_CALLS, True)) == (0, MAX_CALLS, True)
    assert within_horizon((5, MAX_CALLS + 1, True)) == (5, MAX_CALLS, False)
    beyond = (MAX_CALLS + 2, MAX_CALLS + 3, False)
    assert within_horizon(beyond) == (MAX_CALLS, MAX_CALLS, False)


TURNS = st.integers(0, 5)
ROLES = ("main", "Plan", "Explore", UNKNOWN_SUBAGENT)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), TURNS, st.sampled_from(["main", "Plan"])),
        st.tuples(st.just("request"), TURNS, st.integers(0, 5)),
        st.tuples(st.just("reach"), TURNS, st.sampled_from(["ended", "cut", "open"])),
        st.tuples(st.just("state"), TURNS, st.integers(0, 30)),
        st.tuples(st.just("role"), TURNS, st.sampled_from(["Explore", "Plan"])),
        st.tuples(st.just("refresh"), TURNS, st.just(None)),
    ),
    max_size=40,
)


def _event(step, number, value, at_ms, name):
    """Odd turns are a sub-agent's, whose role only their parent's log tells, perhaps later."""
    turn_id, agent = f"t{number}", f"a{number}" if number % 2 else None
    if step == "open":
        role = UNKNOWN_SUBAGENT if agent else value
        model = (None, "m", "n")[number % 3]
        return TurnStarted(turn_id, "s", thread_of("s", agent), "test", role, at_ms, model=model)
    if step == "request":
        return RequestMade(
            name, "s", turn_id, None, at_ms, None, Usage(output=1), unnamed_tool_calls=value
        )
    if step == "reach":
        return TurnReached(turn_id, "s", value, None, at_ms)
    if step == "state":
        return TurnReached(turn_id, "s", "ended", None, at_ms, value, value)
    return AgentTold("s", agent or "a1", "test", value, None, at_ms)


def assert_nothing_is_stale(engine, kept):
    anew = Estimates()
    with reading(engine) as connection:
        told = build_snapshot(connection, kept, NOW_MS)
        expected = build_snapshot(connection, anew, NOW_MS)
    assert kept.tables == anew.tables
    assert {key.shelf for key in kept.tables} >= {"fallback"}
    assert kept.stored == anew.stored
    assert told == expected


@settings(deadline=None, max_examples=50)
@given(STEPS)
def test_what_is_kept_up_to_date_equals_what_is_made_anew(steps):
    _follow(steps, None)


@settings(deadline=None, max_examples=40)
@given(STEPS)
def test_turns_whose_time_moved_are_in_order_once_their_role_changes(steps):
    _follow(steps, NOW_MS)


def _follow(steps, now_ms):
    """Record and refresh; without times every refresh is right, with them once all roles moved."""
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(ledger_version).values(id=1, version=0))
    kept = Estimates()
    for number, (step, turn_number, value) in enumerate(steps):
        if step != "refresh":
            at_ms = None if now_ms is None else now_ms + number
            _record(engine, [_event(step, turn_number, value, at_ms, f"r{number}")])
        elif now_ms is None:
            assert_nothing_is_stale(engine, kept)
        else:
            with reading(engine) as connection:
                build_snapshot(connection, kept, NOW_MS)
    for role in ROLES:
        _record(engine, turn(f"last of {role}", 3, role=role, requests=2))
    assert_nothing_is_stale(engine, kept)
    engine.dispose()


def _record(engine, events):
    with writing(engine) as connection:
        record(connection, events)
