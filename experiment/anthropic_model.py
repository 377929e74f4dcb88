"""A model of Anthropic's through its SDK; system prompt and last message end in breakpoints."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from experiment.model import Reply
from experiment.sdk import MOST_OUTPUT_TOKENS, client_of, refusals, sdk_of
from experiment.tools import TOOL_SCHEMAS
from ledger.usage import usage_from

__all__ = ["AnthropicModel", "anthropic_messages"]

_CACHED = {"type": "ephemeral"}
#: Says nothing, where a compaction left no prompt at the beginning: a user has to begin.
_GO_ON = "Go on."


class AnthropicModel:
    """A model behind Anthropic's Messages API.

    Parameters
    ----------
    name : str
        The model. Key and address are ``ANTHROPIC_API_KEY`` and ``ANTHROPIC_BASE_URL``.

    Raises
    ------
    MissingExtraError
        The SDK is not installed.
    InputError
        The key is not set.
    """

    def __init__(self, name: str) -> None:
        self._sdk = sdk_of("anthropic")
        self._client = client_of(self._sdk.Anthropic, self)
        self._name = name

    def answer(self, messages: Sequence[BaseMessage], *, with_tools: bool = True) -> Reply:
        """Answer one request."""
        system, said = anthropic_messages(messages)
        with refusals(self._sdk, "anthropic"):
            told = self._client.messages.create(
                model=self._name,
                max_tokens=MOST_OUTPUT_TOKENS,
                messages=said,
                tools=_TOOLS,
                # Messages with calls in them are refused without any tools.
                tool_choice={"type": "auto" if with_tools else "none"},
                **({"system": system} if system else {}),
            )
        usage = usage_from(told.usage.model_dump(exclude_none=True), "anthropic")
        return Reply(_answer(told.content), usage)


_TOOLS = [
    {
        "name": each["name"],
        "description": each["description"],
        "input_schema": each["parameters"],
    }
    for each in TOOL_SCHEMAS
]


def _answer(content: Sequence[Any]) -> AIMessage:
    text = "".join(block.text for block in content if block.type == "text")
    calls = [
        {"name": block.name, "args": dict(block.input), "id": block.id}
        for block in content
        if block.type == "tool_use"
    ]
    return AIMessage(text, tool_calls=calls)


def anthropic_messages(
    messages: Sequence[BaseMessage],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return system prompt and turns, each with a breakpoint at its end.

    System messages come together wherever they stood; messages of one role become one turn.
    """
    system = [_text(one) for one in messages if isinstance(one, SystemMessage)]
    turns: list[dict[str, Any]] = []
    for one in messages:
        blocks = [] if isinstance(one, SystemMessage) else _blocks(one)
        role = "assistant" if isinstance(one, AIMessage) else "user"
        if not blocks:
            continue
        if not turns and role == "assistant":
            turns.append(_go_on())
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    turns = turns or [_go_on()]
    for blocks in (system, turns[-1]["content"]):
        if blocks:
            blocks[-1]["cache_control"] = _CACHED
    return system, turns


def _go_on() -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": _GO_ON}]}


def _text(message: BaseMessage) -> dict[str, Any]:
    return {"type": "text", "text": message.text}


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        return [
            {
                "type": "tool_result",
                "tool_use_id": message.tool_call_id,
                "content": message.text,
                "is_error": message.status == "error",
            }
        ]
    said = [_text(message)] if message.text.strip() else []
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return [
        *said,
        *(
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
            for call in calls
        ),
    ]
