"""Which format messages have, and their neutral view."""

from collections.abc import Mapping, Sequence
from typing import Any

from compactuary.errors import InputError
from strategies.conversation import Conversation, WireFormat
from strategies.formats.anthropic_messages import AnthropicMessages
from strategies.formats.blocks import malformed
from strategies.formats.claude_code import ClaudeCode
from strategies.formats.langchain_messages import LangChainMessages
from strategies.formats.openai_chat import OpenAIChat
from strategies.formats.openai_responses import OpenAIResponses
from strategies.raw_fields import field_of

__all__ = ["FORMATS", "format_of", "see"]

FORMATS: Mapping[str, WireFormat] = {
    each.name: each
    for each in (
        LangChainMessages(),
        ClaudeCode(),
        OpenAIResponses(),
        AnthropicMessages(),
        OpenAIChat(),
    )
}


def format_of(messages: Sequence[Any]) -> WireFormat:
    """Return the format of messages, told by the first entry that fits one alone.

    Texts alone are alike in three formats: they are read as OpenAI Chat's where there is a system
    or developer message among them, else as Anthropic's.
    """
    for raw in messages:
        for each in FORMATS.values():
            if each.tells(raw):
                return each
    # A role may be anything here, also what a set can't hold.
    has_system = any(field_of(raw, "role") in ("system", "developer") for raw in messages)
    return FORMATS["openai_chat" if has_system else "anthropic"]


def see(messages: Sequence[Any] | Conversation, wire_format: str | None = None) -> Conversation:
    """Return the neutral view of messages.

    Parameters
    ----------
    messages : sequence or Conversation
        Messages of one format; a view is returned as it is.
    wire_format : str, optional
        One of `FORMATS`; told by the messages unless given.

    Raises
    ------
    InputError
        The format or a role is unknown, or an entry is malformed; names the place.
    """
    if isinstance(messages, Conversation):
        return messages
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        remedy = "Give a list of messages."
        raise InputError("not a list", where="messages", value=messages, remedy=remedy)
    if wire_format is not None and wire_format not in FORMATS:
        remedy = f"Known: {', '.join(FORMATS)}."
        raise InputError("unknown format", where="format", value=wire_format, remedy=remedy)
    for index, raw in enumerate(messages):
        kind = field_of(raw, "type")
        if not (kind is None or isinstance(kind, str)):
            remedy = "Give the messages as the API has them."
            raise malformed("type is no text", index, kind, remedy)
    found = format_of(messages) if wire_format is None else FORMATS[wire_format]
    return Conversation(messages, tuple(found.messages(messages)), found)
