"""What each format's view says, by hand; what is malformed; how synthetic messages look."""

import json

import pytest

from compactuary.errors import InputError, SourceError
from strategies.conversation import IMAGE_TOKENS
from strategies.formats.recognise import see
from strategies.registry import strategy
from strategies.situation import Situation
from tests.unit.strategies.conversations import LangChainLike

pytestmark = pytest.mark.disable_socket


def kinds(messages, wire_format=None):
    return [
        (message.role, [part.kind for part in message.parts])
        for message in see(messages, wire_format).messages
    ]


def test_anthropic():
    messages = [
        {"role": "user", "content": "12345"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "abcd", "signature": "s"},
                {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "is_error": True,
                    "content": [
                        {"type": "text", "text": "x" * 8},
                        {"type": "image", "source": {"type": "base64", "data": "y" * 9999}},
                    ],
                }
            ],
        },
    ]
    assert kinds(messages) == [
        ("user", ["text"]),
        ("assistant", ["thinking", "tool_call"]),
        ("user", ["tool_result"]),
    ]
    view = see(messages)
    # 5 characters; 4 of thinking, 2 of the name and 2 of {}; 8 of text and an image.
    assert [message.tokens for message in view.messages] == [2, 2, 2 + IMAGE_TOKENS]
    assert [message.is_prompt for message in view.messages] == [True, False, False]
    result = view.messages[2].parts[0]
    assert (result.id, result.failed, result.images, result.text) == ("a", True, 1, "x" * 8)


def test_openai_chat():
    messages = [
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "r"},
    ]
    assert see(messages).wire_format.name == "openai_chat"
    assert kinds(messages) == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["tool_call"]),
        ("tool", ["tool_result"]),
    ]


def test_openai_responses():
    messages = [
        {"role": "user", "content": "u"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}]},
        {"type": "web_search_call", "id": "w", "action": {}},
        {"type": "custom_tool_call", "call_id": "a", "name": "run", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": "r"},
        {"type": "shell_call", "call_id": "b", "action": {}},
        {"type": "shell_call_output", "call_id": "b", "output": []},
        {"type": "compaction", "encrypted_content": "zzzz"},
        {"type": "item_reference", "id": "i"},
    ]
    assert kinds(messages) == [
        ("user", ["text"]),
        ("assistant", ["thinking"]),
        ("assistant", ["other"]),
        ("assistant", ["tool_call"]),
        ("tool", ["tool_result"]),
        ("assistant", ["tool_call"]),
        ("tool", ["tool_result"]),
        ("assistant", ["compaction"]),
        ("other", ["other"]),
    ]


def test_langchain():
    call = {"name": "ls", "args": {}, "id": "a"}
    messages = [
        LangChainLike(type="system", content="s", additional_kwargs={}),
        LangChainLike(type="human", content="u", additional_kwargs={}),
        LangChainLike(
            type="AIMessageChunk",
            content=[
                {"type": "thinking", "thinking": "t"},
                {"type": "text", "text": "x"},
                {"type": "tool_use", "id": "a", "name": "ls", "input": {}},
            ],
            additional_kwargs={},
            tool_calls=[call],
        ),
        LangChainLike(
            type="tool", content="r", tool_call_id="a", status="error", additional_kwargs={}
        ),
    ]
    assert kinds(messages) == [
        ("system", ["text"]),
        ("user", ["text"]),
        ("assistant", ["thinking", "text", "tool_call"]),
        ("tool", ["tool_result"]),
    ]
    assert see(messages).messages[3].parts[0].failed


def line(kind, content, **more):
    inner = {"role": kind, "content": content}
    if kind == "assistant":
        inner["id"] = more.pop("message_id", "m1")
    return json.dumps({"type": kind, "uuid": more.pop("uuid", "u"), "message": inner, **more})


def transcript():
    call = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "r" * 400}
    return [
        line("user", "first", uuid="u1"),
        '{"type":"file-history-snapshot","messageId":"x"}',
        line("assistant", [{"type": "thinking", "thinking": "t"}], uuid="u2"),
        line("assistant", [call], uuid="u3"),
        line("user", [result], uuid="u4"),
        line("assistant", [{"type": "text", "text": "done " * 60}], uuid="u5", message_id="m2"),
        line("user", "second", uuid="u6", parentUuid="u5", sessionId="s"),
    ]


def test_claude_code_lines_come_back_byte_for_byte():
    lines = transcript()
    assert kinds(lines)[1] == ("other", [])
    result = strategy("micro", keep=0).compact(lines)
    assert result.rewritten == (4,)
    for index in result.kept:
        assert result.messages[index] is lines[index]
    edited = json.loads(result.messages[4])
    block = {"type": "tool_result", "tool_use_id": "a", "content": "[Previous: used bash]"}
    assert edited == {**json.loads(lines[4]), "message": {"role": "user", "content": [block]}}


