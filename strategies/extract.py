"""A summary without a model: lines of the conversation itself, picked by what they say.

For trying a strategy out where no model may be asked. It judges nothing and rewords nothing, so it
keeps less of the meaning in more tokens than a model would.
"""

import json
import re
from collections.abc import Iterable, Iterator

from strategies.digest import target_of
from strategies.outside import one_line, unescaped
from strategies.preservation import DEFAULT_ITEMS
from strategies.summary import SummaryReply, SummaryRequest

__all__ = ["EXTRACT_NOTE", "extract"]

EXTRACT_NOTE = "Written without a model: lines of the conversation itself, picked by their words."

_CALL = re.compile(r"^\[assistant calls (?P<tool>[^\]]*)\] (?P<arguments>.*)$")
_SPOKEN = re.compile(r"^\[(?P<who>user|assistant)\] (?P<text>.*)$")
_MOST_LINES = 12
_LINE_CHARACTERS = 200
_ITEMS = {item.name: item for item in DEFAULT_ITEMS}


def extract(request: SummaryRequest) -> SummaryReply:
    """Return what was asked, decided, used, left open and said last, each in the own words.

    Parameters
    ----------
    request : SummaryRequest
        With a transcript, as every summarizer gets that is not behind the agent's prefix.
    """
    spoken = list(_spoken(request.transcript))
    said = [line for who, line in spoken if who == "assistant"]
    open_item, decided_item = _ITEMS["pending"], _ITEMS["decisions"]
    sections = (
        ("Asked", [line for who, line in spoken if who == "user"]),
        ("Decided", [line for line in said if decided_item.is_in(line)]),
        ("Used", list(_used(request.transcript))),
        ("Pending", [line for line in said if open_item.is_in(line)]),
        ("Said last", said[-1:]),
    )
    told = "\n".join([EXTRACT_NOTE, *(_section(name, lines) for name, lines in sections if lines)])
    # Half a character, which JSON can hold, is none that a model could have written.
    return SummaryReply(told.encode("utf-8", "ignore").decode())


def _section(name: str, lines: Iterable[str]) -> str:
    # Of what was told twice the last is kept, and of many the latest.
    once = list(dict.fromkeys(reversed(list(lines))))[:_MOST_LINES]
    return "\n".join([f"{name}:", *(f"- {line}" for line in reversed(once))])


def _own_lines(transcript: str) -> Iterator[str]:
    """Yield the lines that no tool brought in: only `render` begins one with a mark."""
    inside = False
    for line in transcript.split("\n"):
        if line.startswith("<outside source="):
            inside = True
        elif inside and line == "</outside>":
            inside = False
        elif not inside:
            yield line


def _spoken(transcript: str) -> Iterator[tuple[str, str]]:
    who = ""
    for line in _own_lines(transcript):
        spoken = _SPOKEN.match(line)
        if spoken:
            who = spoken["who"]
            yield from _line(who, spoken["text"])
        elif line.startswith("["):
            who = ""
        elif who:
            yield from _line(who, line)


def _line(who: str, text: str) -> Iterator[tuple[str, str]]:
    if text.strip():
        yield who, one_line(unescaped(text), _LINE_CHARACTERS)


def _used(transcript: str) -> Iterator[str]:
    for line in _own_lines(transcript):
        call = _CALL.match(line)
        if call:
            yield f"{call['tool']} {_target(call['arguments'])}".strip()


def _target(arguments: str) -> str:
    try:
        value = json.loads(unescaped(arguments))
    except ValueError:
        return ""
    return target_of(value)
