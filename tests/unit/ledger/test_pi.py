"""Pi and Oh My Pi: turns, retries, steering, compactions, sub-agents that yield."""

import json

import pytest

from ledger.events import CompactionMade
from ledger.readers.pi import PiReader
from ledger.usage import Usage
from tests.unit.ledger.pi_session import PiSession, used
from tests.unit.ledger.rollout import START_MS
from tests.unit.ledger.told import Told

LOG = "/logs/2026-07-01T12-00-00-000Z_s1.jsonl"


def read_on(lines, saved=None, **options):
    """Feed lines, and return what was told, the reader, and where it stands."""
    reader = PiReader(LOG, (saved or {}).get, continued=saved is not None, **options)
    for line in getattr(lines, "lines", lines):
        reader.feed(json.loads(json.dumps(line)))
    states = reader.flush()
    return Told(reader.events), reader, states


def read(lines, **options):
    return read_on(lines, **options)[0]


@pytest.fixture
def log():
    return PiSession().header()


def test_a_turn_of_two_requests(log):
    log.user("u1").answer("c1", "c2", entry="a1").result("c1", "c2")
    log.answer(usage=used(50, 900, 0, 10, 0))
    told = read(log)
    turn_id = f"u1-{START_MS + 1_000}"
    assert told.turns == {turn_id: ("main", "ended", "final_text", 2, 2)}
    first, second = told.requests.values()
    # The input does not include the cache, and the output includes the reasoning.
    assert first.usage == Usage(100, 700, cache_write_other=200, output=90, reasoning=30)
    assert second.usage == Usage(50, 900, output=10)
    assert first.request_id == f"a1-{START_MS + 2_000}"
    assert first.tool_calls == (("c1", "bash"), ("c2", "bash"))
    started = told.started[turn_id]
    assert (started.session_id, started.model, started.provider) == ("s1", "m-1", "p-1")


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("stop", ("ended", "final_text")),
        ("toolUse", ("open", "in_flight")),
        ("length", ("cut", "length")),
        ("aborted", ("cut", "interrupted")),
        ("error", ("cut", "api_error")),
    ],
)
def test_how_a_turn_ends(log, stop, expected):
    log.user().answer("c1").result("c1").answer(stop=stop)
    assert read(log).only_turn == ("main", *expected, 2, 1)


def test_errors_that_are_retried_are_no_requests(log):
    log.user().failed().failed().answer("c1").result("c1").failed().failed().answer()
    assert read(log).only_turn == ("main", "ended", "final_text", 2, 1)


def test_an_error_at_the_end_cuts_the_turn_until_it_is_retried(log):
    log.user().answer("c1").result("c1").failed()
    assert read(log).only_turn[1:3] == ("cut", "api_error")
    log.answer("c2")
    assert read(log).only_turn[1:3] == ("open", "in_flight")


def test_an_error_and_nothing_else_is_no_turn(log):
    assert read(log.user().failed()).events == []


def test_a_call_of_an_aborted_answer_was_asked_for_all_the_same(log):
    log.user().answer("c1").result("c1").failed("aborted", "c2").result("c2").answer()
    assert read(log).only_turn == ("main", "ended", "final_text", 2, 2)


def test_a_prompt_cuts_the_turn_in_flight(log):
    log.user().answer("c1").user()
    assert [turn[1:3] for turn in read(log).turns.values()] == [("cut", "superseded")]
    log.answer()
    assert [turn[1:3] for turn in read(log).turns.values()] == [
        ("cut", "superseded"),
        ("ended", "final_text"),
    ]


def test_steering_is_no_turn_while_the_agent_works(log):
    log.user().answer("c1").result("c1").user(steering=True).answer("c2").result("c2").answer()
    assert read(log).only_turn == ("main", "ended", "final_text", 3, 2)


def test_steering_behind_an_interruption_begins_a_turn(log):
    log.user().answer("c1").result("c1").failed("aborted").user(steering=True).answer()
    assert [turn[1:3] for turn in read(log).turns.values()] == [
        ("cut", "interrupted"),
        ("ended", "final_text"),
    ]


def test_reminders_shell_lines_and_custom_entries_are_no_turns(log):
    log.user().answer("c1").result("c1").message("developer").line("custom", customType="x")
    log.message("bashExecution").line("custom_message").line("branch_summary").answer()
    told, reader, _ = read_on(log)
    assert told.only_turn == ("main", "ended", "final_text", 2, 1)
    assert reader.unknown_types == {}


