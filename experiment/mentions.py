"""Mentions: what messages say that matters to the report, line by line.

The simulated model knows nothing but these. It writes the same lines that it reads.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage

__all__ = ["Kind", "Mention", "mentions_of"]

Kind = Literal["angle", "claim", "finding", "found", "read", "written", "asked"]


class Mention(NamedTuple):
    """One thing that a message says.

    Parameters
    ----------
    kind : str
        'angle': the report's angle. 'claim': what a section states. 'finding': what a document
        gives, key 'doc-001 quantity'. 'found': the documents of a topic. 'read': a document was
        read. 'written': a section is in the report. 'asked': a section is to be written.
    key, value : str
    """

    kind: Kind
    key: str
    value: str = ""


_ANGLE = re.compile(r"\bAngle: (\w+)")
_CLAIM = re.compile(r"^Section \d+ states: ([a-z ]+) = (\d+)")
_GIVES = re.compile(r"^(doc-\d+) gives: ([a-z ]+) = (\d+)")
_DOCUMENT = re.compile(r"^Document ([a-z]+-\d+):")
_FINDING = re.compile(r"^Finding: ([a-z ]+) = (\d+)")
_FOUND = re.compile(r"^Found for (\w+): (.+)$")
_READ = re.compile(r"^Read: (.+)$")
_WRITTEN = re.compile(r"^Section (\d+) is in the report\.|^In the report: sections? (.+?)\.?$")
_ASKED = re.compile(r"\bWrite section (\d+)|\bsection (\d+) is under way")
_NUMBER = re.compile(r"\d+")
_ID = re.compile(r"doc-\d+")


def mentions_of(message: BaseMessage) -> tuple[Mention, ...]:
    """Return what a message says, in the order in which it says it."""
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    called = (mention for call in calls for mention in _called(call["name"], call["args"]))
    return (*_told(message.text), *called)


def _called(name: str, arguments: dict[str, Any]) -> Iterator[Mention]:
    if name == "read" and "doc_id" in arguments:
        yield Mention("read", str(arguments["doc_id"]))
    elif name == "write_section":
        yield Mention("angle", "", str(arguments["angle"]))
        for quantity, value in arguments["figures"].items():
            yield Mention("claim", quantity, str(value))
        yield Mention("written", str(arguments["number"]))


@lru_cache(maxsize=4_096)
def _told(text: str) -> tuple[Mention, ...]:
    return tuple(_in_lines(text.splitlines()))


def _in_lines(lines: Sequence[str]) -> Iterator[Mention]:
    document = ""
    for line in lines:
        header, finding = _DOCUMENT.match(line), _FINDING.match(line)
        if header:
            document = header[1]
        elif finding and document:
            yield Mention("finding", f"{document} {finding[1]}", finding[2])
        else:
            yield from _in_line(line)


def _in_line(line: str) -> Iterator[Mention]:
    if angle := _ANGLE.search(line):
        yield Mention("angle", "", angle[1])
    if claim := _CLAIM.match(line):
        yield Mention("claim", claim[1], claim[2])
    if gives := _GIVES.match(line):
        yield Mention("finding", f"{gives[1]} {gives[2]}", gives[3])
    if found := _FOUND.match(line):
        yield Mention("found", found[1], " ".join(_ID.findall(found[2])))
    if read := _READ.match(line):
        yield from (Mention("read", each) for each in _ID.findall(read[1]))
    if written := _WRITTEN.match(line):
        numbers = _NUMBER.findall(written[1] or written[2])
        yield from (Mention("written", each) for each in numbers)
    if asked := _ASKED.search(line):
        yield Mention("asked", asked[1] or asked[2])
