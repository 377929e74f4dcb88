"""What the lab opens and saves: every kind of file, and what is wrong with one, in one line."""

import gzip
import json
import stat

import pytest

from cli.lab.file import open_conversation, save_conversation
from compactuary.errors import InputError, SourceError

pytestmark = pytest.mark.disable_socket

TALK = [{"role": "user", "content": "hi there"}, {"role": "assistant", "content": "hello"}]
USAGE = {"input_tokens": 500, "cache_read_input_tokens": 0, "output_tokens": 3}
TRANSCRIPT = [
    {"type": "summary", "summary": "x"},
    {"type": "user", "uuid": "1", "message": {"role": "user", "content": "h" * 40}},
    {
        "type": "assistant",
        "uuid": "2",
        "message": {"role": "assistant", "id": "m", "model": "claude-x", "usage": USAGE,
                    "content": [{"type": "text", "text": "yes"}]},
    },
]  # fmt: skip
ROLLOUT = [
    {"type": "session_meta", "payload": {"id": "s", "base_instructions": {"text": "i" * 41}}},
    {"type": "turn_context", "payload": {"model": "gpt-x"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "hi"}},
]


@pytest.fixture
def opened(tmp_path):
    """Return what writes a file and opens it."""

    def write(content, name="talk.json", **more):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return open_conversation(path, **more)

    return write


def lines(values, end="\n"):
    return "\n".join(json.dumps(value) for value in values) + end


def test_a_list_of_messages(opened):
    found = opened(json.dumps(TALK))
    assert list(found.conversation.source) == TALK
    assert (found.prefix_tokens, found.model, found.notes, found.body) == (0, None, (), None)
    assert found.conversation.wire_format.name == "anthropic"
    assert opened(json.dumps(TALK), wire_format="openai_chat").conversation.wire_format.name == (
        "openai_chat"
    )


def test_a_request_body_tells_prefix_and_model(opened):
    # 's' * 9 and the 17 characters of [{'name': 'bash'}]: 26, 7 tokens.
    body = {"model": "m", "system": "s" * 9, "tools": [{"name": "bash"}], "messages": TALK}
    found = opened(json.dumps(body))
    assert (found.prefix_tokens, found.model, found.body) == (7, "m", body)
    found = opened(json.dumps({"model": 3, "instructions": "i" * 8, "input": TALK}, indent=2))
    assert (found.prefix_tokens, found.model) == (2, None)
    assert found.conversation.wire_format.name == "openai_responses"


def test_a_claude_code_transcript_tells_its_prefix_by_usage(opened):
    found = opened(lines(TRANSCRIPT), "log.jsonl")
    # 500 tokens were sent, 10 of them are the prompt's.
    assert (found.prefix_tokens, found.model) == (490, "claude-x")
    assert found.conversation.wire_format.name == "claude_code"
    assert [message.role for message in found.conversation.messages] == [
        "other", "user", "assistant"
    ]  # fmt: skip
    assert list(found.conversation.source) == [json.dumps(each) for each in TRANSCRIPT]


def test_a_codex_rollout(opened):
    found = opened(lines(ROLLOUT), "rollout.jsonl")
    assert (found.prefix_tokens, found.model) == (11, "gpt-x")
    assert list(found.conversation.source) == [ROLLOUT[2]["payload"]]


def test_one_message_a_line(opened):
    assert list(opened(lines(TALK)).conversation.source) == TALK


def test_gzip_and_a_byte_order_mark_whatever_the_name(opened):
    content = b"\xef\xbb\xbf" + json.dumps(TALK).encode()
    assert list(opened(gzip.compress(content), "talk.json").conversation.source) == TALK


def test_a_torn_last_line_is_left_out_and_told(opened):
    found = opened(lines(TRANSCRIPT) + '{"type": "us')
    assert len(found.conversation.messages) == 3
    assert found.notes == ("line 4 is torn and was left out",)


SECRET = "hunter2hunter2"
WRONG = [
    (b"", "is empty"),
    (b" \n\n", "is empty"),
    (b"\xff\xfe\x00", "is not UTF-8"),
    (b"\x1f\x8b\x08\x00", "the gzip is damaged"),
    ("hello", "is not JSON"),
    ('[{"role": "user", ', "line 1: is not JSON"),
    (lines(TALK[:1]) + f'{{"password": "{SECRET}\n' + lines(TALK), "line 2: is not JSON"),
    (lines(TALK, end='\n{"role": "us\n'), "line 3: is not JSON"),
    (lines(TALK[:1]) + "3\n", "line 2: is no object"),
    ("3", "holds no messages"),
    ("{}", "holds no messages"),
    ('{"messages": {}}', "holds no messages"),
    ("[]", "holds no messages"),
    ("[1, 2]", "messages[0]: is no message"),
    ('[{"role": "robot", "content": "x"}]', "messages[0].role: unknown role (got 'robot')"),
    (f'[{{"role": "user", "content": {{"password": "{SECRET}"}}}}]', "content is neither"),
    (lines([{"type": "x"}] * 2), "unknown role"),
    (lines(ROLLOUT[:2]), "holds no messages"),
    ("[" * 100_000, "is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "told"), WRONG, ids=[told[:24] for _, told in WRONG])
def test_what_is_wrong_with_a_file(opened, content, told):
    with pytest.raises(SourceError) as caught:
        opened(content, "bad.json")
    message = str(caught.value)
    assert "bad.json" in message
    assert told in message
    assert SECRET not in message
    assert caught.value.remedy
    assert "\n" not in message


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SourceError, match=r"nowhere\.json: No such file"):
        open_conversation(tmp_path / "nowhere.json")
    with pytest.raises(SourceError, match="Is a directory"):
        open_conversation(tmp_path)


def test_an_unknown_format(opened):
    with pytest.raises(InputError, match=r"unknown format .got 'langchain'.*anthropic"):
        opened(json.dumps(TALK), wire_format="langchain")


ANTHROPIC_CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "b"}]}
CHAT_CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "function": {"name": "b", "arguments": "{}"}}],
}
ITEM_CALL = {"type": "function_call", "call_id": "c", "name": "b", "arguments": "{}"}
OWN = {
    "anthropic": ANTHROPIC_CALL,
    "openai_chat": CHAT_CALL,
    "openai_responses": ITEM_CALL,
    "claude_code": TRANSCRIPT[1],
}


