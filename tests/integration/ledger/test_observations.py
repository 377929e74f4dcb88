"""What is read of turns and compactions, on both databases, against what was told."""

import pytest

from ledger.compaction_observations import (
    CompactionSeen,
    SummaryUsage,
    compactions_seen,
    latest_compactions,
)
from ledger.database import reading, writing
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.observations import TurnSeen, turns_seen
from ledger.recording import record
from ledger.token_classes import Usage
from ledger.versions import current_version

MINUTE = 60_000


def turn(turn_id, at_ms, *made, session="s", role="main", end="ended", **more):
    """Return a turn's events; each request is (context, read) a minute after the last."""
    events = [TurnStarted(turn_id, session, session, "test", role, at_ms, model="m", **more)]
    for number, (context, read) in enumerate(made):
        at = at_ms + number * MINUTE
        usage = Usage(uncached=10, cache_read=read, cache_write_5m=context - read - 10)
        events.append(RequestMade(f"{turn_id}:{number}", session, turn_id, number, at, "m", usage))
    last = at_ms + max(0, len(made) - 1) * MINUTE
    return [*events, TurnReached(turn_id, session, end, None, last)]


def compaction(name, at_ms, *, turn_id="t", requests_before=0, session="s", **more):
    return CompactionMade(
        name, session, turn_id, at_ms, "auto", requests_before=requests_before, **more
    )


def summary(name, at_ms, output, session="s", **tokens):
    usage = Usage(output=output, **tokens)
    return RequestMade(name, session, None, None, at_ms, "m", usage, kind="compaction")


@pytest.fixture
def tell(ledger):
    def write(*told):
        events = []
        for part in told:
            events += part if isinstance(part, list) else [part]
        with writing(ledger) as connection:
            record(connection, events)

    return write


@pytest.fixture
def seen(ledger):
    def read(*turn_ids):
        with reading(ledger) as connection:
            return turns_seen(connection, turn_ids)

    return read


@pytest.fixture
def compacted(ledger):
    def read(limit=500):
        with reading(ledger) as connection:
            return compactions_seen(connection, latest_compactions(connection, limit))

    return read


def test_a_turn_by_hand(tell, seen):
    tell(turn("t", 0, (1000, 0), (1500, 900), (1800, 1490)))
    assert seen("t", "nobody") == {
        "t": TurnSeen(
            session_id="s",
            thread_id="s",
            model="m",
            started_ms=0,
            last_ms=2 * MINUTE,
            requests=3,
            opens_session=True,
            first_context=1000,
            last_context=1800,
            first_model="m",
            last_model="m",
            growths=(500, 300),
            cached_steps=2,
            misses=0,
        )
    }


def test_nobody_asked_for(seen, compacted):
    assert seen() == {}
    assert compacted() == {}


def test_only_the_first_turn_opens_its_session(tell, seen):
    tell(turn("a", 0, (1000, 0)), turn("b", 9 * MINUTE, (1300, 900)), turn("c", 0, session="o"))
    told = seen("a", "b", "c")
    assert {key: one.opens_session for key, one in told.items()} == {"a": 1, "b": 0, "c": 1}
    assert told["c"].first_context is None


def test_a_read_of_less_than_half_the_context_before_is_a_miss(tell, seen):
    tell(turn("t", 0, (1000, 0), (1100, 499), (1200, 550)))
    one = seen("t")["t"]
    assert (one.cached_steps, one.misses) == (2, 1)


