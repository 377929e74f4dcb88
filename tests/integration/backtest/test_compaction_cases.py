"""Cases as they are read from a ledger, on both databases, against what was told."""

import pytest

from backtest.compaction_cases import Remaining, compaction_cases
from ledger.database import reading, writing
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.recording import record
from ledger.token_classes import Usage

MINUTE = 60_000
DAY = 1_440 * MINUTE
USUAL = 1_000.0


def turn(turn_id, at_ms, *made, session="s", role="main", end="ended", thread=None, **more):
    """Return a turn's events: requests of (context, read), a minute and a tool call apart."""
    thread = thread or session
    events = [TurnStarted(turn_id, session, thread, "test", role, at_ms, model="m", **more)]
    for number, (context, read) in enumerate(made):
        at = at_ms + number * MINUTE
        name = f"{turn_id}:{number}"
        usage = Usage(uncached=10, cache_read=read, cache_write_5m=context - read - 10)
        calls = ((f"call-{name}", "Bash"),) if number + 1 < len(made) else ()
        events.append(RequestMade(name, session, turn_id, number, at, "m", usage, calls))
    last = at_ms + max(0, len(made) - 1) * MINUTE
    if end != "open":
        events.append(TurnReached(turn_id, session, end, None, last))
    return events


def compaction(name, at_ms, turn_id=None, made=0, *, session="s", strategy="summary", before=None):
    return CompactionMade(
        name,
        session,
        turn_id,
        at_ms,
        "auto",
        strategy,
        context_before=before,
        calls_before=made,
        requests_before=made,
    )


@pytest.fixture
def cases(ledger):
    def read(*told, **options):
        events = []
        for part in told:
            events += part if isinstance(part, list) else [part]
        with writing(ledger) as connection:
            record(connection, events)
        with reading(ledger) as connection:
            return {
                one.compaction_id: one for one in compaction_cases(connection, USUAL, **options)
            }

    return read


LONG = [(100_000, 0), (101_000, 99_000), (41_000, 20_000), (42_000, 40_000), (43_000, 41_000)]


def test_a_compaction_in_mid_turn(cases):
    found = cases(
        turn("t", 0, *LONG),
        compaction("c", MINUTE + 30_000, "t", 2, before=101_500),
        turn("later", 10 * MINUTE, (44_000, 43_000), (45_000, 44_000)),
    )["c"]
    assert found.in_turn == Remaining(2, 3, 2, 3, 0, final=True)
    # The session may go on: nothing is heard of a day later.
    assert found.in_session == Remaining(3, 5, 3, 5, 0, final=False)
    assert (found.context_before, found.context_after) == (101_500, 41_000)
    assert (found.pause_before_seconds, found.pause_seconds) == (30.0, 60.0)
    assert (found.role, found.model, found.turn_id) == ("main", "m", "t")
    assert (found.followed_requests, found.followed_tokens) == (2, 2_000)
    assert found.rework_tokens is None  # fewer than five requests


def test_a_session_is_over_a_day_before_the_logs_end(cases):
    found = cases(
        turn("t", 0, *LONG),
        compaction("c", MINUTE + 30_000, "t", 2),
        turn("other", 2 * DAY, (5_000, 0), session="elsewhere"),
    )["c"]
    assert found.in_session == Remaining(2, 3, 2, 3, 0, final=True)


@pytest.mark.parametrize(("end", "final"), [("ended", True), ("cut", False), ("open", False)])
def test_only_a_turn_that_ended_is_final(cases, end, final):
    found = cases(turn("t", 0, *LONG, end=end), compaction("c", MINUTE + 30_000, "t", 2))["c"]
    assert found.in_turn.final is final


def test_savings_count_up_to_the_next_summary(cases):
    found = cases(
        turn("t", 0, *LONG, (43_500, 43_000), end="cut"),
        compaction("first", MINUTE + 30_000, "t", 2),
        compaction("clear", 2 * MINUTE + 30_000, "t", 3, strategy="clear"),
        compaction("second", 3 * MINUTE + 30_000, "t", 4),
    )
    # Four requests remained, of a cut turn; two came before the next summary, and that is final.
    assert found["first"].in_turn == Remaining(3, 4, 2, 2, 0, final=True)
    assert found["clear"].in_turn == Remaining(2, 3, 1, 1, 0, final=True)
    assert found["second"].in_turn == Remaining(1, 2, 1, 2, 0, final=False)
    # Of a clear, the request before tells X.
    assert found["clear"].context_before == 41_000


def test_a_compaction_between_turns_counts_in_the_one_that_follows(cases):
    found = cases(
        turn("t", 0, (100_000, 0), (101_000, 99_000)),
        compaction("c", 5 * MINUTE, before=101_200),
        turn("next", 8 * MINUTE, (41_000, 20_000), (42_000, 41_000), end="cut"),
        turn("last", 20 * MINUTE, (43_000, 42_000)),
    )["c"]
    assert found.between_turns
    assert found.turn_id == "next"
    assert found.in_turn == Remaining(1, 2, 1, 2, 0, final=False)
    assert found.in_session == Remaining(1, 3, 1, 3, 0, final=False)
    assert (found.pause_before_seconds, found.pause_seconds) == (240.0, 420.0)