def test_a_sub_agent_ends_with_the_tool_that_hands_back(log):
    log.line("session_init", agent="scout").user().answer("c1").result("c1")
    log.answer("y1", name="yield").result("y1").line("custom", customType="session_exit")
    assert read(log).only_turn == ("scout", "ended", "tool_ended_turn", 2, 2)


def test_only_a_sub_agent_hands_back(log):
    log.user().answer("y1", name="yield").result("y1")
    assert read(log).only_turn[1] == "open"


def test_a_compaction_in_mid_turn(log):
    log.user("u1").answer("c1", "c2").result("c1", "c2").compacted(150_000, "k1")
    log.answer("c3", usage=used(20_000, 1_000, 0)).answer()
    told = read(log)
    assert list(told.compactions.values()) == [
        CompactionMade(
            compaction_id=f"k1-{START_MS + 5_000}",
            session_id="s1",
            turn_id=f"u1-{START_MS + 1_000}",
            at_ms=START_MS + 5_000,
            trigger="auto",
            strategy="summary",
            context_before=150_000,
            context_after=21_000,
            calls_before=2,
            requests_before=1,
        )
    ]
    assert told.only_turn == ("main", "ended", "final_text", 3, 3)


def test_a_window_that_overflowed_is_compacted_in_mid_turn(log):
    log.user().answer("c1").result("c1").failed().compacted(entry="k1").answer()
    (made,) = read(log).compactions.values()
    assert (made.trigger, made.calls_before) == ("auto", 1)
    assert read(log).only_turn == ("main", "ended", "final_text", 2, 1)


def test_a_compaction_between_turns_is_of_none(log):
    log.user().answer().compacted(entry="k1")
    (made,) = read(log).compactions.values()
    assert made.context_after is None
    log.user().answer(usage=used(5_000, 0, 0))
    (made,) = read(log).compactions.values()
    # Whether somebody asked for it, the log does not tell.
    assert (made.turn_id, made.trigger, made.context_after) == (None, None, 5_000)


def test_a_compaction_between_the_prompt_and_its_first_request_is_of_the_new_turn(log):
    log.user().answer("c1").answer().user("u2").compacted(entry="k1").answer()
    (made,) = read(log).compactions.values()
    assert made.turn_id == f"u2-{START_MS + 4_000}"
    assert (made.trigger, made.calls_before, made.requests_before) == ("auto", 0, 0)


def test_a_fork_keeps_what_entries_are_known_by(log):
    log.user("u1").answer("c1", entry="a1").result("c1")
    fork = read(log.copied("s2"))
    assert fork.requests.keys() == read(log).requests.keys()
    (started,) = fork.started.values()
    assert started.on_request
    assert started.session_id == "s2"


def test_a_log_that_begins_inside_a_turn():
    log = PiSession().answer("c1", entry="a1")
    (started,) = read(log).started.values()
    assert (started.session_id, started.entry_calls) == ("s1", None)


def test_a_line_written_twice_counts_once(log):
    log.user().answer("c1").result("c1").answer("c2")
    twice = [line for line in log.lines for _ in range(2)]
    assert read(twice) == read(log)


def test_unknown_types_are_counted(log):
    _, reader, _ = read_on(log.line("not-yet-invented"))
    assert reader.unknown_types == {"not-yet-invented": 1}


def test_roles_by_project(log):
    assert read(log.user().answer(), role_by_project=True).only_turn[0] == "shop/main"


def whole_session():
    log = PiSession()
    log.line("title", v=1, title="", updatedAt="2026-07-01T12:00:00.000Z", pad=" " * 9).header()
    log.line("model_change", modelId="m-1").line("session_init", agent="task").user().failed()
    log.answer("c1", "c2").result("c1", "c2").user(steering=True).compacted().answer("c3")
    log.failed("aborted", "c4").answer().message("developer").compacted().user().compacted()
    log.answer("c5").result("c5").failed().user().answer("c6").answer("y", name="yield")
    return log.result("y").lines


WHOLE = whole_session()


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_a_cut_between_any_two_lines_changes_nothing(cut):
    whole, _, stood = read_on(WHOLE)
    first, _, states = read_on(WHOLE[:cut])
    then, _, stands = read_on(WHOLE[cut:], saved=json.loads(json.dumps(states)))
    for name in ("started", "reached", "requests", "compactions"):
        assert getattr(first, name) | getattr(then, name) == getattr(whole, name)
    assert stands == stood
