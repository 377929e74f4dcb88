"""A thread put down anywhere and taken up again tells the same as one read whole."""

import json

import pytest

from tests.unit.ledger.transcript import Transcript, notification, read, said, tokens, use


def dirty_session():
    log = Transcript()
    log.user("Fix it.", uuid="p1")
    log.answer("m1", said("Looking."), usage=tokens(output=1))
    log.answer("m1", use("t1"), usage=tokens(output=1))
    log.result("t1")
    log.answer("m1", use("t2"), usage=tokens(output=80))
    log.result("t2")
    log.compacted(uuid="c1")
    log.answer("m2", use("call", "Agent", subagent_type="Explore"))
    log.result("call", toolUseResult={"agentId": "a1", "status": "async_launched"})
    log.answer("m3", said())
    log.system("turn_duration", durationMs=5)
    log.user(notification("a1", tool_uses=3), uuid="n1")
    log.compacted(uuid="c2", trigger="manual")
    log.answer("m4", use("t4"))
    log.user("[Request interrupted by user for tool use]")
    log.system("scheduled_task_fire")
    log.user("Check.", uuid="p3", isMeta=True)
    log.answer("m5", said())
    return log


WHOLE = dirty_session().lines


def last_words(told):
    return told.started, told.reached, told.requests, told.compactions


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_a_cut_between_any_two_lines_changes_nothing(cut):
    whole = read(WHOLE)
    first = read(WHOLE[:cut])
    stored = json.loads(json.dumps(first.states))
    then = read(WHOLE[cut:], saved=stored, continued=True)
    joined = [{**a, **b} for a, b in zip(last_words(first), last_words(then), strict=True)]
    # A turn is begun once; the tools of a message seen half are told in two parts.
    tools = {
        key: {
            tool
            for part in (first, then)
            for event in part.events
            if getattr(event, "request_id", None) == key
            for tool in event.tool_calls
        }
        for key in whole.requests
    }
    assert joined[0] == whole.started
    assert joined[1] == whole.reached
    assert joined[3] == whole.compactions
    assert {key: request.usage for key, request in joined[2].items()} == {
        key: request.usage for key, request in whole.requests.items()
    }
    assert tools == {key: set(request.tool_calls) for key, request in whole.requests.items()}
    assert [event for part in (first, then) for event in part.agents] == whole.agents


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_a_slice_in_a_file_of_its_own_finds_where_the_session_stood(cut):
    first = read(WHOLE[:cut])
    then = read(WHOLE[cut:], saved=first.states)
    assert {**first.turns, **then.turns}.keys() == {"p1", "n1", "p3"}
    assert {**first.reached, **then.reached} == read(WHOLE).reached


def test_a_whole_file_does_not_take_up_a_stored_thread():
    stored = read(WHOLE).states
    assert read(WHOLE, saved=stored).turns == read(WHOLE).turns
