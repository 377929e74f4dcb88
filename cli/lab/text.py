"""Text on the lab's screen: no control characters, secrets masked, a message in few lines."""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from strategies.conversation import Conversation, Message, Part
from strategies.masking import masked
from strategies.raw_fields import plain

__all__ = [
    "counted",
    "first_line",
    "headline",
    "in_context",
    "message_lines",
    "on_screen",
    "table",
]

#: What terminals take as commands: escape sequences, those of titles and links whole.
_SEQUENCES = re.compile(
    r"(?:\x1b\]|\x9d).*?(?:\x07|\x1b\\|\x9c|\Z)|"
    r"(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]).*?(?:\x1b\\|\x9c|\Z)|"
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_UNSEEN = ("Cc", "Cf", "Cs")
#: A line on the screen shows the beginning; whether that is a secret is told by no more than this.
_LOOKED_AT = 4_000
_WIDTH = 72
#: Of a part of which only some lines are shown: lines and characters looked at, a line's length.
_MARGIN = 50
_LOOKED_AT_IN_ALL = 100_000
_LONGEST = 500


def on_screen(text: str) -> str:
    """Return a text that a terminal shows and does not obey, secrets masked; newlines stay.

    Whatever could hide a part of a secret is taken out before secrets are looked for.

    Raises
    ------
    MissingExtraError
        detect-secrets is not installed.
    """
    seen = _SEQUENCES.sub("", text).replace("\r\n", "\n").replace("\t", "    ")
    if not seen.isascii() or any(letter < " " or letter == "\x7f" for letter in seen):
        kept = (_visible(letter) for letter in seen)
        seen = "".join(kept)
    return masked(seen)


def _visible(letter: str) -> str:
    if letter == "\n":
        return letter
    return "" if unicodedata.category(letter) in _UNSEEN else letter


def first_line(text: str, width: int = _WIDTH) -> str:
    """Return the first line that says something, cut to a width, fit for the screen."""
    lines = on_screen(text[:_LOOKED_AT]).split("\n")
    line = next((line.strip() for line in lines if line.strip()), "")
    return line if len(line) <= width else f"{line[: width - 1]}…"


def headline(message: Message, calls: Mapping[str, Part], width: int = _WIDTH) -> str:
    """Return what a message is in one line: its text, or its calls and results."""
    told = [each for each in (_told(part, calls, width) for part in message.parts) if each]
    if not told:
        return "(nothing in the context)" if message.role == "other" else "(empty)"
    line = "; ".join(told)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _told(part: Part, calls: Mapping[str, Part], width: int) -> str:
    if part.kind == "tool_call":
        return f"calls {first_line(part.name)} {first_line(_arguments(part), width)}"
    if part.kind == "tool_result":
        failed = " failed" if part.failed else ""
        told = first_line(part.text, width)
        more = f" [{part.images} image(s)]" if part.images else ""
        return f"result of {_tool(part, calls)}{failed}: {told}{more}"
    if part.kind == "thinking":
        return f"thinks: {first_line(part.text, width)}" if part.text else "thinks"
    if part.kind == "image":
        return "[image]"
    if part.kind == "compaction":
        return f"[compaction by the provider] {first_line(part.text, width)}".rstrip()
    return first_line(part.text, width) if part.text else ""


def message_lines(message: Message, calls: Mapping[str, Part], most: int = 0) -> list[str]:
    """Return everything a message says, line by line; of each part so many lines, 0 for all."""
    lines: list[str] = []
    for part in message.parts:
        if part.kind == "tool_call":
            head, text = f"{message.role} calls {first_line(part.name)}", _arguments(part)
        elif part.kind == "tool_result":
            failed = " failed" if part.failed else ""
            head, text = f"result of {_tool(part, calls)}{failed}", part.text
        else:
            head, text = f"{message.role} {part.kind}", part.text
        images = f" [{part.images} image(s)]" if part.images else ""
        lines.append(f"{head}{images}:")
        lines += _indented(text.rstrip("\r\n"), most)
    return lines


def _indented(text: str, most: int) -> Iterator[str]:
    """Yield a text's lines; where only some are wanted, the rest is neither masked nor shown."""
    if not text:
        return
    count = text.count("\n") + 1
    wanted = most if most and most < count else count
    if most:
        text = "\n".join(text.split("\n", wanted + _MARGIN)[: wanted + _MARGIN])[:_LOOKED_AT_IN_ALL]
    for line in on_screen(text).split("\n")[:wanted]:
        cut = f"{line[:_LONGEST]}…" if most and len(line) > _LONGEST else line
        yield f"    {cut}".rstrip()
    if wanted < count:
        yield f"    … {count - wanted:,} more lines"


def _tool(part: Part, calls: Mapping[str, Part]) -> str:
    return first_line(calls[part.id].name) if part.id in calls else "an unknown call"


def _arguments(part: Part) -> str:
    told = part.arguments
    return told if isinstance(told, str) else json.dumps(plain(told), ensure_ascii=False)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return rows under their columns: the first `left` to the left, and the last; others right."""
    cells = [list(columns), *(list(row) for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(columns))]
    last = len(columns) - 1
    return [
        "  ".join(
            cell.ljust(widths[k]) if k < left or k == last else cell.rjust(widths[k])
            for k, cell in enumerate(row)
        ).rstrip()
        for row in cells
    ]


def in_context(conversation: Conversation) -> int:
    """Return how many entries of a conversation are in the context."""
    return sum(message.role != "other" for message in conversation.messages)


def counted(conversation: Conversation) -> str:
    """Say how many messages a conversation has, and among how many entries where there are more."""
    count, entries = in_context(conversation), len(conversation.messages)
    return f"{count:,} messages" + (f" in {entries:,} entries" if entries > count else "")
