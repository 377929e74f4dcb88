"""What a log file holds, told by its content: a transcript, a kind of table, or neither."""

import csv
from pathlib import Path

import orjson

from compactuary.errors import SourceError
from ledger.readers.claude_code import HARNESS, SKIPPED_TYPES
from ledger.readers.lines import open_log, whole_lines
from ledger.readers.tables import kind_of

__all__ = ["EMPTY", "PLACEHOLDER", "format_of"]

#: Format of a file that holds nothing yet.
EMPTY = "empty"
#: What log exporters write in place of a line they could not parse.
PLACEHOLDER = b"<unparseable>"
#: How far to look for a line that tells a file's format.
DETECTION_LINES = 200
_CLAUDE_TYPES = SKIPPED_TYPES | {"assistant", "user", "system", "progress", "attachment"}


def format_of(path: Path) -> str | None:
    """Return ``claude-code``, a kind of table, ``empty``, or None.

    A file that can't be read at all is a transcript as far as this function knows: reading it
    says what is wrong.
    """
    try:
        if ".csv" in path.suffixes:
            with open_log(path) as file:
                header = file.readline().decode("utf-8-sig", "replace")
            return kind_of(next(csv.reader([header.strip()]), []))
        for number, (line, _) in enumerate(whole_lines(path)):
            if number >= DETECTION_LINES:
                break
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                if line.strip() != PLACEHOLDER and number == 0:
                    return HARNESS
                continue
            found = _format_of_line(value)
            if found:
                return found
        return None if path.stat().st_size else EMPTY
    except (SourceError, EOFError, OSError):
        return HARNESS


def _format_of_line(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    if "type" not in value:
        return kind_of(value)
    kind = value["type"]
    return HARNESS if isinstance(kind, str) and kind in _CLAUDE_TYPES else None
