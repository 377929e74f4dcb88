"""The neutral view of a conversation: what strategies see, whatever format its messages have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "IMAGE_CHARACTERS",
    "IMAGE_TOKENS",
    "MEMORY_MARK",
    "SUMMARY_MARK",
    "Conversation",
    "Message",
    "Part",
    "PartKind",
    "Role",
    "WireFormat",
    "message_of",
]

Role = Literal["system", "user", "assistant", "tool", "other"]
PartKind = Literal["text", "thinking", "tool_call", "tool_result", "image", "compaction", "other"]

#: What a token is taken to hold until usage or a provider's counter tells better.
CHARACTERS_PER_TOKEN = 4
#: About what the largest image costs once the provider has scaled it down.
IMAGE_TOKENS = 1_600
IMAGE_CHARACTERS = IMAGE_TOKENS * CHARACTERS_PER_TOKEN

#: How the synthetic messages begin, so that a later compaction knows them.
SUMMARY_MARK = "[earlier conversation summary]"
MEMORY_MARK = "[working memory]"


class Part(NamedTuple):
    """One part of a message.

    Parameters
    ----------
    kind : str
        What it is; 'compaction' is a block in which a provider keeps its own summary.
    text : str
        Text, thinking, or what a tool result says.
    id : str
        Of a call, in the call and in its result.
    name : str
        Of the tool, in a call.
    arguments : object
        Of a call, as they came: a mapping, or JSON text.
    place : int
        Index of the block in the message's content; −1 where the content is no list.
    failed : bool
        Whether a tool result tells of an error.
    characters : int
        What it adds to the request.
    images : int
        How many images it holds.
    """

    kind: PartKind
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: Any = None
    place: int = -1
    failed: bool = False
    characters: int = 0
    images: int = 0


class Message(NamedTuple):
    """One message.

    Parameters
    ----------
    role : str
        'tool' where a format gives results a role of their own; 'other' for entries of a log that
        are no messages.
    parts : tuple of Part
    tokens : int
        Estimated, characters ÷ 4.
    raw : object
        The message as the caller holds it.
    group : str
        Name that several entries of one and the same response share; empty without one.
    is_prompt : bool
        Whether a user speaks here: text or an image, and no tool result. A turn starts with it.
    is_synthetic : bool
        Whether an earlier compaction put it there.
    """

    role: Role
    parts: tuple[Part, ...]
    tokens: int
    raw: Any
    group: str = ""
    is_prompt: bool = False
    is_synthetic: bool = False


class WireFormat(Protocol):
    """How one format of messages is read, changed and written."""

    name: str

    def tells(self, raw: Any) -> bool:
        """Whether an entry can be of this format only."""
        ...

    def messages(self, raws: Sequence[Any]) -> list[Message]:
        """Return the view of every entry.

        Raises
        ------
        InputError
            An entry is malformed or its role unknown; names the place.
        """
        ...

    def with_results(self, message: Message, texts: dict[int, str]) -> Any:
        """Return a raw copy of a message with some results' text changed, by place."""
        ...

    def user_text(self, text: str, following: Any) -> Any:
        """Return a raw user message; `following` is the raw entry that comes after, or None."""
        ...


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages and their neutral view.

    Parameters
    ----------
    source : sequence
        What the caller passed; a strategy that changes nothing returns this very object.
    messages : tuple of Message
        One for each entry of `source`, in order.
    wire_format : WireFormat
    frame_tokens : float
        What each part counts beside its text, where usage told it; default 0, none.
    """

    source: Sequence[Any]
    messages: tuple[Message, ...]
    wire_format: WireFormat
    frame_tokens: float = 0.0

    def tokens(self, start: int = 0, stop: int | None = None) -> int:
        """Return the estimated tokens of a slice of the messages."""
        return sum(message.tokens for message in self.messages[start:stop])

    def tokens_held(self, index: int, characters: float) -> float:
        """Return the tokens of some of a message's characters, as the message itself is counted.

        Characters ÷ 4, unless usage told its tokens.
        """
        message = self.messages[index]
        parts = message.parts
        estimated = _estimated(sum(p.characters for p in parts), sum(p.images for p in parts))
        counted = max(message.tokens - self.frame_tokens * len(parts), 0.0)
        share = counted / estimated if estimated else 1.0
        return characters / CHARACTERS_PER_TOKEN * share

    @property
    def head(self) -> int:
        """How many system messages the conversation opens with."""
        for index, message in enumerate(self.messages):
            if message.role != "system":
                return index
        return len(self.messages)

    def last_where(self, holds: Callable[[Message], bool]) -> int:
        """Return the index of the last message for which something holds; −1 without one."""
        for index in range(len(self.messages) - 1, -1, -1):
            if holds(self.messages[index]):
                return index
        return -1

    @property
    def last_prompt(self) -> int:
        """The index of what the user said last, synthetic messages left out; −1 without one."""
        return self.last_where(lambda message: message.is_prompt and not message.is_synthetic)

    @property
    def calls_in_turn(self) -> int:
        """Tool calls made since the user spoke last."""
        return sum(
            part.kind == "tool_call"
            for message in self.messages[self.last_prompt + 1 :]
            for part in message.parts
        )

    def calls(self) -> dict[str, Part]:
        """Return every tool call by its id; of an id used again, the last."""
        return {
            part.id: part
            for message in self.messages
            for part in message.parts
            if part.kind == "tool_call"
        }


def message_of(role: Role, parts: Sequence[Part], raw: Any, group: str = "") -> Message:
    """Return the view of one message from its role and parts."""
    characters = images = 0
    speaks = has_result = False
    first_text = ""
    for part in parts:
        characters += part.characters
        images += part.images
        if part.kind == "tool_result":
            has_result = True
        elif part.kind in ("text", "image"):
            if not speaks:
                first_text = part.text
            speaks = speaks or part.kind == "image" or bool(part.text.strip())
    prompts = role == "user" and speaks and not has_result
    return Message(
        role,
        tuple(parts),
        _estimated(characters, images),
        raw,
        group,
        prompts,
        prompts and first_text.startswith((SUMMARY_MARK, MEMORY_MARK)),
    )


def _estimated(characters: int, images: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN) + images * IMAGE_TOKENS
