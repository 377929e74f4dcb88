"""Sizes of messages and tools, in estimated tokens: characters ÷ 4, as strategies count."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from experiment.prefix_cache import Block
from strategies.tokens import estimated_tokens

__all__ = ["block_of", "message_tokens", "messages_tokens", "tools_block"]


def message_tokens(message: BaseMessage) -> int:
    """Return the tokens of one message: its text, and the name and arguments of its calls."""
    return _tokens(message.text) + sum(
        _tokens(call["name"] + json.dumps(call["args"])) for call in _calls(message)
    )


def messages_tokens(messages: Iterable[Any]) -> int:
    """Return the tokens of messages."""
    return sum(message_tokens(one) for one in messages)


def block_of(message: BaseMessage) -> Block:
    """Return a message as a cache sees it; the id that a graph gives it is never sent."""
    answers = message.tool_call_id if isinstance(message, ToolMessage) else ""
    sent = [message.type, message.text, _calls(message), answers]
    return Block(json.dumps(sent).encode(), message_tokens(message))


def tools_block(schemas: Sequence[Mapping[str, Any]]) -> Block:
    """Return the tools as a cache sees them."""
    text = json.dumps(schemas)
    return Block(text.encode(), _tokens(text))


def _calls(message: BaseMessage) -> list[dict[str, Any]]:
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return [{"name": call["name"], "args": call["args"], "id": call["id"]} for call in calls]


@lru_cache(maxsize=8_192)
def _tokens(text: str) -> int:
    return estimated_tokens(text)
