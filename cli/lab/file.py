"""What the lab opens and saves: messages, a request body, or an agent's log."""

import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.lab.text import in_context
from compactuary.errors import InputError, SourceError
from ledger.usage import usage_from
from strategies.conversation import Conversation
from strategies.formats.codex_rollout import is_rollout, rollout_context
from strategies.formats.recognise import FORMATS, see
from strategies.masking import masked_value
from strategies.raw_fields import size_of

__all__ = ["Opened", "open_conversation", "path_named", "save_conversation"]

_REMEDY = (
    "Give a JSON list of messages, a request body with messages or input, or a log of Claude Code "
    "or Codex."
)
_KNOWN_FORMATS = tuple(name for name in FORMATS if name != "langchain")


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation as a file holds it.

    Parameters
    ----------
    conversation : Conversation
    prefix_tokens : int
        Of system prompt and tools where they are no messages, estimated; 0 where the file does
        not tell.
    model : str or None
        Whom the file names.
    notes : tuple of str
        What was left out.
    body : mapping or None
        The request around the messages, where there is one.
    """

    conversation: Conversation
    prefix_tokens: int = 0
    model: str | None = None
    notes: tuple[str, ...] = ()
    body: Mapping[str, Any] | None = None


def open_conversation(path: Path, wire_format: str | None = None) -> Opened:
    """Read a conversation; a ``.gz`` is decompressed on the way.

    Parameters
    ----------
    path : Path
    wire_format : str, optional
        Format of the messages; told by them unless given.

    Raises
    ------
    SourceError
        The file can't be read, is torn, is empty, or holds nothing of a known format, or a message
        that is not of the format named.
    InputError
        A message is malformed, or the format unknown.
    """
    text = _text_of(path)
    if not text.strip():
        raise SourceError("is empty", where=str(path), remedy=_REMEDY)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if "\n" not in text.strip() or text.lstrip().startswith("["):
            raise _torn(path, error) from error
        return _log(path, text, wire_format)
    if isinstance(value, Mapping) and (is_rollout(value) or FORMATS["claude_code"].tells(value)):
        return _log(path, text, wire_format)
    return _document(path, value, wire_format)


def path_named(told: str) -> Path:
    """Return the path that a command names; ``~`` is a home.

    Raises
    ------
    InputError
        It can't be one: nobody of that name has a home, or it holds a NUL.
    """
    remedy = "Name a file by its path."
    if "\0" in told:
        raise InputError("holds a NUL", where="/save", value=told, remedy=remedy)
    try:
        return Path(told).expanduser()
    except RuntimeError as error:
        raise InputError("has no home", where="/save", value=told, remedy=remedy) from error


def save_conversation(
    path: Path, conversation: Conversation, body: Mapping[str, Any] | None = None
) -> int:
    """Write the messages as they are, to a new file that its owner alone reads.

    A request body keeps its other fields, a transcript is written as lines, all else as a list.

    Returns
    -------
    int
        Bytes written.

    Raises
    ------
    InputError
        The file is there already.
    OSError
        It can't be written.
    """
    written = _written(conversation, body).encode("utf-8", "surrogatepass")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        told, remedy = str(path), "Name a new file."
        raise InputError("is there already", where="/save", value=told, remedy=remedy) from error
    with os.fdopen(handle, "wb") as file:
        file.write(written)
    return len(written)


def _written(conversation: Conversation, body: Mapping[str, Any] | None) -> str:
    raws = [message.raw for message in conversation.messages]
    if conversation.wire_format.name == "claude_code":
        lines = (raw if isinstance(raw, str) else json.dumps(raw) for raw in raws)
        return "".join(f"{line}\n" for line in lines)
    value = raws if body is None else {**body, _place(body): raws}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def _text_of(path: Path) -> str:
    try:
        data = path.read_bytes()
        # Either says by itself whether it is compressed, whatever its name.
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError("is not UTF-8", where=str(path), remedy=_REMEDY) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        remedy = "Copy the file again."
        raise SourceError("the gzip is damaged", where=str(path), remedy=remedy) from error
    except OSError as error:
        raise SourceError(f"{error.strerror}", where=str(path), remedy=_REMEDY) from error


def _torn(path: Path, error: Exception, line: int | None = None) -> SourceError:
    at = line if line is not None else getattr(error, "lineno", None)
    where = str(path) if at is None else f"{path}, line {at}"
    # The text itself may hold secrets, so that the error does not quote it.
    return SourceError("is not JSON", where=where, remedy=_REMEDY)


def _log(path: Path, text: str, wire_format: str | None) -> Opened:
    lines, notes = _lines(path, text)
    parsed = [json.loads(line) for line in lines]
    if any(map(is_rollout, parsed)):
        context = rollout_context(parsed)
        seen = _seen(path, context.items, wire_format or "openai_responses")
        return Opened(seen, -(-context.prefix_characters // 4), context.model, notes)
    if any(FORMATS["claude_code"].tells(each) for each in parsed):
        models = [
            each["message"].get("model")
            for each in parsed
            if each.get("type") == "assistant" and isinstance(each.get("message"), Mapping)
        ]
        named = [each for each in models if isinstance(each, str) and each != "<synthetic>"]
        model = named[-1] if named else None
        seen = _seen(path, lines, wire_format or "claude_code")
        if not in_context(seen):
            raise SourceError("holds no messages", where=str(path), remedy=_REMEDY)
        return Opened(seen, _told_prefix(seen, parsed), model, notes)
    return Opened(_seen(path, parsed, wire_format), notes=notes)


def _told_prefix(conversation: Conversation, parsed: Sequence[Any]) -> int:
    """Return what the first response's usage tells beyond the messages before it: the prefix."""
    for index, message in enumerate(conversation.messages):
        if message.role != "assistant":
            continue
        try:
            told = usage_from(parsed[index]["message"]["usage"]).context_tokens
        except (InputError, KeyError, TypeError, AttributeError):
            continue
        if told:
            return max(told - conversation.tokens(0, index), 0)
    return 0