def test_a_summary_in_a_transcript_takes_the_place_of_the_next_line_s_parent():
    chosen = strategy("summarize", model=lambda request: "brief", keep_recent=1)
    result = chosen.compact(transcript(), Situation(force=True))
    summary, kept = (json.loads(each) for each in result.messages)
    assert summary["isCompactSummary"] is True
    assert summary["uuid"] == kept["parentUuid"] == "u5"
    assert summary["sessionId"] == "s"


def test_what_lies_before_a_boundary_is_no_part_of_the_context():
    boundary = '{"type":"system","subtype":"compact_boundary","uuid":"b"}'
    lines = [*transcript(), boundary, line("user", "hello", isCompactSummary=True)]
    view = see(lines)
    assert view.tokens() == 2
    assert view.messages[-1].is_synthetic


def test_results_may_come_before_their_calls_in_a_transcript():
    lines = transcript()
    lines[3], lines[4] = lines[4], lines[3]
    view = see(lines)
    from strategies.safe_split import pair_up  # noqa: PLC0415 - beside its only use

    assert (3, 4) in pair_up(view.messages).spans


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{"role": "robot", "content": "x"}], "messages[0].role: unknown role (got 'robot')"),
        ([{"content": "x"}], "messages[0].role: unknown role"),
        ([{"role": "user", "content": 3}], "messages[0]: content is neither a text nor a list"),
        ([3], "messages[0].role: unknown role"),
        ("text", "messages: not a list (got 'text')"),
        ({"role": "user"}, "messages: not a list"),
        (None, "messages: not a list"),
        (["{torn"], "line 1: not JSON (got '{torn')"),
        (["[1]"], "line 1: not an object (got '[1]')"),
        (
            [{"role": "user", "content": "x"}, {"role": "tool", "content": ""}, {"role": "bot"}],
            "messages[2].role: unknown role (got 'bot')",
        ),
        (
            [{"role": "tool"}, {"role": "assistant", "function_call": {"name": "f"}}],
            "messages[1]: function_call has no id",
        ),
        (
            [LangChainLike(type="robot", content="", additional_kwargs={})],
            "messages[0]: unknown type of message (got 'robot')",
        ),
    ],
)
@pytest.mark.parametrize("name", ["none", "micro", "sliding_window", "token_budget"])
def test_malformed_messages_are_one_clear_error(messages, told, name):
    with pytest.raises(InputError) as error:
        strategy(name).compact(messages)
    assert str(error.value).startswith(told)
    assert isinstance(error.value, SourceError) == told.startswith("line")


def test_an_unknown_format_is_named():
    with pytest.raises(InputError, match="Known: langchain, claude_code, openai_responses"):
        see([], "gemini")


def test_an_orphaned_result_leaves_everything_alone():
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "x" * 999}
    messages = [{"role": "user", "content": "a"}, orphan, {"role": "user", "content": "b"}]
    for name in ("sliding_window", "micro", "token_budget", "tail_digest"):
        settings = {"sliding_window": {"keep_last": 1}, "token_budget": {"budget_tokens": 1}}
        result = strategy(name, **settings.get(name, {})).compact(messages)
        assert result.messages is messages
        assert result.reason.startswith("messages[1]: a result names the call 'gone'")


def test_an_empty_conversation_stays_empty():
    for name in ("sliding_window", "micro", "token_budget", "tail_digest", "none"):
        empty = []
        result = strategy(name).compact(empty)
        assert result.messages is empty
        assert not result.changed


def test_one_giant_message_stays():
    giant = [{"role": "user", "content": "x" * 1_000_000}]
    result = strategy("token_budget", budget_tokens=10).compact(giant)
    assert result.messages is giant
    assert result.reason == "250000 tokens, but no clean boundary to cut at"


def test_sdk_objects_are_read_and_changed_by_their_own_means():
    class Block:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    content = [Block(type="tool_use", id="a", name="bash", input={"c": 1})]
    result = {"type": "tool_result", "tool_use_id": "a", "content": "y" * 99}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result]},
    ]
    done = strategy("micro", keep=0).compact(messages)
    assert done.messages[1] is messages[1]
    assert done.messages[2]["content"][0]["content"] == "[Previous: used bash]"


def test_a_message_that_cannot_be_copied_is_an_error():
    class Frozen:
        role, content, tool_call_id = "tool", "y" * 99, "a"

    call = {"id": "a", "function": {"name": "bash", "arguments": ""}}
    messages = [{"role": "assistant", "tool_calls": [call]}, Frozen()]
    with pytest.raises(InputError, match="can't be copied with another content"):
        strategy("micro", keep=0).compact(messages)
