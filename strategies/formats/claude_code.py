"""Claude Code transcripts: one line for each block of a response, among lines of other kinds."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from compactuary.errors import SourceError
from strategies.conversation import Message, message_of
from strategies.formats.anthropic_messages import block_parts, with_block_results
from strategies.raw_fields import changed, field_of

__all__ = ["ClaudeCode"]

_SPOKEN = ("user", "assistant")
_CARRIED = ("sessionId", "version", "cwd", "gitBranch", "timestamp", "isSidechain")


class ClaudeCode:
    """Lines of a transcript, as text or as the mappings they parse to.

    What stands before the last compaction's boundary is no part of the context any more; it is
    seen as role 'other', without tokens.
    """

    name = "claude_code"

    def tells(self, raw: Any) -> bool:
        """Whether an entry is a line of text, or has a line's fields."""
        if isinstance(raw, str):
            return True
        if not isinstance(raw, Mapping) or "role" in raw or not isinstance(raw.get("type"), str):
            return False
        return any(name in raw for name in ("uuid", "sessionId", "message", "parentUuid"))

    def messages(self, raws: Sequence[Any]) -> list[Message]:
        """Return the view of every line."""
        lines = [_parsed(raw, index) for index, raw in enumerate(raws)]
        begins = 0
        for index, line in enumerate(lines):
            if line.get("subtype") == "compact_boundary":
                begins = index
        return [
            _message(line, raw, index, index >= begins)
            for index, (line, raw) in enumerate(zip(lines, raws, strict=True))
        ]

    def with_results(self, message: Message, texts: dict[int, str]) -> Any:
        """Return a copy of the line with other results."""
        line = _parsed(message.raw, 0)
        inner = line["message"]
        content = with_block_results(field_of(inner, "content"), texts)
        return _like(message.raw, {**line, "message": changed(inner, content=content)})

    def user_text(self, text: str, following: Any) -> Any:
        """Return a line like the summaries of Claude Code itself, linked to the line after it."""
        line = {} if following is None else _parsed(following, 0)
        # The line that follows stays as it is, so the summary takes its parent's place.
        named = line.get("parentUuid") or str(uuid5(NAMESPACE_URL, text))
        made = {name: line[name] for name in _CARRIED if name in line}
        made |= {"type": "user", "uuid": named, "parentUuid": None, "isCompactSummary": True}
        made["message"] = {"role": "user", "content": text}
        return _like(following, made)


def _parsed(raw: Any, index: int) -> Mapping[str, Any]:
    try:
        line = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError as error:
        remedy = "Leave torn lines out."
        raise SourceError(
            "not JSON", where=f"line {index + 1}", value=raw, remedy=remedy
        ) from error
    if not isinstance(line, Mapping):
        remedy = "Give the lines of one transcript."
        raise SourceError("not an object", where=f"line {index + 1}", value=raw, remedy=remedy)
    return line


def _like(raw: Any, line: dict[str, Any]) -> Any:
    if not isinstance(raw, str):
        return line
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _message(line: Mapping[str, Any], raw: Any, index: int, in_context: bool) -> Message:
    kind, inner = line.get("type"), line.get("message")
    if kind not in _SPOKEN or not in_context or inner is None:
        return message_of("other", [], raw)
    parts = block_parts(field_of(inner, "content"), index)
    if kind == "assistant":
        return message_of("assistant", parts, raw, str(field_of(inner, "id") or ""))
    seen = message_of("user", parts, raw)
    return seen._replace(is_synthetic=True) if line.get("isCompactSummary") else seen
