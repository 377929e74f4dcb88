"""The lab's ``/diff``: what the last compaction changed."""

import difflib
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from cli.lab.session import Reply, Session
from cli.lab.text import message_lines
from compactuary.errors import InputError
from strategies.conversation import Conversation, Message
from strategies.result import Result

__all__ = ["Change", "changes", "diff"]

_KINDS = ("stays", "gone", "other", "new")
#: Lines of each part, and in all: usual, and where the session is verbose.
_PART_LINES = (3, 20)
_DIFF_LINES = (60, 400)


class Change(NamedTuple):
    """What became of one message: stays, gone, another content, or new.

    Parameters
    ----------
    kind : {'stays', 'gone', 'other', 'new'}
    old, new : Message or None
        Before and after; None where there is none.
    """

    kind: Literal["stays", "gone", "other", "new"]
    old: Message | None
    new: Message | None


def changes(before: Conversation, after: Conversation, result: Result) -> Iterator[Change]:
    """Yield what became of every message, in order.

    What stays is the same object on both sides, and no strategy changes the order.
    """
    old = before.messages
    places = {id(message.raw): k for k, message in enumerate(old)}
    gone = {*result.dropped, *result.summarised}
    k = 0
    for message in after.messages:
        place = places.get(id(message.raw))
        upto = _next(k, len(old), gone) if place is None else place
        for passed in range(k, upto):
            yield Change("gone", old[passed], None)
        k = max(k, upto)
        if place is not None:
            yield Change("stays", old[place], message)
            k = max(k, place + 1)
        elif k in result.rewritten:
            yield Change("other", old[k], message)
            k += 1
        else:
            yield Change("new", None, message)
    for passed in range(k, len(old)):
        yield Change("gone", old[passed], None)


def _next(start: int, end: int, gone: set[int]) -> int:
    return next((k for k in range(start, end) if k not in gone), end)


def diff(session: Session, told: str) -> tuple[Session, Reply]:
    """Show what the last compaction changed, in the manner of a unified diff."""
    result = session.now.result
    if told or result is None:
        problem = "takes nothing" if told else "nothing was compacted yet"
        remedy = "Write /diff alone." if told else "Compact first: /compact."
        raise InputError(problem, where="/diff", value=told or None, remedy=remedy)
    before, after = session.states[-2].conversation, session.conversation
    every = list(changes(before, after, result))
    named = session.now.strategy
    lines = [f"--- before {named}", f"+++ after {named}"]
    lines += _lines(every, before, after, _PART_LINES[session.verbose])
    left = max(len(lines) - _DIFF_LINES[session.verbose], 0)
    shown = lines[: len(lines) - left]
    more = "" if session.verbose else "; /verbose on shows more"
    shown += [f"… {left:,} more lines{more}"] if left else []
    counts = {kind: sum(each.kind == kind for each in every) for kind in _KINDS}
    return session, Reply(shown, {"strategy": named, **counts, "diff": lines})


def _lines(
    every: Sequence[Change], before: Conversation, after: Conversation, most: int
) -> Iterator[str]:
    calls = before.calls() | after.calls()
    untouched = 0
    for change in every:
        old = message_lines(change.old, calls, most) if change.old else []
        new = message_lines(change.new, calls, most) if change.new else []
        if change.kind == "stays" or old == new:
            untouched += bool(old)
            continue
        if untouched:
            yield f"@@ {untouched:,} untouched @@"
            untouched = 0
        yield from _marked(old, new)
    if untouched:
        yield f"@@ {untouched:,} untouched @@"


def _marked(old: list[str], new: list[str]) -> Iterator[str]:
    told = difflib.unified_diff(old, new, n=1, lineterm="")
    yield from (line for line in told if not line.startswith(("---", "+++", "@@")))
