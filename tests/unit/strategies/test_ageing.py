"""The ten-round view: grids drawn by hand, tokens worked out by hand, every format alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.ageing import age, round_ends
from strategies.formats.recognise import see
from strategies.micro import Micro
from strategies.situation import Situation
from tests.unit.strategies.conversations import FORMATS, WRITERS, plans, written

pytestmark = pytest.mark.disable_socket
SIGNS = {"whole": "█", "placeholder": "·", "preserved": "P"}


def call(number, tool):
    return {"type": "tool_use", "id": f"c{number}", "name": tool, "input": {}}


def result(number, text):
    return {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}


def talk(tools, text="x" * 400):
    """Ask in 40 characters, then make a round of each tool: 10 tokens, then 2 and 100 a round."""
    messages = [{"role": "user", "content": "q" * 40}]
    for number, tool in enumerate(tools):
        messages.append({"role": "assistant", "content": [call(number, tool)]})
        messages.append({"role": "user", "content": [result(number, text)]})
    return messages


def grid(view):
    return ["".join(SIGNS[fate] for fate in each.fates) for each in view.rounds]


def test_ten_rounds_as_drawn_by_hand():
    view = age(see([*talk(["bash"] * 10), {"role": "assistant", "content": "done"}]))
    assert grid(view) == [
        "█",
        "██",
        "███",
        "·███",
        "··███",
        "···███",
        "····███",
        "·····███",
        "······███",
        "·······███",
    ]
    assert view.rounds_in_all == 10
    assert [each.tool for each in view.results] == ["bash"] * 10
    assert [each.message for each in view.results] == list(range(2, 21, 2))


def test_tokens_by_hand():
    # A call is 'bash' and '{}', 2 tokens; '[Previous: used bash]' has 21 characters, 6 tokens.
    view = age(see(talk(["bash"] * 6)), situation=Situation(prefix_tokens=1_000))
    assert [each.tokens for each in view.rounds] == [1_010 + 102 * k for k in range(1, 7)]
    assert [each.aged_tokens for each in view.rounds] == [1_112, 1_214, 1_316, 1_324, 1_332, 1_340]
    assert [each.cached_tokens for each in view.rounds] == [0, 1_112, 1_214, 1_316, 1_418, 1_520]
    # From the fourth round on the cache holds all before the result that was shortened last.
    assert [each.aged_cached_tokens for each in view.rounds] == [
        0,
        1_112,
        1_214,
        1_012,
        1_020,
        1_028,
    ]


def test_preserved_tools_and_another_keep():
    view = age(see(talk(["read_file", "bash", "bash", "read_file", "bash"])), Micro(keep=1))
    assert grid(view) == ["P", "P█", "P·█", "P··P", "P··P█"]
    other = Micro(keep=1, preserve=("bash",))
    assert grid(age(see(talk(["read_file", "bash"])), other)) == ["█", "·P"]


def test_no_more_rounds_than_asked_for():
    view = age(see(talk(["bash"] * 10)), rounds=4)
    assert grid(view) == ["█", "██", "███", "·███"]
    assert view.rounds_in_all == 10


def test_without_tools_there_is_no_round():
    view = age(see([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]))
    assert view.rounds == ()
    assert view.rounds_in_all == 0


@pytest.mark.parametrize("name", FORMATS)
def test_parallel_calls_are_one_round_in_every_format(name):
    made = WRITERS[name]()
    made.prompt("go", False)
    number = 0
    for tools in (["bash", "bash"], ["read_file"], ["bash", "search", "bash"]):
        named = [(f"c{number + k}", tool, "x", "y" * 200) for k, tool in enumerate(tools)]
        number += len(tools)
        made.calls(named, False)
        made.results(named, True)
    made.answer("done")
    view = age(see(made.messages))
    assert grid(view) == ["██", "██P", "··P███"]


@given(plan=plans(most_turns=3), name=st.sampled_from(FORMATS), keep=st.integers(0, 4))
def test_fates_are_what_counting_tells(plan, name, keep):
    conversation = see(written(plan, name))
    view = age(conversation, Micro(keep=keep), rounds=50)
    sizes = [len(calls) for _, _, rounds, _ in plan.turns for _, _, calls in rounds]
    flat = [call for _, _, rounds, _ in plan.turns for _, _, calls in rounds for call in calls]
    answered = sum(
        part.kind == "tool_result" for each in conversation.messages for part in each.parts
    )
    assert len(view.results) == answered
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    reached = [min(end, answered) for end in ends if end <= answered or end - answered < 3]
    told = [len(each.fates) for each in view.rounds]
    assert told == sorted(set(told))
    assert set(told) <= set(reached)
    for each in view.rounds:
        seen = len(each.fates)
        for k, fate in enumerate(each.fates):
            tool, _, text = flat[k]
            old = k < seen - keep and len(f"[Previous: used {tool}]") < len(text)
            expected = "preserved" if tool == "read_file" else "placeholder" if old else "whole"
            assert fate == expected


def test_a_providers_own_summary_does_not_swallow_the_rounds():
    block = {"type": "compaction", "content": "brief"}
    messages = [{"role": "assistant", "content": [block]}, *talk(["bash", "bash"])]
    assert round_ends(see(messages)) == [4, 6]


def test_a_result_without_a_call_ages_nothing():
    messages = talk(["bash"] * 5)
    del messages[1]
    assert grid(age(see(messages))) == ["█" * k for k in range(1, 6)]
