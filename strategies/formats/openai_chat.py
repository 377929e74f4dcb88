"""OpenAI Chat Completions: calls are a field of the assistant's message, results have a role."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from strategies.conversation import Message, Part, Role, message_of
from strategies.formats.blocks import content_parts, listed, malformed, role_of, text_and_images
from strategies.raw_fields import changed, field_of, size_of

__all__ = ["OpenAIChat"]

_ROLES = ("system", "developer", "user", "assistant", "tool")


class OpenAIChat:
    """Entries ``{"role", "content", "tool_calls"}``."""

    name = "openai_chat"

    def tells(self, raw: Any) -> bool:
        """Whether an entry holds a call or a result as only this format has them."""
        role = field_of(raw, "role")
        return role == "tool" or (role == "assistant" and bool(field_of(raw, "tool_calls")))

    def messages(self, raws: Sequence[Any]) -> list[Message]:
        """Return the view of every entry."""
        return [_message(raw, index) for index, raw in enumerate(raws)]

    def with_results(self, message: Message, texts: dict[int, str]) -> Any:
        """Return a copy of the message with another result."""
        return changed(message.raw, content=texts[-1])

    def user_text(self, text: str, following: Any) -> Any:
        """Return a user message."""
        del following
        return {"role": "user", "content": text}


def _message(raw: Any, index: int) -> Message:
    role = role_of(raw, index, _ROLES)
    content = field_of(raw, "content")
    if role == "tool":
        text, characters, images = text_and_images(content)
        call_id = str(field_of(raw, "tool_call_id") or "")
        result = Part("tool_result", text, call_id, characters=characters, images=images)
        return message_of("tool", [result], raw)
    parts = list(content_parts(content, index))
    if role == "assistant":
        parts += _calls(raw, index)
    seen = "system" if role == "developer" else role
    return message_of(cast(Role, seen), parts, raw)


def _calls(raw: Any, index: int) -> Iterator[Part]:
    if field_of(raw, "function_call"):
        remedy = "Use tool_calls, whose results name their call."
        raise malformed("function_call has no id", index, "function_call", remedy)
    for call in listed(raw, "tool_calls", index):
        inner = field_of(call, "function") or field_of(call, "custom")
        name = str(field_of(inner, "name") or "")
        arguments = field_of(inner, "arguments", field_of(inner, "input"))
        size = len(name) + size_of(arguments)
        call_id = str(field_of(call, "id") or "")
        yield Part("tool_call", "", call_id, name, arguments, characters=size)
