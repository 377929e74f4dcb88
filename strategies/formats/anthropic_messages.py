"""Anthropic Messages: results are blocks of a user message, thinking goes before the calls."""

from collections.abc import Sequence
from typing import Any, cast

from strategies.conversation import Message, Part, Role, message_of
from strategies.formats.blocks import block_part, content_parts, role_of, text_and_images
from strategies.raw_fields import changed, field_of, is_list, kind_of, size_of

__all__ = ["AnthropicMessages", "block_parts", "with_block_results"]

_ROLES = ("user", "assistant", "system")
_TELLING = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "compaction"})


class AnthropicMessages:
    """Entries ``{"role", "content"}`` with content blocks."""

    name = "anthropic"

    def tells(self, raw: Any) -> bool:
        """Whether an entry holds a block that only this format has."""
        content = field_of(raw, "content")
        if field_of(raw, "role") not in _ROLES or not is_list(content):
            return False
        return any(kind_of(block) in _TELLING for block in content)

    def messages(self, raws: Sequence[Any]) -> list[Message]:
        """Return the view of every entry."""
        found = []
        for index, raw in enumerate(raws):
            role = cast(Role, role_of(raw, index, _ROLES))
            parts = block_parts(field_of(raw, "content"), index)
            found.append(message_of(role, parts, raw))
        return found

    def with_results(self, message: Message, texts: dict[int, str]) -> Any:
        """Return a copy of the message with other results."""
        content = with_block_results(field_of(message.raw, "content"), texts)
        return changed(message.raw, content=content)

    def user_text(self, text: str, following: Any) -> Any:
        """Return a user message."""
        del following
        return {"role": "user", "content": text}


def block_parts(content: Any, index: int) -> list[Part]:
    """Return the parts of a content that may hold thinking, calls and results."""
    if not is_list(content):
        return list(content_parts(content, index))
    return [_part(block, place) for place, block in enumerate(content)]


def with_block_results(content: Any, texts: dict[int, str]) -> list[Any]:
    """Return a content with other results; its other blocks are the same objects."""
    return [
        changed(block, content=texts[place]) if place in texts else block
        for place, block in enumerate(content)
    ]


def _part(block: Any, place: int) -> Part:
    kind = field_of(block, "type")
    if kind == "text":
        return block_part(block, place)
    if kind == "tool_use":
        arguments, name = field_of(block, "input"), str(field_of(block, "name") or "")
        size = len(name) + size_of(arguments)
        call_id = str(field_of(block, "id") or "")
        return Part("tool_call", "", call_id, name, arguments, place, characters=size)
    if kind == "tool_result":
        text, characters, images = text_and_images(field_of(block, "content"))
        result_of = str(field_of(block, "tool_use_id") or "")
        failed = bool(field_of(block, "is_error"))
        return Part("tool_result", text, result_of, "", None, place, failed, characters, images)
    if kind in ("thinking", "redacted_thinking"):
        text = str(field_of(block, "thinking") or "")
        size = len(text) or size_of(field_of(block, "data"))
        return Part("thinking", text, place=place, characters=size)
    if kind == "compaction":
        text = str(field_of(block, "content") or "")
        return Part("compaction", text, place=place, characters=len(text))
    return block_part(block, place)
