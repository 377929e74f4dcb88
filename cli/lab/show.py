"""The lab's ``/show`` and ``/save``: the conversation on the screen, and in a file."""

import json
import re

from cli.lab.file import path_named, save_conversation
from cli.lab.session import Reply, Session
from cli.lab.text import counted, first_line, headline, message_lines, table
from compactuary.errors import InputError
from strategies.conversation import Message
from strategies.raw_fields import kind_of

__all__ = ["save", "show"]

_RANGE = re.compile(r"(\d{1,9})(?:\.\.(\d{1,9}))?")
_LISTED = 20


def show(session: Session, told: str) -> tuple[Session, Reply]:
    """Show one message whole, or a list: the last twenty, or from one index to another."""
    messages = session.conversation.messages
    spoken = [k for k, each in enumerate(messages) if each.role != "other"]
    if not told:
        return session, _listed(session, spoken[-_LISTED:], len(spoken))
    found = _RANGE.fullmatch(told)
    if found is None:
        remedy = "Write /show, /show 3 or /show 0..20."
        raise InputError("is no index", where="/show", value=told, remedy=remedy)
    first = int(found[1])
    last = first if found[2] is None else int(found[2])
    if first > last or first >= len(messages):
        remedy = f"Indexes go from 0 to {len(messages) - 1}."
        raise InputError("no such message", where="/show", value=told, remedy=remedy)
    if found[2] is None:
        return session, _whole(session, first)
    return session, _listed(session, [k for k in spoken if first <= k <= last], len(spoken))


def _listed(session: Session, indexes: list[int], spoken: int) -> Reply:
    conversation = session.conversation
    calls = conversation.calls()
    rows = []
    for k in indexes:
        message = conversation.messages[k]
        told = headline(message, calls, 200 if session.verbose else 72)
        rows.append({"index": k, "role": message.role, "tokens": message.tokens, "text": told})
    cells = [(f"{r['index']}", f"{r['tokens']:,}", f"{r['role']:<9}  {r['text']}") for r in rows]
    prefix = session.bench.prefix_tokens
    behind = f", {prefix:,} of them in front of the messages" if prefix else ""
    sizes = f"{session.context_tokens:,} tokens{behind}"
    lines = [
        f"{counted(conversation)} ({conversation.wire_format.name}), {sizes}",
        *table(("#", "tokens", "message"), cells, left=0),
    ]
    if len(indexes) < spoken:
        lines.append(f"{len(indexes)} of {spoken:,} messages; /show A..B lists others")
    counts = {"messages": spoken, "entries": len(conversation.messages)}
    tokens = {"context_tokens": session.context_tokens, "prefix_tokens": prefix}
    return Reply(lines, counts | tokens | {"listed": rows})


def _whole(session: Session, index: int) -> Reply:
    message = session.conversation.messages[index]
    lines = message_lines(message, session.conversation.calls())
    told = [f"{_named(message, index)}, {message.tokens:,} tokens", *lines]
    data = {"index": index, "role": message.role, "tokens": message.tokens}
    return Reply(told, data | {"text": "\n".join(lines)})


def _named(message: Message, index: int) -> str:
    if message.role != "other":
        return f"message {index}, {message.role}"
    entry = json.loads(message.raw) if isinstance(message.raw, str) else message.raw
    kind = first_line(kind_of(entry))
    told = f" (type {kind})" if kind else ""
    return f"entry {index}{told} is no message of the context"


def save(session: Session, told: str) -> tuple[Session, Reply]:
    """Write the messages to a new file, as they are: they are what would be sent."""
    if not told:
        remedy = "Write /save FILE."
        raise InputError("needs a file", where="/save", remedy=remedy)
    path = path_named(told)
    written = save_conversation(path, session.conversation, session.bench.body)
    count = len(session.conversation.messages)
    lines = [f"wrote {count:,} entries to {path}, secrets and all"]
    return session, Reply(lines, {"file": str(path), "entries": count, "bytes": written})
