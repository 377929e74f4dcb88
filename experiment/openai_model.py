"""A model of OpenAI's through its SDK: Chat Completions, whose cache is automatic."""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from experiment.model import Reply
from experiment.sdk import MOST_OUTPUT_TOKENS, client_of, refusals, sdk_of
from experiment.tools import TOOL_SCHEMAS
from ledger.usage import usage_from

__all__ = ["OpenAIModel", "chat_messages"]


class OpenAIModel:
    """A model behind OpenAI's Chat Completions API, or one that speaks it.

    Parameters
    ----------
    name : str
        The model. Key and address are ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL``.

    Raises
    ------
    MissingExtraError
        The SDK is not installed.
    InputError
        The key is not set.
    """

    def __init__(self, name: str) -> None:
        self._sdk = sdk_of("openai")
        self._client = client_of(self._sdk.OpenAI, self)
        self._name = name

    def answer(self, messages: Sequence[BaseMessage], *, with_tools: bool = True) -> Reply:
        """Answer one request."""
        tools = {"tools": _TOOLS} if with_tools else {}
        with refusals(self._sdk, "openai"):
            told = self._client.chat.completions.create(
                model=self._name,
                messages=chat_messages(messages),
                max_completion_tokens=MOST_OUTPUT_TOKENS,
                **tools,
            )
        usage = usage_from(told.usage.model_dump(exclude_none=True), "openai_chat")
        return Reply(_answer(told.choices[0].message), usage)


_TOOLS = [{"type": "function", "function": dict(each)} for each in TOOL_SCHEMAS]


def _answer(message: Any) -> AIMessage:
    calls = [
        {
            "name": call.function.name,
            "args": _arguments(call.function.arguments),
            "id": call.id,
        }
        for call in message.tool_calls or ()
        if call.type == "function"
    ]
    return AIMessage(message.content or "", tool_calls=calls)


def _arguments(text: str) -> dict[str, Any]:
    """Return a call's arguments; none where they are no JSON, which the tool then says is wrong."""
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def chat_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as Chat Completions takes them."""
    return [_chat(one) for one in messages]


def _chat(message: BaseMessage) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}
    if isinstance(message, SystemMessage):
        return {"role": "system", "content": message.text}
    if not isinstance(message, AIMessage):
        return {"role": "user", "content": message.text}
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.text} | ({"tool_calls": calls} if calls else {})
