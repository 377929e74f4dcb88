"""Learned parameters: the chain of levels by hand; what is kept up to date is made anew."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, insert, select

from api import learning
from api.estimates import Estimates, build_snapshot
from api.learning import Learning
from ledger.database import reading, writing
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.recent import recent_turns
from ledger.recording import record
from ledger.schema import ledger_version, metadata, turns
from ledger.token_classes import Usage
from ledger.versions import current_version
from policy.parameters import ASSUMED, Parameter
from policy.snapshot import TableKey

NOW_MS = 1_800_000_000_000
MINUTE = 60_000
DAY = 86_400_000


def turn(turn_id, at_ms, *contexts, session="s", role="main", model="m", end="ended"):
    """Return a turn's events: a request a minute, each reading all of the one before."""
    events = [TurnStarted(turn_id, session, session, "test", role, at_ms, model=model)]
    before = 0
    for number, context in enumerate(contexts):
        usage = Usage(uncached=10, cache_read=min(before, context - 10))
        usage = Usage(10, usage.cache_read, context - 10 - usage.cache_read)
        at = at_ms + number * MINUTE
        events.append(
            RequestMade(f"{turn_id}:{number}", session, turn_id, number, at, model, usage)
        )
        before = context
    last = at_ms + max(0, len(contexts) - 1) * MINUTE
    return [*events, TurnReached(turn_id, session, end, None, last)]


def compacted_turn(name, *, role="main", opening=42_000, after=50_000, read=28_000, model="m"):
    """Return a session of one turn, compacted before its second request."""
    session = f"session {name}"
    events = turn(name, NOW_MS, opening, role=role, session=session, model=model, end="open")
    first = Usage(uncached=10, cache_read=read, cache_write_5m=after - read - 10)
    at_ms = NOW_MS + MINUTE
    return [
        *events,
        CompactionMade(name, session, name, at_ms, "auto", "summary", 150_000, None, 0, 1),
        RequestMade(f"{name}:1", session, name, 1, at_ms, model, first),
        TurnReached(name, session, "ended", None, at_ms),
    ]


@pytest.fixture
def learned(sqlite_ledger):
    """Record events, and return the snapshot of all that the ledger has."""

    def tell(*parts):
        with writing(sqlite_ledger) as connection:
            record(connection, [event for part in parts for event in part])
        with reading(sqlite_ledger) as connection:
            return build_snapshot(connection, Estimates(), NOW_MS)

    return tell


def numbers(parameter):
    return (parameter.value, parameter.source, parameter.observations)


def test_an_empty_ledger_assumes_everything(learned):
    snapshot = learned()
    assert snapshot.parameters == {}
    assert snapshot.parameters_of("main", "claude-opus-5") == ASSUMED
    assert ASSUMED.source == "assumed"


def test_a_first_compaction_is_believed_by_half(learned):
    """All roles: X′ exceeds the first context by 14k, z = 1/2 toward the assumed 9k: 11.5k.

    P of all roles is ⅔·42k, and the assumed 28k are the same. The role then has its own 56k at
    z = 1/2: (56 + 42 + 11.5)/2.
    """
    known = learned(compacted_turn("a", after=56_000)).parameters_of("main").compaction()
    assert known.context_after_tokens == Parameter(
        pytest.approx(54_750), "role", 1, 0.5, 56_000, 56_000, 56_000
    )
    # p′ is the same bytes again, and is believed at once: z = 1/1.1; it is what is assumed here.
    assert numbers(known.cached_after_tokens) == (pytest.approx(28_000), "role", 1)
    assert known.cached_after_tokens.credibility == pytest.approx(1 / 1.1)


