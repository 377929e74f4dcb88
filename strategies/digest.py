"""Digests: one line instead of a bulky tool result."""

import json
from collections.abc import Mapping
from typing import Any

from strategies.conversation import Part
from strategies.masking import masked
from strategies.outside import is_injection, one_line

__all__ = ["DIGEST_CHARACTERS", "DIGEST_MARK", "digest_of", "target_of"]

DIGEST_MARK = "[digest]"
#: Of a usual digest, for quotes.
DIGEST_CHARACTERS = 120
_KEY_CHARACTERS = 80
_TARGET_CHARACTERS = 80
#: Arguments that say what a tool was used on, the most telling first.
_TARGETS = (
    "file_path",
    "path",
    "filename",
    "file",
    "doc_id",
    "id",
    "url",
    "query",
    "pattern",
    "command",
)
_PLAIN = 8


def target_of(arguments: Any) -> str:
    """Return what a call was about in one line, secrets masked; empty where nothing says it."""
    value = arguments
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return ""
    if not isinstance(value, Mapping):
        return ""
    named = [value[name] for name in _TARGETS if isinstance(value.get(name), str)]
    texts = named or [each for each in value.values() if isinstance(each, str)]
    return one_line(masked(texts[0]), _TARGET_CHARACTERS) if texts else ""


def digest_of(call: Part, result: Part) -> str:
    """Return a line like ``[digest] read_file main.go, 120 lines; key: "package main"``.

    The key is the first line that says something and tells nobody what to do, quoted: it is
    outside text. Secrets in it are masked.
    """
    target = target_of(call.arguments)
    lines = result.text.splitlines()
    told = " ".join(filter(None, (call.name, target)))
    size = f"{len(lines)} lines" if len(lines) != 1 else f"{len(result.text)} characters"
    images = f", {result.images} image(s)" if result.images else ""
    failed = ", failed" if result.failed else ""
    key = _key(lines)
    quoted = f"; key: {json.dumps(key, ensure_ascii=False)}" if key else ""
    return f"{DIGEST_MARK} {told}, {size}{images}{failed}{quoted}"


def _key(lines: list[str]) -> str:
    if is_injection("\n".join(lines[:200])):
        # A text that tries it once is not asked for a better line.
        return ""
    for line in lines[:50]:
        if sum(letter.isalnum() for letter in line) >= _PLAIN:
            return one_line(masked(line), _KEY_CHARACTERS)
    return ""
