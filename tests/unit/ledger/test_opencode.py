"""OpenCode exports: turns, requests, the three messages of a compaction, sub-agents, forks."""

import json
from pathlib import Path

import pytest

from ledger.events import AgentTold, CompactionMade, RequestMade
from ledger.readers.opencode import opencode_events
from ledger.usage import Usage
from tests.unit.ledger.export import Export, tokens
from tests.unit.ledger.rollout import START_MS
from tests.unit.ledger.told import Told


def read(*exports, **options):
    documents = [json.loads(json.dumps(export.document)) for export in exports]
    return Told(list(opencode_events(documents, Path("log.json"), **options)))


@pytest.fixture
def log():
    return Export()


def test_a_turn_of_two_requests(log):
    log.user("u1").answer("a1", "c1", "c2:read").answer("a2", used=tokens(50, 900, 10, 0))
    told = read(log)
    assert told.turns == {"u1": ("main", "ended", "final_text", 2, 2)}
    first, second = told.requests.values()
    # The input does not include the cache, and the reasoning is not in the output.
    assert first.usage == Usage(100, 700, output=90, reasoning=30)
    assert second.usage == Usage(50, 900, output=10)
    assert first.tool_calls == (("c1", "bash"), ("c2", "read"))
    assert (first.at_ms, first.model, first.position) == (START_MS + 1_000, "m-1", 0)
    assert told.started["u1"].provider == "p-1"
    assert told.reached["u1"].at_ms == START_MS + 2_500


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"finish": "stop"}, ("ended", "final_text")),
        ({"finish": "tool-calls"}, ("open", "in_flight")),
        ({"finish": "unknown"}, ("open", "in_flight")),
        ({"finish": None}, ("open", "in_flight")),
        ({"finish": "length"}, ("cut", "length")),
        ({"finish": None, "error": {"name": "MessageAbortedError"}}, ("cut", "interrupted")),
        ({"finish": None, "error": {"name": "APIError"}}, ("cut", "api_error")),
        ({"finish": None, "error": {"name": "UnknownError"}}, ("cut", "api_error")),
    ],
)
def test_how_a_turn_ends(log, info, expected):
    log.user("u1").answer("a1", "c1").answer("a2", **info)
    assert read(log).only_turn == ("main", *expected, 2, 1)


def test_a_turn_in_flight_is_cut_by_the_next(log):
    log.user("u1").answer("a1", "c1").user("u2").answer("a2")
    assert [turn[1:3] for turn in read(log).turns.values()] == [
        ("cut", "superseded"),
        ("ended", "final_text"),
    ]


def test_an_answer_belongs_to_the_message_it_answers(log):
    log.user("u1").user("u2").answer("a2").answer("a1", parentID="u1")
    assert {made.request_id: made.turn_id for made in read(log).requests.values()} == {
        "a2": "u2",
        "a1": "u1",
    }


def test_a_request_whose_usage_is_not_known_yet_counts_its_calls_only(log):
    nothing = tokens(0, 0, 0, 0)
    log.user("u1").answer("a1", "c1").answer("a2", "c2", "c3", used=nothing, finish=None)
    told = read(log)
    assert list(told.requests) == ["a1"]
    assert told.only_turn == ("main", "open", "in_flight", 1, 3)


def test_a_message_in_flight_keeps_its_place(log):
    log.user("u1").answer("a1", "c1", used=tokens(0, 0, 0, 0), finish=None).answer("a2")
    (second,) = read(log).requests.values()
    assert second.position == 1


def test_a_compaction_is_three_messages_of_one_turn(log):
    log.user("u1").answer("a1", "c1", "c2", used=tokens(100, 150_000, 60, 30))
    log.compaction("k1").go_on("u2").answer("a2", "c3", used=tokens(20_000, 1_000)).answer("a3")
    told = read(log)
    assert told.turns == {"u1": ("main", "ended", "final_text", 3, 3)}
    assert list(told.compactions.values()) == [
        CompactionMade(
            compaction_id="k1",
            session_id="ses_1",
            turn_id="u1",
            at_ms=START_MS + 2_000,
            trigger="auto",
            strategy="summary",
            context_before=150_190,
            context_after=21_000,
            calls_before=2,
            requests_before=1,
        )
    ]
    # The summarising call is paid, and is no request of the turn.
    summary = told.requests["k1-summary"]
    assert (summary.kind, summary.turn_id) == ("compaction", None)
    assert summary.usage == Usage(50, 150_000, output=90, reasoning=30)


def test_a_compaction_somebody_asked_for_is_of_no_turn(log):
    log.user("u1").answer("a1").compaction("k1", auto=False).user("u2").answer("a2")
    told = read(log)
    made = told.compactions["k1"]
    assert (made.trigger, made.turn_id, made.calls_before) == ("manual", None, 0)
    assert (made.context_before, made.context_after) == (890, 800)
    assert list(told.turns) == ["u1", "u2"]