def test_a_role_without_a_compaction_borrows_what_others_add_to_its_own_first_context(learned):
    """An agent that begins at 20k: all sessions of its kind, and none of its own compactions."""
    made = [compacted_turn(f"c{n}", after=52_000) for n in range(3)]
    scouts = [turn(f"e{n}", NOW_MS, 20_000, 21_000, role="scout", session=f"e{n} s") for n in "ab"]
    known = learned(*made, *scouts).parameters_of("scout")
    # Kind: two sessions at z = 2/2.1 toward all roles; the role itself the same toward its kind.
    all_first = (2 / 2.1 * 20_000 + 3 / 3.1 * 42_000) / (2 / 2.1 + 3 / 3.1)
    all_first = 5 / 5.1 * all_first + 0.1 / 5.1 * 42_000
    z = 2 / 2.1
    first = z * 20_000 + (1 - z) * (z * 20_000 + (1 - z) * all_first)
    assert numbers(known.prefix_tokens) == (pytest.approx(first * 2 / 3), "role", 2)
    # Three compactions left 10k more than the first context, at z = 3/4 toward the assumed 9k.
    found = known.compaction().context_after_tokens
    assert numbers(found) == (pytest.approx(first + 0.75 * 10_000 + 0.25 * 9_000), "all_roles", 3)


def test_a_model_borrows_from_its_role(learned):
    made = [compacted_turn(f"a{n}", after=40_000, model="old") for n in range(4)]
    snapshot = learned(*made, compacted_turn("b", after=60_000, model="new"))
    role = snapshot.parameters_of("main").compaction().context_after_tokens
    assert (role.source, role.observations, role.median) == ("role", 5, 40_000)
    new = snapshot.parameters_of("main", "new").compaction().context_after_tokens
    assert (new.source, new.observations) == ("model", 1)
    assert new.value == pytest.approx((60_000 + role.value) / 2)
    # Of a model that nobody has seen, the role tells.
    assert snapshot.parameters_of("main", "other") is snapshot.parameters_of("main")
    # How people pause does not depend on the model.
    assert snapshot.parameters_of("main", "new").pauses == snapshot.parameters_of("main").pauses


def test_growth_is_a_mean_and_knows_the_first_request(learned):
    """Steps of 100, 200 and 900 in turns, 600 into the second turn."""
    known = learned(
        turn("a", NOW_MS, 10_000, 10_100, 10_300), turn("b", NOW_MS + 9 * MINUTE, 10_900, 11_800)
    ).parameters_of("main")
    # One role alone: all roles and its kind say the same, each at z = 3/13.
    z, left = 3 / 13, (10 / 13) ** 3
    assert known.growth_tokens.credibility == pytest.approx(z)
    assert known.growth_tokens.value == pytest.approx(400 * (1 - left) + 1100 * left)
    assert known.growth_tokens.median == 200
    left = (3 / 4) ** 3
    assert known.first_growth_tokens.value == pytest.approx(600 * (1 - left) + 1100 * left)


def test_pauses_by_hand(learned):
    """Three turns of one session, 2 and 10 minutes apart; then a session of two days later.

    The first session has rested for more than a day and is over: of 3 turns 2 went on. The last
    turn ends the log, and asks nothing.
    """
    known = learned(
        turn("a", NOW_MS, 9000),
        turn("b", NOW_MS + 2 * MINUTE, 9100),
        turn("c", NOW_MS + 12 * MINUTE, 9200, 9300),
        turn("d", NOW_MS + 2 * DAY, 9000, session="other"),
    ).parameters_of("main")
    # Cut at once, the last turn is not at risk: 2 of 3, at z = 3/6 for the role and its kind.
    left = (3 / 6) ** 2
    assert numbers(known.resume_probability) == (pytest.approx(2 / 3 * (1 - left)), "role", 3)
    assert known.gap_seconds.median == 360
    assert dict(known.pauses)[60.0] == 1.0
    assert dict(known.pauses)[300.0] == pytest.approx(0.5)
    assert dict(known.pauses)[600.0] == 0.0
    # After a: 1 + 2 further requests; after b: 2; after c: none. Of the other nobody knows.
    left = (1 / 4) ** 2
    assert numbers(known.requests_after_turn) == (pytest.approx(5 / 3 * (1 - left)), "role", 3)


def test_an_open_turn_has_no_pause(learned):
    known = learned(
        turn("a", NOW_MS, 9000), turn("b", NOW_MS + 2 * DAY, 9100, session="o", end="open")
    ).parameters_of("main")
    assert numbers(known.resume_probability) == (0.0, "role", 1)
    assert known.gap_seconds.source == "assumed"


