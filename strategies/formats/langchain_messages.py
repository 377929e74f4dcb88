"""LangChain messages, as graphs hold them: objects with a type, calls and results by id."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from compactuary.errors import MissingExtraError
from strategies.conversation import Message, Part, Role, message_of
from strategies.formats.blocks import block_part, content_parts, listed, malformed, text_and_images
from strategies.raw_fields import changed, field_of, is_list, kind_of, size_of

__all__ = ["LangChainMessages"]

_ROLES: dict[str, Role] = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
_CALLS = frozenset({"tool_use", "tool_call", "function_call"})
_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})


class LangChainMessages:
    """Objects of ``langchain_core.messages``."""

    name = "langchain"

    def tells(self, raw: Any) -> bool:
        """Whether an entry is an object with LangChain's fields."""
        return not isinstance(raw, Mapping) and hasattr(raw, "additional_kwargs")

    def messages(self, raws: Sequence[Any]) -> list[Message]:
        """Return the view of every message."""
        return [_message(raw, index) for index, raw in enumerate(raws)]

    def with_results(self, message: Message, texts: dict[int, str]) -> Any:
        """Return a copy of the message with another result; its id stays."""
        return changed(message.raw, content=texts[-1])

    def user_text(self, text: str, following: Any) -> Any:
        """Return a HumanMessage.

        Raises
        ------
        MissingExtraError
            LangChain is not installed, and so the messages can't be its own.
        """
        del following
        try:
            return import_module("langchain_core.messages").HumanMessage(content=text)
        except ModuleNotFoundError as error:
            remedy = "Install langchain-core, whose messages these claim to be"
            raise MissingExtraError("langchain_core is missing", remedy=remedy) from error


def _message(raw: Any, index: int) -> Message:
    # Chunks that a stream left behind are messages of their kind.
    kind = str(field_of(raw, "type") or "").removesuffix("MessageChunk").lower()
    role = _ROLES.get(kind)
    if role is None:
        remedy = f"Known: {', '.join(_ROLES)}."
        raise malformed("unknown type of message", index, field_of(raw, "type"), remedy)
    content = field_of(raw, "content")
    if role == "tool":
        text, characters, images = text_and_images(content)
        call_id = str(field_of(raw, "tool_call_id") or "")
        failed = field_of(raw, "status") == "error"
        part = Part("tool_result", text, call_id, "", None, -1, failed, characters, images)
        return message_of("tool", [part], raw)
    if role != "assistant":
        return message_of(role, list(content_parts(content, index)), raw)
    return message_of(role, [*_spoken(content, index), *_calls(raw, index)], raw)


def _spoken(content: Any, index: int) -> Iterator[Part]:
    """Yield what an answer says; blocks that repeat a call are left to `tool_calls`."""
    if not is_list(content):
        yield from content_parts(content, index)
        return
    for place, block in enumerate(content):
        kind = kind_of(block)
        if kind in _THINKING:
            text = str(field_of(block, "thinking") or field_of(block, "reasoning") or "")
            yield Part("thinking", text, place=place, characters=len(text) or size_of(block))
        elif kind not in _CALLS:
            yield block_part(block, place)


def _calls(raw: Any, index: int) -> Iterator[Part]:
    named = (listed(raw, "tool_calls", index), listed(raw, "invalid_tool_calls", index))
    for call in (call for calls in named for call in calls):
        name, arguments = str(field_of(call, "name") or ""), field_of(call, "args")
        size = len(name) + size_of(arguments)
        call_id = str(field_of(call, "id") or "")
        yield Part("tool_call", "", call_id, name, arguments, characters=size)