def test_a_slow_tool_makes_a_miss_and_nothing_is_expected_where_nothing_was_cached(tell, seen):
    late = turn("late", 0, (1000, 0), (1100, 0))
    late[2] = RequestMade("late:1", "s", "late", 1, 6 * MINUTE, "m", Usage(uncached=1100))
    bare = [TurnStarted("bare", "o", "o", "test", "main", 0, model="m")]
    for number in range(2):
        usage = Usage(uncached=1000 + number)
        bare.append(RequestMade(f"b{number}", "o", "bare", number, number, "m", usage))
    hour = [TurnStarted("hour", "h", "h", "test", "main", 0, model="m")]
    for number, read in enumerate((0, 0)):
        usage = Usage(uncached=10, cache_read=read, cache_write_1h=990)
        at_ms = number * 30 * MINUTE
        hour.append(RequestMade(f"h{number}", "h", "hour", number, at_ms, "m", usage))
    tell(late, bare, hour)
    told = seen("late", "bare", "hour")
    assert {key: (one.cached_steps, one.misses) for key, one in told.items()} == {
        "late": (1, 1),
        "bare": (0, 0),
        "hour": (1, 1),
    }


def test_compactions_falls_and_other_models_are_no_growth(tell, seen):
    events = turn("t", 0, (1000, 0), (700, 600), (800, 690), (950, 790), (990, 940), (1050, 980))
    events[5] = RequestMade("t:4", "s", "t", 4, 4 * MINUTE, "other", Usage(uncached=990))
    # The fall at 1 was told by nobody, a compaction at 3 is told though the context grew.
    tell(events, compaction("c", 2 * MINUTE, requests_before=3, context_before=800))
    assert seen("t")["t"].growths == (100,)


def test_a_session_nobody_told_and_an_agent_on_its_parents_session_tell_no_pauses(tell, seen):
    tell(
        turn("alone", 0, (1000, 0), session="alone"),
        turn("main", 0, (1000, 0)),
        turn("agent", MINUTE, (500, 0), role="Explore", parent_turn_id="main"),
    )
    told = seen("alone", "main", "agent")
    assert {key: one.thread_id for key, one in told.items()} == {
        "alone": None,
        "main": "s",
        "agent": None,
    }
    assert told["agent"].opens_session


def test_of_a_long_turn_the_latest_requests_are_read(tell, seen):
    tell(turn("t", 0, *((1000 + 7 * number, 990) for number in range(250))))
    one = seen("t")["t"]
    assert one.growths == (7,) * 199
    assert (one.first_context, one.last_context, one.requests) == (None, 1000 + 7 * 249, 250)


def test_a_compaction_inside_a_turn_by_hand(tell, compacted):
    made = [(100_000, 0), (101_000, 99_000), (30_000, 20_000), (34_000, 29_000), (35_000, 33_000)]
    tell(
        turn("t", 0, *made),
        summary("sum", 2 * MINUTE - 1, 4000, uncached=3, cache_read=100_000, cache_write_5m=500),
        compaction("c", 2 * MINUTE, requests_before=2, context_before=101_500),
    )
    assert compacted() == {
        "c": CompactionSeen(
            turn_id="t",
            role="main",
            model="m",
            strategy="summary",
            opening_context=100_000,
            context_before=101_500,
            context_after=30_000,
            cached_after=20_000,
            uncached_after=10,
            followed_requests=2,
            followed_tokens=5000,
            call=SummaryUsage(100_000, 3, 500, 0, 4000),
        )
    }


def test_a_compaction_between_turns_is_followed_by_the_next_one(tell, compacted):
    tell(
        turn("before", 0, (90_000, 0)),
        compaction("c", 5 * MINUTE, turn_id=None, context_before=90_000),
        turn("after", 9 * MINUTE, (31_000, 20_000), (32_000, 30_000)),
        turn("later", 30 * MINUTE, (33_000, 30_000)),
    )
    one = compacted()["c"]
    assert (one.turn_id, one.context_after, one.cached_after) == ("after", 31_000, 20_000)
    assert (one.opening_context, one.followed_requests, one.followed_tokens) == (90_000, 1, 1000)


def test_nothing_is_told_of_a_compaction_that_nothing_followed(tell, compacted):
    tell(
        turn("t", 0, (90_000, 0)),
        compaction("c", 5 * MINUTE, turn_id=None, context_before=90_000),
        compaction("d", 5 * MINUTE, requests_before=1, context_before=90_000),
    )
    told = compacted()
    assert set(told) == {"d"}
    assert (told["d"].context_after, told["d"].cached_after) == (None, None)