def test_sub_agents_do_not_learn_from_people_who_pause(learned):
    snapshot = learned(turn("a", NOW_MS, 9000), turn("b", NOW_MS + MINUTE, 9100))
    assert snapshot.parameters_of("main").gap_seconds.source == "role"
    assert snapshot.parameters_of("shop/main").gap_seconds.source == "all_roles"
    assert snapshot.parameters_of("scout").gap_seconds.source == "assumed"
    assert snapshot.parameters_of("scout").growth_tokens == ASSUMED.growth_tokens


def test_clearing_stands_alone(learned):
    """Nobody assumes what a clear leaves; without a call of its own, it writes nothing."""
    events = compacted_turn("a", after=109_000)
    events[-3] = CompactionMade(
        "a", "session a", "a", NOW_MS + MINUTE, "auto", "clear", 150_000, None, 0, 1
    )
    known = learned(events).parameters_of("main")
    cleared = known.compaction("clear")
    assert numbers(cleared.context_after_tokens) == (pytest.approx(109_000), "role", 1)
    assert numbers(cleared.summary_output_tokens) == (0.0, "assumed", 0)
    assert known.compaction().context_after_tokens.source == "assumed"
    assert known.compaction("unheard of") == known.compaction()


def test_rework_is_growth_beyond_the_usual(learned):
    """Steps of 1,000 before; of 3,000 in the five requests after: 10,000 more than usual."""
    contexts = [*range(40_000, 50_000, 1000), *range(30_000, 48_000, 3000)]
    events = turn("t", NOW_MS, *contexts)
    at_ms = NOW_MS + 10 * MINUTE
    events.append(CompactionMade("c", "s", "t", at_ms, None, "summary", 90_000, None, 0, 10))
    known = learned(events).parameters_of("main")
    usual = (9 * 1000 + 5 * 3000) / 14
    rework = known.compaction().rework_tokens
    assert rework.median == pytest.approx(15_000 - 5 * usual)
    assert rework.credibility == pytest.approx(1 / 11)


def test_rework_is_never_negative(learned):
    contexts = [*range(40_000, 50_000, 1000), *range(30_000, 30_060, 10)]
    events = turn("t", NOW_MS, *contexts)
    at_ms = NOW_MS + 10 * MINUTE
    events.append(CompactionMade("c", "s", "t", at_ms, None, "summary", 90_000, None, 0, 10))
    rework = learned(events).parameters_of("main").compaction().rework_tokens
    assert rework.median < 0
    assert rework.value == 0.0


def calls(outputs):
    parts = []
    for number, output in enumerate(outputs):
        usage = Usage(3, 150_000 + number, 500, output=output)
        session = f"session c{number}"
        call = RequestMade(f"s{number}", session, None, None, NOW_MS, "m", usage, kind="compaction")
        parts += [compacted_turn(f"c{number}"), [call]]
    return parts


def test_the_calls_own_usage_is_told_from_three_on(learned):
    assert learned(*calls([3, 3])).parameters_of("main").compaction().observed_call is None
    known = learned(*calls([3, 3, 3])).parameters_of("main").compaction()
    assert known.summary_output_tokens == ASSUMED.compaction().summary_output_tokens
    # An output of three tokens is no summary: the assumed one stands in for it.
    assert known.observed_call == {
        "read_tokens": 150_001,
        "uncached_tokens": 3,
        "written_5m_tokens": 500,
        "written_1h_tokens": 0,
        "output_tokens": 5000,
    }


def test_a_believed_summary_is_learned(learned):
    known = learned(*calls([2000, 3000, 4000])).parameters_of("main").compaction()
    output = known.summary_output_tokens
    assert (output.source, output.observations, output.median) == ("role", 3, 3000)
    # All roles and the role: 3/4 twice toward the assumed 5,000.
    assert output.value == pytest.approx(3000 + 2000 / 16)
    assert known.observed_call["output_tokens"] == output.value


