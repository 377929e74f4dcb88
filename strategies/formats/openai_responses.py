"""OpenAI Responses: a flat list of items; reasoning items go before what they led to."""

from collections.abc import Sequence
from typing import Any, cast

from strategies.conversation import Message, Part, Role, message_of
from strategies.formats.blocks import content_parts, listed, malformed, role_of, text_and_images
from strategies.raw_fields import changed, field_of, kind_of, size_of

__all__ = ["OpenAIResponses"]

_ROLES = ("system", "developer", "user", "assistant")
_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
#: Items that keep what the server made of everything before them.
_COMPACTIONS = frozenset({"compaction", "compaction_summary"})


class OpenAIResponses:
    """Items ``{"type", …}``; messages may leave the type out."""

    name = "openai_responses"

    def tells(self, raw: Any) -> bool:
        """Whether an item is of a type, or holds a block, that only this format has."""
        kind = kind_of(raw)
        if _is_call(kind) or _is_output(kind):
            return True
        if kind in {"reasoning", "item_reference", *_COMPACTIONS}:
            return True
        if kind == "message" and field_of(raw, "role") in _ROLES:
            return True
        content = field_of(raw, "content")
        if field_of(raw, "role") not in _ROLES or not isinstance(content, list | tuple):
            return False
        return any(kind_of(block) in _BLOCKS for block in content)

    def messages(self, raws: Sequence[Any]) -> list[Message]:
        """Return the view of every item."""
        return [_message(raw, index) for index, raw in enumerate(raws)]

    def with_results(self, message: Message, texts: dict[int, str]) -> Any:
        """Return a copy of the item with another output."""
        return changed(message.raw, output=texts[-1])

    def user_text(self, text: str, following: Any) -> Any:
        """Return a user message."""
        del following
        return {"role": "user", "content": text}


def _is_call(kind: str) -> bool:
    return kind.endswith("_call") or kind == "mcp_approval_request"


def _is_output(kind: str) -> bool:
    return kind.endswith("_call_output") or kind == "mcp_approval_response"


def _message(raw: Any, index: int) -> Message:
    kind = field_of(raw, "type")
    if kind is None or kind == "message":
        role = role_of(raw, index, _ROLES)
        seen = cast(Role, "system" if role == "developer" else role)
        return message_of(seen, list(content_parts(field_of(raw, "content"), index)), raw)
    if not isinstance(kind, str):
        raise malformed("type is no text", index, kind, "Give the items as the API sent them.")
    if kind in _COMPACTIONS:
        size = size_of(field_of(raw, "encrypted_content"))
        return message_of("assistant", [Part("compaction", characters=size)], raw)
    if _is_output(kind):
        return message_of("tool", [_output(raw, kind)], raw)
    if _is_call(kind):
        return message_of("assistant", [_call(raw, kind)], raw)
    if kind == "reasoning":
        return message_of("assistant", [_reasoning(raw, index)], raw)
    return message_of("other", [Part("other", characters=size_of(raw))], raw)


def _call(raw: Any, kind: str) -> Part:
    call_id = field_of(raw, "call_id")
    if call_id is None and kind == "mcp_approval_request":
        call_id = field_of(raw, "id")
    if call_id is None:
        # Calls that the server answers itself have no output of their own.
        return Part("other", characters=size_of(raw))
    name = str(field_of(raw, "name") or kind.removesuffix("_call"))
    arguments = field_of(raw, "arguments", field_of(raw, "input", field_of(raw, "action")))
    size = len(name) + size_of(arguments)
    return Part("tool_call", "", str(call_id), name, arguments, characters=size)


def _output(raw: Any, kind: str) -> Part:
    if kind == "mcp_approval_response":
        return Part("tool_result", "", str(field_of(raw, "approval_request_id") or ""), place=-2)
    call_id = str(field_of(raw, "call_id") or "")
    output = field_of(raw, "output")
    if kind not in ("function_call_output", "custom_tool_call_output"):
        # Outputs of built-in tools have a form that a text may not replace.
        return Part("tool_result", "", call_id, place=-2, characters=size_of(output))
    text, characters, images = text_and_images(output)
    return Part("tool_result", text, call_id, characters=characters, images=images)


def _reasoning(raw: Any, index: int) -> Part:
    summary = listed(raw, "summary", index)
    text = "\n".join(str(field_of(block, "text") or "") for block in summary)
    return Part(
        "thinking", text, characters=len(text) + size_of(field_of(raw, "encrypted_content"))
    )
