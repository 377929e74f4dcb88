"""Codex rollouts: what is left in the context, by hand."""

import pytest

from strategies.formats.codex_rollout import is_rollout, rollout_context
from strategies.formats.recognise import see

pytestmark = pytest.mark.disable_socket


def line(kind, **payload):
    return {"timestamp": "2026-07-01T10:00:00Z", "type": kind, "payload": payload}


def said(text, role="user"):
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def item(payload):
    return line("response_item", **payload)


def event(kind, **more):
    return line("event_msg", type=kind, **more)


HEADER = line("session_meta", id="s", base_instructions={"text": "i" * 30}, dynamic_tools=["t"])


def test_items_prefix_and_model():
    call = {"type": "function_call", "call_id": "a", "name": "exec", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "ok"}
    lines = [HEADER, line("turn_context", model="m1"), item(said("hi")), item(call), item(output)]
    lines += [event("token_count", info=None), line("turn_context", model="m2"), {"type": "other"}]
    context = rollout_context(lines)
    assert context.items == [said("hi"), call, output]
    # Thirty characters, and those of ['t'].
    assert context.prefix_characters == 35
    assert context.model == "m2"
    assert [message.role for message in see(context.items).messages] == [
        "user",
        "assistant",
        "tool",
    ]


def test_a_second_header_of_a_copied_history_is_not_counted_twice():
    assert rollout_context([HEADER, HEADER]).prefix_characters == 35


def test_a_compaction_stands_for_what_was_before_it():
    short = [said("summary")]
    lines = [item(said("one")), line("compacted", replacement_history=short), item(said("two"))]
    assert rollout_context(lines).items == [said("summary"), said("two")]
    assert short == [said("summary")]


@pytest.mark.parametrize(
    ("turns", "left"),
    [(1, ["a", "b"]), (2, ["a"]), (3, []), (9, []), (0, ["a", "b", "c"]), (None, ["a", "b", "c"])],
)
def test_turns_rolled_back_are_gone(turns, left):
    lines = []
    for text in ("a", "b", "c"):
        lines += [event("task_started", turn_id=text), item(said(text))]
    lines.append(event("thread_rolled_back", num_turns=turns))
    assert rollout_context(lines).items == [said(text) for text in left]


def test_a_roll_back_stops_at_a_compaction():
    lines = [event("task_started", turn_id="a"), item(said("a"))]
    lines += [line("compacted", replacement_history=[said("s")])]
    lines += [event("task_started", turn_id="b"), item(said("b"))]
    lines += [event("thread_rolled_back", num_turns=2)]
    assert rollout_context(lines).items == [said("s")]


@pytest.mark.parametrize(
    "value", [None, 3, "x", [], {}, {"type": "response_item"}, {"type": "user", "payload": {}}]
)
def test_what_is_no_line_of_a_rollout(value):
    assert not is_rollout(value)
    assert rollout_context([value]) == ([], 0, None)