def test_a_session_that_was_never_resumed(cases):
    found = cases(
        turn("t", 0, (100_000, 0)),
        compaction("c", 5 * MINUTE),
        turn("other", 3 * DAY, (5_000, 0), session="elsewhere"),
    )["c"]
    assert found.in_turn == Remaining(0, 0, 0, 0, 0, final=True)
    assert (found.first, found.context_after, found.turn_id) == (None, None, None)
    assert found.context_before == 100_000


def test_requests_that_missed_the_cache_are_counted(cases):
    found = cases(
        turn("t", 0, (100_000, 0), (41_000, 20_000), (42_000, 9_000), (43_000, 42_000)),
        compaction("c", 30_000, "t", 1),
    )["c"]
    assert found.in_turn.missed == 1


def test_the_compaction_of_a_fork_belongs_to_the_forks_own_turn(cases):
    found = cases(
        turn("t", 0, (100_000, 0), end="open"),
        # The fork tells of the same prompt, and goes on with it in a session of its own.
        RequestMade(
            "f:1", "fork", "t", 1, 3 * MINUTE, "m", Usage(uncached=10, cache_write_5m=39_990)
        ),
        compaction("c", 2 * MINUTE, "t", 0, session="fork", before=101_000),
    )["c"]
    assert found.turn_id == "t@fork"
    assert found.in_turn.requests == 1
    assert (found.context_before, found.context_after) == (101_000, 40_000)


def test_a_sub_agents_run_is_a_line_of_its_own(cases):
    found = cases(
        turn("main", 0, (50_000, 0), (51_000, 50_000)),
        turn(
            "sub",
            MINUTE,
            *((90_000, 0), (30_000, 20_000), (31_000, 30_000)),
            role="triage",
            thread="s/agent",
            parent_turn_id="main",
        ),
        compaction("c", MINUTE + 30_000, "sub", 1, before=90_100),
    )["c"]
    assert found.role == "triage"
    assert found.in_turn == found.in_session == Remaining(1, 2, 1, 2, 0, final=True)


def test_each_call_for_a_summary_is_given_to_one_compaction(cases):
    def summary(name, at_ms, output):
        usage = Usage(uncached=5, cache_read=90_000, cache_write_1h=1_000, output=output)
        return RequestMade(name, "s", None, None, at_ms, "m", usage, kind="compaction")

    found = cases(
        turn("t", 0, *LONG, (101_000, 100_000), (41_000, 20_000)),
        compaction("first", MINUTE + 30_000, "t", 2),
        compaction("second", 5 * MINUTE + 30_000, "t", 6),
        summary("a", MINUTE + 20_000, 3_000),
        summary("b", 5 * MINUTE + 20_000, 8),
    )
    assert found["first"].call.output == 3_000
    assert (found["first"].call.cache_read, found["first"].call.written_1h) == (90_000, 1_000)
    # What had been written when the answer began to stream is no summary.
    assert found["second"].call.output is None


def test_rework_is_growth_beyond_that_of_other_requests(cases):
    usual = [(10_000 + 700 * number, 9_000) for number in range(20)]
    found = cases(
        turn("before", 0, *usual),
        turn("t", 60 * MINUTE, (100_000, 0), *((40_000 + 3_000 * k, 39_000) for k in range(7))),
        compaction("c", 60 * MINUTE + 30_000, "t", 1),
    )["c"]
    assert (found.followed_requests, found.followed_tokens) == (6, 18_000)
    assert found.rework_tokens == pytest.approx(18_000 - 6 * 700)


def test_tables_that_tell_of_no_requests_still_count(cases):
    reached = TurnReached("t", "s", "ended", None, 9 * MINUTE, tool_calls=12, requests=10)
    told = CompactionMade(
        "c", "s", "t", MINUTE, "auto", "summary", 150_000, 50_000, calls_before=4, requests_before=3
    )
    found = cases(turn("t", 0, end="open"), reached, told)["c"]
    assert found.in_turn == Remaining(8, 7, 8, 7, 0, final=True)
    assert (found.context_before, found.context_after, found.first) == (150_000, 50_000, None)


def test_what_tells_neither_turn_nor_time_is_not_lost(cases):
    found = cases(turn("t", 0, *LONG), compaction("c", None, before=90_000))["c"]
    assert found.in_turn == Remaining(0, 0, 0, 0, 0, final=False)


def test_projects_end_with_their_own_logs(cases):
    """Logs of another project go on; those of this one stop right behind the session."""
    told = (
        turn("t", 0, *LONG, role="shop/main"),
        compaction("c", MINUTE + 30_000, "t", 2),
        turn("other", 9 * DAY, (5_000, 0), session="x", role="stock/main"),
    )
    found = cases(*told, by_project=True)["c"]
    assert (found.project, found.role) == ("shop", "main")
    assert not found.in_session.final
    assert cases(by_project=False)["c"].in_session.final


def test_an_empty_ledger_has_no_cases(cases):
    assert cases() == {}