def test_copies_of_messages_from_before_are_not_what_it_left(tell, compacted):
    """Some logs write the preserved messages again behind the boundary."""
    tell(
        turn("t", 0, (90_000, 0), (91_000, 89_000), (31_000, 20_000)),
        compaction("c", MINUTE + 1, requests_before=1, context_before=91_000),
    )
    assert compacted()["c"].context_after == 31_000


def test_the_next_ten_requests_are_followed_until_the_context_falls(tell, compacted):
    grown = [(30_000 + 100 * number, 29_000) for number in range(14)]
    fallen = [*grown[:4], (10_000, 9000), *grown[5:]]
    tell(
        turn("long", 0, *grown),
        turn("short", 0, *fallen, session="o"),
        compaction("a", 0, turn_id="long", context_before=90_000),
        compaction("b", 0, turn_id="short", session="o", context_before=90_000),
    )
    told = compacted()
    assert (told["a"].followed_requests, told["a"].followed_tokens) == (10, 1000)
    assert (told["b"].followed_requests, told["b"].followed_tokens) == (3, 300)


@pytest.mark.parametrize(
    ("output", "believed"),
    [(3, None), (199, None), (399, None), (400, 400), (5000, 5000)],
)
def test_a_summary_of_a_few_tokens_is_not_believed(tell, compacted, output, believed):
    """The next request reads 20,000 tokens anew: a fiftieth of them is 400."""
    tell(
        turn("t", 0, (90_000, 0), (30_000, 10_000)),
        summary("sum", MINUTE, output, cache_read=90_000),
        compaction("c", MINUTE, requests_before=1, context_before=90_000),
    )
    assert compacted()["c"].call.output_tokens == believed


def test_the_nearest_call_of_the_session_is_a_compactions_own(tell, compacted):
    tell(
        turn("t", 0, *[(90_000, 0)] * 30),
        summary("far", 0, 1000),
        summary("near", 19 * MINUTE, 2000),
        summary("elsewhere", 20 * MINUTE, 3000, session="o"),
        compaction("c", 20 * MINUTE, requests_before=21, context_before=90_000),
        compaction("d", 29 * MINUTE + 1, requests_before=30, context_before=90_000),
    )
    told = compacted()
    assert told["c"].call.output_tokens == 2000
    assert told["d"].call is None


def test_the_latest_compactions_come_first_and_no_more_than_asked_for(tell, ledger):
    tell(
        turn("t", 0, (90_000, 0)),
        *(compaction(f"c{at}", at, context_before=1) for at in (3, 9, 5)),
        CompactionMade("untimed", "s", "t", None, None, context_before=1),
    )
    with reading(ledger) as connection:
        assert [row.at_ms for row in latest_compactions(connection, 2)] == [9, 5]
        assert len(latest_compactions(connection, 9)) == 3


@pytest.fixture
def version(ledger):
    def read():
        with reading(ledger) as connection:
            return current_version(connection)

    return read


def test_a_compaction_and_its_call_move_the_version_once(tell, version):
    tell(turn("t", 0, (90_000, 0)))
    made = compaction("c", MINUTE, requests_before=1, context_before=90_000)
    seen_after = compaction(
        "c", MINUTE, requests_before=1, context_before=90_000, context_after=30_000
    )
    for news in (made, summary("sum", MINUTE, 4000), seen_after):
        before = version()
        tell(news)
        assert version() == before + 1
        tell(news)
        assert version() == before + 1
    tell(made)
    assert version() == before + 1


def test_a_compaction_told_by_another_session_moves_nothing(tell, version):
    tell(turn("t", 0, (9000, 0)), compaction("c", MINUTE, requests_before=1, context_before=9000))
    before = version()
    tell(compaction("c", MINUTE, turn_id=None, session="fork", context_before=9000))
    assert version() == before
