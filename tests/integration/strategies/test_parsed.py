"""On generated conversations: the SDKs' and LangChain's own models take what strategies return."""

import os

import anthropic.types.beta
import langchain_core.messages as lc
import openai.types.chat
import openai.types.responses
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_anthropic.chat_models import _format_messages
from langchain_openai.chat_models.base import _convert_message_to_dict
from pydantic import TypeAdapter

from tests.unit.strategies.conversations import plans, written
from tests.unit.strategies.provider_rules import problems
from tests.unit.strategies.test_laws import FORCED, MAKERS, ONLY

pytestmark = pytest.mark.disable_socket

EXAMPLES = int(os.environ.get("LAW_EXAMPLES", "12"))
ADAPTERS = {
    "anthropic": TypeAdapter(list[anthropic.types.beta.BetaMessageParam]),
    "openai_chat": TypeAdapter(list[openai.types.chat.ChatCompletionMessageParam]),
    "openai_responses": TypeAdapter(list[openai.types.responses.ResponseInputItemParam]),
}
LANGCHAIN = {"system": lc.SystemMessage, "human": lc.HumanMessage, "tool": lc.ToolMessage}


def parse(name, messages):
    """Have the SDK's types check messages; what they leave lazy is looked at as well."""
    for parsed in ADAPTERS[name].validate_python(list(messages)):
        content = parsed.get("content")
        if content is not None and not isinstance(content, str):
            list(content)


def as_langchain(messages):
    """Return real messages of LangChain for the stand-ins that the plans are written in."""
    made = []
    for each in messages:
        if each.type == "ai":
            calls = [dict(call) for call in each.tool_calls]
            made.append(lc.AIMessage(each.content, tool_calls=calls, id=each.id))
        else:
            more = {"tool_call_id": each.tool_call_id} if each.type == "tool" else {}
            made.append(LANGCHAIN[each.type](each.content, id=each.id, **more))
    return made


def parse_langchain(messages):
    """Have LangChain read its own dumps, and write them for both providers."""
    again = lc.convert_to_messages([message.model_dump() for message in messages])
    assert [type(message) for message in again] == [type(message) for message in messages]
    assert problems("langchain", messages) == []
    parse("openai_chat", [_convert_message_to_dict(message) for message in messages])
    _, sent = _format_messages(messages, model="claude-opus-4-8")
    parse("anthropic", sent)


@pytest.mark.parametrize("name", [*ADAPTERS, "langchain"])
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), keep=st.integers(0, 6))
def test_their_models_take_every_output(name, plan, keep):
    for made, make in MAKERS.items():
        if ONLY.get(made, name) != name:
            continue
        messages = written(plan, name, asks=made == "compact_tool")
        if name == "langchain":
            messages = as_langchain(messages)
            parse_langchain(make(keep).compact(messages, FORCED).messages)
        else:
            parse(name, make(keep).compact(messages, FORCED).messages)
