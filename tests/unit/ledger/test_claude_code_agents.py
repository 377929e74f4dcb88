"""Sub-agents: embedded, in files of their own, in the background; their roles and ends."""

import pytest

from ledger.events import UNKNOWN_SUBAGENT, AgentTold
from ledger.usage import Usage
from tests.unit.ledger.transcript import (
    START_MS,
    Transcript,
    notification,
    read,
    said,
    tokens,
    use,
)


def agent_file(agent="a1"):
    """A sub-agent's own file: two requests, one call, ended."""
    log = Transcript(agent=agent, seconds=2)
    log.user("Look around.")
    log.answer(f"{agent}-m1", use(f"{agent}-t1", "Grep"), usage=tokens(read=7_000))
    log.result(f"{agent}-t1")
    log.answer(f"{agent}-m2", said("Found."), usage=tokens(read=7_500))
    return log


def parent(tool="Task", **given):
    log = Transcript()
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("call1", tool, **given))
    return log


def done(log, *, agent="a1", call="call1", calls=1, **told):
    result = {"agentId": agent, "status": "completed", "totalToolUseCount": calls} | told
    log.result(call, toolUseResult=result)


@pytest.mark.parametrize("tool", ["Task", "Agent"])
@pytest.mark.parametrize(
    ("given", "role"),
    [
        ({"subagent_type": "Explore"}, "Explore"),
        ({"subagent_type": "fork"}, "fork"),
        ({}, "general-purpose"),
    ],
)
def test_the_parent_names_the_role(tool, given, role):
    log = parent(tool, **given)
    done(log, calls=4)
    assert read(log).agents == [
        AgentTold(
            session_id="s1",
            agent_id="a1",
            source="claude-code",
            role=role,
            parent_turn_id="p1",
            at_ms=START_MS + 2000,
            status="ended",
            tool_calls=4,
        )
    ]


def test_the_result_of_newer_versions_names_role_and_model():
    log = parent("Agent", subagent_type="fork")
    done(log, agentType="reviewer", resolvedModel="claude-haiku-4-5")
    (told,) = read(log).agents
    assert (told.role, told.model) == ("reviewer", "claude-haiku-4-5")


def test_a_file_of_its_own_is_one_turn_of_an_unknown_role():
    told = read(agent_file())
    assert told.turns == {"s1/agent-a1": (UNKNOWN_SUBAGENT, "prompt", "ended", "final_text", 2, 1)}
    assert told.started["s1/agent-a1"].thread_id == "s1/agent-a1"
    assert told.started["s1/agent-a1"].session_id == "s1"


def test_embedded_usage_counts_for_the_sub_agent_alone():
    log = parent("Task", subagent_type="Explore")
    for message in agent_file().lines:
        log.progress("call1", "a1", message)
    done(log)
    log.answer("m2", said())
    told = read(log)
    assert told.turns == {
        "p1": ("main", "prompt", "ended", "final_text", 2, 1),
        "s1/agent-a1": (UNKNOWN_SUBAGENT, "prompt", "ended", "final_text", 2, 1),
    }
    assert {key: request.turn_id for key, request in told.requests.items()} == {
        "m1": "p1",
        "m2": "p1",
        "a1-m1": "s1/agent-a1",
        "a1-m2": "s1/agent-a1",
    }
    assert told.requests["a1-m1"].usage == Usage(1, 7_000, 10, output=5)
    assert {event.role for event in told.agents} == {"Explore"}


def test_embedded_lines_and_a_file_tell_the_same_turn_and_requests():
    log = parent("Task", subagent_type="Explore")
    for message in agent_file().lines:
        log.progress("call1", "a1", message)
    embedded, own = read(log), read(agent_file())
    assert embedded.turns["s1/agent-a1"] == own.turns["s1/agent-a1"]
    assert {key for key in embedded.requests if key.startswith("a1")} == set(own.requests)


def test_embedded_lines_without_the_prompt_are_seen_from_their_beginning():
    log = parent("Task", subagent_type="Explore")
    for message in agent_file().lines[1:]:
        log.progress("call1", "a1", message)
    started = read(log).started["s1/agent-a1"]
    assert (started.entry_calls, started.entry_requests) == (0, 0)


def test_progress_of_other_kinds_is_skipped():
    log = parent("Bash")
    log.line("progress", data={"type": "hook_progress", "hookEvent": "PreToolUse"})
    log.line("progress", data={"type": "bash_progress", "output": "…"})
    log.line("progress", data={"type": "agent_progress", "agentId": "a1", "message": None})
    told = read(log)
    assert list(told.turns) == ["p1"]
    assert told.agents == []


@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize(
    ("word", "status"), [("completed", "ended"), ("failed", "cut"), ("killed", "cut")]
)
def test_a_background_agent_is_done_when_its_notification_comes(queued, word, status):
    log = parent("Agent", subagent_type="Explore", run_in_background=True)
    done(log, status="async_launched", calls=None)
    text = notification("a1", word, tool_uses=9)
    if queued:
        log.queued(text, "task-notification")
    else:
        log.answer("m2", said("Launched."))
        log.user(text, uuid="n1")
        log.answer("m3", said())
    launched, finished = read(log).agents
    assert (launched.role, launched.status, launched.tool_calls) == ("Explore", None, None)
    assert (finished.agent_id, finished.status, finished.tool_calls) == ("a1", status, 9)


def test_a_notification_of_a_background_command_tells_of_no_agent():
    log = parent("Bash", run_in_background=True)
    log.result("call1", toolUseResult={"backgroundTaskId": "b1"})
    log.answer("m2", said())
    log.user(notification("b1"))
    log.answer("m3", said())
    assert read(log).agents == []


def test_the_summarising_call_is_a_request_of_no_turn():
    log = Transcript(agent="acompact-77")
    log.user("Summarise.")
    log.answer("m9", said("Summary"), usage=tokens(read=166_000, output=4_000))
    told = read(log)
    assert told.turns == {}
    request = told.requests["m9"]
    assert (request.kind, request.turn_id, request.session_id) == ("compaction", None, "s1")
    assert request.usage.cache_read == 166_000


def test_a_resumed_agent_works_a_second_turn():
    log = agent_file()
    log.user("And the tests?", uuid="r1")
    log.answer("a1-m3", said())
    assert read(log).turns == {
        "s1/agent-a1": (UNKNOWN_SUBAGENT, "prompt", "ended", "final_text", 2, 1),
        "r1": (UNKNOWN_SUBAGENT, "prompt", "ended", "final_text", 1, 0),
    }


def test_an_agent_of_an_agent_is_told_by_its_parents_file():
    log = agent_file()
    log.lines.pop()
    log.answer("a1-m2", use("inner", "Agent", subagent_type="Plan"))
    log.result("inner", toolUseResult={"agentId": "a2", "status": "completed"})
    (told,) = read(log).agents
    assert (told.session_id, told.agent_id, told.role) == ("s1", "a2", "Plan")
    assert told.parent_turn_id == "s1/agent-a1"
