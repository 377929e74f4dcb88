"""Safe split against brute force: every place that is called clean, and no other."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies.formats.recognise import see
from strategies.safe_split import clean_cuts, open_tail, safe_cut
from tests.unit.strategies.conversations import plans, written
from tests.unit.strategies.provider_rules import problems

pytestmark = pytest.mark.disable_socket


@settings(max_examples=150, deadline=None)
@given(plans(), st.sampled_from(["anthropic", "openai_chat"]))
def test_a_cut_is_clean_where_a_prompt_begins_and_the_rest_is_valid(plan, name):
    messages = written(plan, name)
    head = 1 if plan.system and name != "anthropic" else 0

    def is_prompt(message):
        content = message["content"]
        return message["role"] == "user" and (
            isinstance(content, str) or content[0]["type"] != "tool_result"
        )

    clean = [
        k
        for k in range(head + 1, len(messages))
        if is_prompt(messages[k]) and problems(name, messages[k:]) == []
    ]
    conversation = see(messages, name)
    assert clean_cuts(conversation) == clean
    for desired in range(len(messages) + 1):
        assert safe_cut(conversation, desired) == max((k for k in clean if k <= desired), default=0)


@settings(max_examples=150, deadline=None)
@given(plans(), st.sampled_from(["anthropic", "openai_chat", "openai_responses"]))
def test_within_a_turn_a_summary_in_front_makes_the_rest_valid(plan, name):
    messages = written(plan, name)
    for k in clean_cuts(see(messages, name), within_turn=True):
        assert problems(name, [{"role": "user", "content": "summary"}, *messages[k:]]) == []


def test_a_result_behind_the_next_prompt_holds_the_cut_back():
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t"}]}
    late = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}
    ask = {"role": "user", "content": "so?"}
    messages = [ask, call, ask, late, ask]
    assert clean_cuts(see(messages)) == [4]


def test_a_user_message_with_a_result_is_no_boundary():
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t"}]}
    both = [{"type": "tool_result", "tool_use_id": "a"}, {"type": "text", "text": "and"}]
    messages = [{"role": "user", "content": "x"}, call, {"role": "user", "content": both}]
    assert clean_cuts(see(messages)) == []


def test_an_image_alone_is_a_prompt():
    image = {"role": "user", "content": [{"type": "image", "source": {}}]}
    said = {"role": "assistant", "content": "a cat"}
    assert clean_cuts(see([image, said, image, said])) == [2]


@pytest.mark.parametrize(
    ("roles", "starts"), [("u", 1), ("ua", 2), ("uac", 2), ("uacc", 2), ("ucru", 4), ("ucrcr", 5)]
)
def test_the_open_tail_begins_with_its_response(roles, starts):
    made = {
        "u": lambda k: {"role": "user", "content": "x"},
        "a": lambda k: {"role": "assistant", "content": "y"},
        "c": lambda k: {"type": "function_call", "call_id": f"{k}", "name": "t", "arguments": ""},
        "r": lambda k: {"type": "function_call_output", "call_id": f"{k - 1}", "output": "z"},
    }
    messages = [made[role](k) for k, role in enumerate(roles)]
    expected = roles.index("a") if "ac" in roles else starts
    assert open_tail(see(messages, "openai_responses")) == expected


def test_ids_that_are_used_again_belong_to_their_last_call():
    call = {"role": "assistant", "tool_calls": [{"id": "0", "function": {"name": "t"}}]}
    result = {"role": "tool", "tool_call_id": "0", "content": "r"}
    turn = [{"role": "user", "content": "x"}, call, result]
    assert clean_cuts(see([*turn, *turn, *turn])) == [3, 6]
