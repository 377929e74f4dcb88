"""What a log file holds, told by its content: a kind of log, a kind of table, or neither."""

import codecs
import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from compactuary.errors import SourceError
from ledger.readers import codex, gemini_cli, opencode, otel, otlp, pi, swe_agent, tau_bench
from ledger.readers.claude_code import HARNESS, SKIPPED_TYPES
from ledger.readers.discovery import is_document
from ledger.readers.lines import open_log, whole_lines
from ledger.readers.tables import kind_of

__all__ = ["DOCUMENTS", "EMPTY", "LINES", "PLACEHOLDER", "format_of"]

#: Format of a file that holds nothing yet.
EMPTY = "empty"
#: Logs that grow by lines, and are read on from where the last import stopped.
LINES = frozenset({HARNESS, codex.HARNESS, pi.HARNESS})
#: What log exporters write in place of a line they could not parse.
PLACEHOLDER = b"<unparseable>"
#: How far to look for a line that tells a file's format.
DETECTION_LINES = 200
#: How much of a JSON document is read to see whether it may be a log.
HEAD_BYTES = 1_000_000
_KEYS = re.compile(rb'"(?:info|resourceSpans|sessionId|traj|trajectory)"\s*:')
_DOCUMENT_KINDS: Mapping[str, Callable[[Any], bool]] = {
    gemini_cli.HARNESS: gemini_cli.is_session,
    opencode.HARNESS: opencode.is_session,
    otel.HARNESS: otlp.is_export,
    swe_agent.HARNESS: swe_agent.is_trajectory,
    tau_bench.HARNESS: tau_bench.is_results,
}
#: Logs that are written anew as a whole, and are read again as a whole when they changed.
DOCUMENTS = frozenset(_DOCUMENT_KINDS)
#: Keys by which half a document is known.
_TELLING_KEYS: Mapping[str, re.Pattern[bytes]] = {
    gemini_cli.HARNESS: re.compile(rb'"(?:startTime|projectHash)"\s*:'),
    opencode.HARNESS: re.compile(rb'"info"\s*:\s*\{\s*"id"\s*:\s*"ses_'),
    otel.HARNESS: re.compile(rb'"resourceSpans"\s*:'),
    swe_agent.HARNESS: re.compile(rb'"trajectory"\s*:\s*\['),
    tau_bench.HARNESS: re.compile(rb'"traj"\s*:\s*\['),
}
_CLAUDE_TYPES = SKIPPED_TYPES | {"assistant", "user", "system", "progress", "attachment"}


def format_of(path: Path) -> str | None:
    """Return the harness whose log it is, a kind of table, ``empty``, or None.

    A file that can't be read at all is a transcript as far as this function knows: reading it
    says what is wrong.
    """
    try:
        if ".csv" in path.suffixes:
            with open_log(path) as file:
                header = file.readline().decode("utf-8-sig", "replace")
            return kind_of(next(csv.reader([header.strip()]), []))
        if is_document(path) and not _may_be_log(path):
            return None
        for number, (line, _) in enumerate(whole_lines(path)):
            if number >= DETECTION_LINES:
                break
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                if line.strip() != PLACEHOLDER and number == 0:
                    return _format_of_whole(path, line.strip())
                continue
            found = _format_of_value(value)
            if found:
                return found
        return None if path.stat().st_size else EMPTY
    except (SourceError, EOFError, OSError):
        return HARNESS


def _may_be_log(path: Path) -> bool:
    """Say whether it is worth reading more of a JSON document than its head."""
    with open_log(path) as file:
        head = file.read(HEAD_BYTES)
    return b"\n" in head[:-1] or len(head) < HEAD_BYTES or _KEYS.search(head) is not None


def _format_of_whole(path: Path, first_line: bytes) -> str | None:
    """Return the format of a file whose first line is no JSON: one document over many lines."""
    if not is_document(path) and first_line not in (b"{", b"["):
        return HARNESS
    with open_log(path) as file:
        head = file.read(HEAD_BYTES).removeprefix(codecs.BOM_UTF8)
        if is_document(path) and not _KEYS.search(head):
            return None
        rest = file.read()
    try:
        return _format_of_value(orjson.loads(head + rest))
    except orjson.JSONDecodeError:
        if not is_document(path):
            return HARNESS
        # Half a log must be refused; half of anything else in a folder is nobody's concern.
        return next((kind for kind, key in _TELLING_KEYS.items() if key.search(head)), None)


def _format_of_value(value: object) -> str | None:
    found = _format_of_document(value)
    if found or not isinstance(value, dict):
        return found
    if "type" not in value:
        return kind_of(value)
    kind = value["type"]
    if not isinstance(kind, str):
        return None
    if kind in codex.LINE_TYPES and isinstance(value.get("payload"), dict):
        return codex.HARNESS
    if kind in _CLAUDE_TYPES:
        return HARNESS
    return pi.HARNESS if pi.is_entry(value) else None


def _format_of_document(value: Any) -> str | None:
    return next((kind for kind, told_by in _DOCUMENT_KINDS.items() if told_by(value)), None)
