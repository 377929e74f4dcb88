"""Transcripts: a conversation as a text to summarize, and as a file that nothing is lost from."""

import json
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from strategies.conversation import (
    CHARACTERS_PER_TOKEN,
    IMAGE_CHARACTERS,
    Conversation,
    Message,
    Part,
)
from strategies.masking import masked, masked_value
from strategies.outside import escaped, marked, one_line
from strategies.raw_fields import plain

__all__ = [
    "Now",
    "outside_texts",
    "own_texts",
    "render",
    "rendered_tokens",
    "utc_now",
    "write_transcript",
]

Now = Callable[[], datetime]
_MOST_NAMES = 1_000
#: Of a tool, longer than providers let them be, and without what would close the mark it is in.
_MOST_NAME = 200
_NO_BRACKETS = str.maketrans("[]", "()")
#: What `marked` writes around a text, and how a source is named, with a usual tool's name.
_MARK_CHARACTERS, _SOURCE_CHARACTERS, _MOST_SOURCE = 31, 20, 60


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def render(conversation: Conversation, indexes: Iterable[int]) -> str:
    """Return messages as a text for a summarizing model.

    What tools brought in stands between marks with its source, and no line of other text can pass
    for a mark; secrets are masked; thinking is left out.
    """
    calls = conversation.calls()
    told = (_rendered(conversation.messages[index], calls) for index in indexes)
    return "\n\n".join(text for text in told if text)


def _rendered(message: Message, calls: dict[str, Part]) -> str:
    lines = []
    for part in message.parts:
        if part.kind == "text" and part.text:
            lines.append(f"[{message.role}] {_own(part.text)}")
        elif part.kind == "tool_call":
            arguments = part.arguments
            told = arguments if isinstance(arguments, str) else json.dumps(plain(arguments))
            lines.append(f"[{message.role} calls {_name(part.name)}] {_own(told)}")
        elif part.kind == "tool_result":
            failed = " failed" if part.failed else ""
            name = calls[part.id].name if part.id in calls else "unknown"
            source = f"tool {name}{failed}, call {part.id}"
            lines.append(marked(masked(part.text), masked(source)))
        elif part.kind == "compaction" and part.text:
            lines.append(f"[earlier summary] {_own(part.text)}")
        if part.images:
            lines.append(f"[{part.images} image(s), not shown]")
    return "\n".join(lines)


def _own(text: str) -> str:
    # Masked by itself: a key that is cut off must not hide what others say after it.
    return escaped(masked(text))


def _name(name: str) -> str:
    return one_line(masked(name).translate(_NO_BRACKETS), _MOST_NAME)


def rendered_tokens(conversation: Conversation, indexes: Iterable[int]) -> int:
    """Return about how many tokens `render` makes of messages, without rendering them."""
    characters, tokens = 0, 0.0
    for index in indexes:
        message = conversation.messages[index]
        tokens += message.tokens
        for part in message.parts:
            if part.kind == "tool_result":
                source = min(_SOURCE_CHARACTERS + len(part.id), _MOST_SOURCE)
                characters += _MARK_CHARACTERS + source
            elif part.kind == "tool_call":
                characters += len(message.role) + 10
            elif part.kind == "text":
                characters += len(message.role) + 3
            elif part.kind != "compaction":
                tokens -= conversation.tokens_held(index, part.characters)
            if part.images:
                tokens -= conversation.tokens_held(index, part.images * IMAGE_CHARACTERS)
        characters += 2
    return max(int(tokens + characters / CHARACTERS_PER_TOKEN), 0)


def outside_texts(conversation: Conversation) -> list[str]:
    """Return everything that tools brought in."""
    return [
        part.text
        for message in conversation.messages
        for part in message.parts
        if part.kind == "tool_result"
    ]


def own_texts(conversation: Conversation) -> list[str]:
    """Return everything that the user said, and the system prompt's texts."""
    return [
        part.text
        for message in conversation.messages
        if message.role in ("user", "system") and not message.is_synthetic
        for part in message.parts
        if part.kind == "text"
    ]


def write_transcript(conversation: Conversation, folder: Path, now: Now = utc_now) -> Path:
    """Write every message as a JSON line, secrets masked, to a new file that its owner alone reads.

    Parameters
    ----------
    conversation : Conversation
    folder : Path
        Made if it is not there.
    now : callable
        Tells the time that names the file: ``transcript_20261130T221318123456Z.jsonl``.

    Raises
    ------
    OSError
        The file can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for message in conversation.messages:
        raw = message.raw
        value = json.loads(raw) if isinstance(raw, str) else plain(raw)
        lines.append(json.dumps(masked_value(value), ensure_ascii=False))
    stem = f"transcript_{now().astimezone(UTC):%Y%m%dT%H%M%S%f}Z"
    for number in range(_MOST_NAMES):
        path = folder / f"{stem}{f'_{number}' if number else ''}.jsonl"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        # Half a character, which UTF-8 can't hold, becomes the escape that JSON has for it.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in lines)
        return path
    raise FileExistsError(f"{folder / stem}: too many transcripts of one moment")