def test_only_the_latest_turns_are_read(learned, monkeypatch):
    monkeypatch.setattr(learning, "LEARNED_TURNS", 3)
    monkeypatch.setattr("api.estimates.LEARNED_TURNS", 3)
    several = [
        turn(f"t{n}", NOW_MS + n * DAY, 9000, 9000 + (5000 if n < 5 else 100), session=f"s{n}")
        for n in range(8)
    ]
    known = learned(*several).parameters_of("main")
    assert (known.growth_tokens.observations, known.growth_tokens.median) == (3, 100)


def test_learning_moves_the_content_hash(learned):
    before = learned(turn("a", NOW_MS, 9000, 9100)).content_hash
    after = learned(
        [CompactionMade("c", "s", "a", NOW_MS, None, "summary", 9000, 5000, 0, 2)]
    ).content_hash
    assert before != after


def test_a_compaction_told_late_moves_what_its_turn_teaches(sqlite_ledger):
    """The step of 9,000 lies over a compaction that is told when the turn has been read."""
    kept = Learning()
    made = CompactionMade("c", "s", "t", NOW_MS + MINUTE, None, "clear", 20_000, None, 0, 1)
    for events, growths in (
        (turn("t", NOW_MS, 11_000, 20_000, 20_100), 2),
        ([made], 1),
        ([replace(made, requests_before=2)], 1),
        ([replace(made, turn_id=None, requests_before=0)], 2),
    ):
        with writing(sqlite_ledger) as connection:
            record(connection, events)
        with reading(sqlite_ledger) as connection:
            known = kept.follow(connection, {"main": recent_turns(connection, "main", 9)})
        growth = known[TableKey("parameters", "", "main")].growth_tokens
        assert growth.observations == growths


_ROLES = st.sampled_from(["main", "scout"])
_MODELS = st.sampled_from(["m", "n"])
_TURNS = st.tuples(
    st.just("turn"),
    st.integers(0, 4),  # session
    st.integers(0, 9),  # turn of the session
    _ROLES,
    _MODELS,
    st.lists(st.integers(1000, 60_000), max_size=4),
    st.sampled_from(["ended", "cut", "open"]),
)
_COMPACTIONS = st.tuples(
    st.just("compaction"),
    st.integers(0, 4),
    st.one_of(st.none(), st.integers(0, 9)),
    st.integers(0, 3),  # requests before
    st.sampled_from(["summary", "clear"]),
    st.one_of(st.none(), st.integers(1000, 60_000)),
    st.booleans(),  # with a call of its own
)


def events_of(part):
    kind, session_number, number, *rest = part
    session = f"s{session_number}"
    turn_id = f"{session}-{number}"
    at_ms = NOW_MS + (number or 0) * 20 * MINUTE
    if kind == "turn":
        role, model, contexts, end = rest
        role = "main" if session_number < 3 else role
        return turn(turn_id, at_ms, *contexts, session=session, role=role, model=model, end=end)
    before, strategy, after, called = rest
    of_turn = None if number is None else turn_id
    name = f"c-{turn_id}-{before}"
    made = CompactionMade(
        name, session, of_turn, at_ms + before * MINUTE, None, strategy, 90_000, after, 0, before
    )
    usage = Usage(3, 9000, output=900)
    call = RequestMade(f"r-{name}", session, None, None, at_ms, "m", usage, kind="compaction")
    return [made, call] if called else [made]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.one_of(_TURNS, _COMPACTIONS), max_size=4), max_size=5))
def test_what_is_kept_up_to_date_is_what_is_made_anew(tellings):
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(insert(ledger_version).values(id=1, version=0))
        kept = Learning()
        for telling in tellings:
            version = current_version(connection)
            record(connection, [event for part in telling for event in events_of(part)])
            if current_version(connection) != version:
                kept.follow(connection, latest_of(connection))
        fresh = Learning().follow(connection, latest_of(connection))
    assert kept.parameters == fresh
    engine.dispose()


def latest_of(connection):
    roles = connection.scalars(select(turns.c.role).distinct()).all()
    return {role: recent_turns(connection, role, 200) for role in roles}
