"""The providers' and LangChain's own models take what strategies return."""

import inspect

import pytest

from strategies.compact_tool import tool_schema
from strategies.registry import strategy
from strategies.server_side import ServerSide
from strategies.situation import Situation

pytestmark = pytest.mark.disable_socket

FORCED = Situation(force=True)


def each(tmp_path):
    return [
        strategy("sliding_window", keep_last=2),
        strategy("token_budget", budget_tokens=50),
        strategy("micro", keep=0),
        strategy("tail_digest", keep_recent=2, bulky_tokens=50),
        strategy("summarize", model=lambda request: "brief", keep_recent=2),
        strategy("auto", model=lambda request: "brief", transcripts=tmp_path),
    ]


def anthropic_session():
    use = {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "file\n" * 300}
    return [
        {"role": "user", "content": "list the files, please"},
        {"role": "assistant", "content": [{"type": "text", "text": "so"}, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "there are many"},
        {"role": "user", "content": [{"type": "text", "text": "thanks"}]},
        {"role": "assistant", "content": "welcome"},
    ]


def chat_session():
    call = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    return [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "list the files, please"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "file\n" * 300},
        {"role": "assistant", "content": "there are many"},
        {"role": "user", "content": "thanks"},
        {"role": "assistant", "content": "welcome"},
    ]


def responses_session():
    return [
        {"role": "developer", "content": "be good"},
        {"role": "user", "content": "list the files, please"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "file\n" * 300},
        {"role": "assistant", "content": "there are many"},
        {"role": "user", "content": "thanks"},
        {"role": "assistant", "content": "welcome"},
    ]


def check(messages, kind, tmp_path):
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(list[kind])
    for chosen in each(tmp_path):
        result = chosen.compact(messages, FORCED)
        assert result.changed, (chosen.name, result.reason)
        # Lists of a TypedDict are lazy iterators once parsed: they are checked as they are read.
        for parsed in adapter.validate_python(list(result.messages)):
            content = parsed.get("content")
            if content is not None and not isinstance(content, str):
                list(content)


def test_anthropic_parses_them(tmp_path):
    types = pytest.importorskip("anthropic.types", reason="the Anthropic SDK is not installed")
    check(anthropic_session(), types.MessageParam, tmp_path)


def test_openai_chat_parses_them(tmp_path):
    types = pytest.importorskip("openai.types.chat", reason="the OpenAI SDK is not installed")
    check(chat_session(), types.ChatCompletionMessageParam, tmp_path)


def test_openai_responses_parses_them(tmp_path):
    types = pytest.importorskip("openai.types.responses", reason="the OpenAI SDK is not installed")
    check(responses_session(), types.ResponseInputItemParam, tmp_path)


def test_anthropic_takes_the_server_s_parameters():
    anthropic = pytest.importorskip("anthropic", reason="the Anthropic SDK is not installed")
    pydantic = pytest.importorskip("pydantic")
    from anthropic.types import beta  # noqa: PLC0415 - only where it is installed

    client = anthropic.Anthropic(api_key="none")
    known = inspect.signature(client.beta.messages.create).parameters
    threshold = ServerSide("anthropic_threshold", instructions="Keep decisions.", pause=True)
    asked = threshold.parameters(anthropic_session())
    demand = ServerSide("anthropic", instructions="Keep decisions.").parameters(anthropic_session())
    assert set(asked) | set(demand) <= set(known)
    for name, kind, value in (
        ("context_management", beta.BetaContextManagementConfigParam, asked),
        ("compaction", beta.BetaCompactionConfigParam, demand),
    ):
        strict = pydantic.TypeAdapter(kind, config=None)
        assert strict.validate_python(value[name])
    assert pydantic.TypeAdapter(beta.BetaToolParam).validate_python(tool_schema("anthropic"))


def test_openai_takes_the_server_s_parameters():
    openai = pytest.importorskip("openai", reason="the OpenAI SDK is not installed")
    client = openai.OpenAI(api_key="none")
    known = inspect.signature(client.responses.compact).parameters
    assert set(ServerSide("openai").parameters(responses_session())) <= set(known)


def test_langchain_s_own_messages(tmp_path):
    lc = pytest.importorskip("langchain_core.messages", reason="LangChain is not installed")
    call = {"name": "bash", "args": {"command": "ls"}, "id": "a"}
    messages = [
        lc.SystemMessage("be good", id="0"),
        lc.HumanMessage("list the files, please", id="1"),
        lc.AIMessage("", tool_calls=[call], id="2"),
        lc.ToolMessage("file\n" * 300, tool_call_id="a", id="3"),
        lc.AIMessage("there are many", id="4"),
        lc.HumanMessage("thanks", id="5"),
        lc.AIMessage("welcome", id="6"),
    ]
    for chosen in each(tmp_path):
        result = chosen.compact(messages, FORCED)
        assert result.changed, (chosen.name, result.reason)
        assert result.messages[0] is messages[0]
        assert all(isinstance(message, lc.BaseMessage) for message in result.messages)
        lc.convert_to_messages([message.model_dump() for message in result.messages])
    micro = strategy("micro", keep=0).compact(messages).messages[3]
    assert (micro.content, micro.id, micro.tool_call_id) == ("[Previous: used bash]", "3", "a")
    assert messages[3].content.startswith("file")


def test_a_langgraph_state_takes_the_result():
    graph = pytest.importorskip("langgraph.graph.message", reason="LangGraph is not installed")
    lc = pytest.importorskip("langchain_core.messages")
    messages = [
        lc.SystemMessage("be good", id="0"),
        lc.HumanMessage("long " * 400, id="1"),
        lc.AIMessage("answer " * 400, id="2"),
        lc.HumanMessage("and now?", id="3"),
        lc.AIMessage("done", id="4"),
    ]
    chosen = strategy("summarize", model=lambda request: "brief", keep_recent=2)
    result = chosen.compact(messages, FORCED)
    update = [lc.RemoveMessage(id=graph.REMOVE_ALL_MESSAGES), *result.messages]
    state = graph.add_messages(messages, update)
    assert [message.type for message in state] == ["system", "human", "human", "ai"]
    assert state[-1] is messages[-1] or state[-1] == messages[-1]