@pytest.mark.parametrize("named", OWN)
@pytest.mark.parametrize("own", OWN)
def test_a_format_that_messages_do_not_have_is_refused_at_the_first(opened, own, named):
    talk = json.dumps([OWN[own]] if own == "claude_code" else [TALK[0], OWN[own], OWN[own]])
    if own == named:
        assert opened(talk, wire_format=named).conversation.wire_format.name == named
        return
    first = 0 if "claude_code" in (own, named) else 1
    with pytest.raises(SourceError, match=rf"talk\.json, messages\[{first}\]: is no message of"):
        opened(talk, wire_format=named)


def test_a_log_of_another_format_is_refused(opened):
    with pytest.raises(SourceError, match=r"messages\[0\].*openai_chat: it is of claude_code"):
        opened(lines(TRANSCRIPT), wire_format="openai_chat")
    with pytest.raises(SourceError, match=r"messages\[0\].*anthropic: it is of openai_responses"):
        opened(lines(ROLLOUT), wire_format="anthropic")


def test_what_is_saved_opens_again_as_it_was(opened, tmp_path):
    for number, content in enumerate((json.dumps(TALK), lines(TRANSCRIPT), lines(ROLLOUT))):
        found = opened(content)
        path = tmp_path / f"saved{number}"
        size = save_conversation(path, found.conversation, found.body)
        assert path.stat().st_size == size
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        again = open_conversation(path, found.conversation.wire_format.name)
        assert list(again.conversation.source) == list(found.conversation.source)
    assert (tmp_path / "saved1").read_text() == lines(TRANSCRIPT)


def test_a_body_keeps_its_other_fields(opened, tmp_path):
    body = {"model": "m", "input": TALK, "store": False}
    found = opened(json.dumps(body))
    save_conversation(tmp_path / "saved", found.conversation, found.body)
    assert json.loads((tmp_path / "saved").read_text()) == body


def test_nothing_is_overwritten(opened, tmp_path):
    found = opened(json.dumps(TALK))
    with pytest.raises(InputError, match="is there already"):
        save_conversation(tmp_path / "talk.json", found.conversation)
    assert json.loads((tmp_path / "talk.json").read_text()) == TALK


@pytest.mark.parametrize("kind", [[], {}, 3, None])
def test_fields_of_types_that_no_api_sends(opened, kind):
    for content in ([{"type": kind, "text": "x"}], [{"type": "tool_result", "content": kind}]):
        for talk in (
            [{"role": "user", "content": content}],
            [{"role": kind, "content": content}],
            [{"type": kind, "role": "user", "content": "x"}],
        ):
            try:
                found = opened(json.dumps(talk))
            except SourceError as error:
                assert "talk.json" in str(error)  # noqa: PT017 - either of two outcomes is right
            else:
                assert len(found.conversation.messages) == 1


@pytest.mark.parametrize("usage", [3, [], {"input_tokens": "x"}, {"input_tokens": 0}])
def test_usage_that_nobody_can_read_tells_no_prefix(opened, usage):
    torn = json.loads(json.dumps(TRANSCRIPT))
    torn[2]["message"]["usage"] = usage
    assert opened(lines(torn)).prefix_tokens == 0


@pytest.mark.parametrize("broken", [[], {}, 3])
def test_a_rollout_with_fields_of_other_types(opened, broken):
    more = [{"type": "compacted", "payload": {"replacement_history": broken}}] if broken else []
    odd = [{"type": broken, "payload": {}}, {"type": "turn_context", "payload": {"model": broken}}]
    found = opened(lines([*more, *odd, *ROLLOUT]))
    assert found.model == "gpt-x"
    assert len(found.conversation.messages) == 1


def test_a_log_of_another_agent_is_no_empty_conversation(opened):
    """Pi's entries have types and messages as Claude Code's do, but the types are others."""
    entries = [
        {"type": "session", "id": "s", "cwd": "/w"},
        {"type": "message", "id": "1", "message": {"role": "user", "content": "hi"}},
        {"type": "user", "uuid": "2", "message": None},
    ]
    with pytest.raises(SourceError, match="Give a JSON list of messages"):
        opened("\n".join(map(json.dumps, entries)), "talk.jsonl")