def test_a_compaction_before_the_first_request_is_of_the_new_turn(log):
    log.user("u1").answer("a1").user("u2").compaction("k1").go_on("u3").answer("a2", "c1")
    told = read(log)
    made = told.compactions["k1"]
    assert (made.turn_id, made.calls_before, made.requests_before) == ("u2", 0, 0)
    assert told.turns["u2"] == ("main", "open", "in_flight", 1, 1)
    assert list(told.turns) == ["u1", "u2"]


def test_a_full_window_replays_the_message_that_did_not_fit(log):
    log.user("u1").answer("a1", "c1").compaction("k1", overflow=True).user("u2").answer("a2")
    assert read(log).turns == {"u1": ("main", "ended", "final_text", 2, 1)}


def test_an_answer_to_the_compaction_itself_goes_on_with_the_turn(log):
    log.user("u1").answer("a1", "c1").compaction("k1").answer("a2")
    assert read(log).turns == {"u1": ("main", "ended", "final_text", 2, 1)}


def test_a_prompt_behind_an_automatic_compaction_begins_a_turn(log):
    log.user("u1").answer("a1", "c1").compaction("k1").user("u2").answer("a2")
    assert list(read(log).turns) == ["u1", "u2"]


def test_a_summary_that_failed_or_is_in_flight_compacts_nothing(log):
    log.user("u1").answer("a1", "c1").compaction("k1", error={"name": "APIError"})
    assert read(log).compactions == {}
    log.messages.pop()
    assert read(log).compactions == {}


def test_a_compaction_at_the_end_waits_for_its_size_after(log):
    log.user("u1").answer("a1", "c1").compaction("k1")
    assert read(log).compactions["k1"].context_after is None


def test_a_sub_agent_is_a_session_of_its_own(log):
    ended = {"time": {"end": START_MS + 9_000}, "metadata": {"sessionId": "ses_2"}}
    task = log.tool("c1", "task", input={"subagent_type": "explore"}, **ended)
    log.user("u1").answer("a1", task)
    child = Export("ses_2", info={"parentID": "ses_1", "agent": "explore"})
    child.user("v1").answer("b1", "d1").answer("b2")
    told = read(log, child)
    assert told.agents == [
        AgentTold(
            session_id="ses_1",
            agent_id="ses_2",
            source="opencode",
            role="explore",
            parent_turn_id="u1",
            at_ms=START_MS + 9_000,
            status="ended",
        )
    ]
    assert told.turns["v1"] == ("explore", "ended", "final_text", 2, 1)
    assert told.started["v1"].thread_id == "ses_1/agent-ses_2"
    assert {made.session_id for made in told.requests.values()} == {"ses_1"}


def test_a_fork_begins_with_copies_that_are_not_told(log):
    # The copies have new ids and the old times; the session is younger than they are.
    log.user("u1").answer("a1", "c1").answer("a2")
    log.info["time"] = {"created": START_MS + 2_500}
    log.user("u2").answer("a3", "c2")
    assert read(log).turns == {"u2": ("main", "open", "in_flight", 1, 1)}


def test_a_fork_in_mid_turn_does_not_know_how_the_turn_began(log):
    log.user("u1").answer("a1", "c1")
    log.info["time"] = {"created": START_MS + 1_500}
    log.answer("a2")
    (started,) = read(log).started.values()
    assert (started.turn_id, started.entry_calls) == ("u1", None)


def test_a_message_written_twice_counts_once(log):
    log.user("u1").answer("a1", "c1").answer("a2")
    once = read(log)
    log.messages = [message for message in log.messages for _ in range(2)]
    assert read(log) == once


def test_roles_by_project(log):
    log.user("u1").answer("a1")
    assert read(log, role_by_project=True).only_turn[0] == "shop/main"


def whole_export():
    log = Export()
    log.user("u1").answer("a1", "c1", "c2").compaction("k1").go_on("u2").answer("a2", "c3")
    log.answer("a3").compaction("k2", auto=False).user("u3")
    metadata = {"sessionId": "ses_2"}
    log.answer("a4", log.tool("c4", "task", "running", metadata=metadata), finish="unknown")
    log.answer("a5", error={"name": "MessageAbortedError"}).user("u4").answer("a6")
    return log.document


def test_a_document_that_grew_tells_the_same_in_the_end():
    document = whole_export()
    whole = read(Export(info=document["info"], messages=document["messages"]))
    told = {}
    for end in range(len(document["messages"]) + 1):
        part = Export(info=document["info"], messages=document["messages"][:end])
        told |= {
            event.request_id: event for event in read(part).events if isinstance(event, RequestMade)
        }
    assert told == whole.requests