def _lines(path: Path, text: str) -> tuple[list[str], tuple[str, ...]]:
    """Return a log's lines, without a torn last one: whoever writes it is not done yet."""
    numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    lines: list[str] = []
    for place, (number, line) in enumerate(numbered):
        try:
            whole = isinstance(json.loads(line), Mapping)
        except (ValueError, RecursionError) as error:
            if place and place == len(numbered) - 1 and not text.endswith("\n"):
                return lines, (f"line {number} is torn and was left out",)
            raise _torn(path, error, number) from error
        if not whole:
            where = f"{path}, line {number}"
            raise SourceError("is no object", where=where, remedy=_REMEDY)
        lines.append(line)
    return lines, ()


def _document(path: Path, value: Any, wire_format: str | None) -> Opened:
    if isinstance(value, list):
        return Opened(_seen(path, value, wire_format))
    if not isinstance(value, Mapping) or not isinstance(value.get(_place(value)), list):
        raise SourceError("holds no messages", where=str(path), remedy=_REMEDY)
    place = _place(value)
    told = wire_format or ("openai_responses" if place == "input" else None)
    prefix = sum(size_of(value.get(name)) for name in ("system", "instructions", "tools"))
    model = value.get("model")
    named = model if isinstance(model, str) else None
    return Opened(_seen(path, value[place], told), -(-prefix // 4), named, (), value)


def _place(body: Mapping[str, Any]) -> str:
    return "messages" if "messages" in body else "input"


def _check_format(path: Path, messages: Sequence[Any], wire_format: str | None) -> None:
    """Refuse messages of another format than the one named: they would be shown as empty."""
    if wire_format is None:
        return
    named = FORMATS[wire_format]
    for index, raw in enumerate(messages):
        own = named.tells(raw)
        other = next((each for each in FORMATS.values() if not own and each.tells(raw)), None)
        if other is not None or (wire_format == "claude_code" and not own and not _is_line(raw)):
            found = "" if other is None else f": it is of {other.name}"
            raise SourceError(
                f"is no message of {wire_format}{found}",
                where=f"{path}, messages[{index}]",
                remedy="Name the format that the messages have, or leave --format out.",
            )


def _is_line(raw: Mapping[str, Any]) -> bool:
    """Whether an entry could be a log's line, of a kind that nobody knows perhaps."""
    return isinstance(raw.get("type"), str) and "role" not in raw


def _seen(path: Path, messages: Sequence[Any], wire_format: str | None) -> Conversation:
    if wire_format is not None and wire_format not in _KNOWN_FORMATS:
        remedy = f"Known: {', '.join(_KNOWN_FORMATS)}."
        raise InputError("unknown format", where="--format", value=wire_format, remedy=remedy)
    if not messages:
        raise SourceError("holds no messages", where=str(path), remedy=_REMEDY)
    strange = next(
        (k for k, each in enumerate(messages) if not isinstance(each, str | Mapping)), None
    )
    if strange is not None:
        where = f"{path}, messages[{strange}]"
        raise SourceError("is no message", where=where, remedy=_REMEDY)
    _check_format(path, messages, wire_format)
    try:
        return see(messages, wire_format)
    except InputError as error:
        raise SourceError(
            error.problem,
            where=f"{path}, {error.where}",
            value=masked_value(error.value),
            remedy=error.remedy,
        ) from error
    except (AttributeError, TypeError) as error:
        # A field of a type that no API sends, such as a list for a type's name.
        raise SourceError("holds a malformed message", where=str(path), remedy=_REMEDY) from error
