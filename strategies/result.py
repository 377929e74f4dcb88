"""What a strategy did to a conversation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.usage import Usage
from strategies.conversation import Conversation

__all__ = ["Replacement", "Result", "replaced", "unchanged"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a strategy did, and why.

    Parameters
    ----------
    messages : sequence
        The conversation after: the very object that came in where nothing changed. Messages that
        were not touched are the same objects.
    changed : bool
    reason : str
        What was done, or why nothing was. Its wording may change.
    dropped, kept, summarised, rewritten : tuple of int
        Indexes into the messages that came in: gone without a trace; untouched; gone, a summary
        standing for them; still there with a shorter content. Every index is in one of them.
    usage : Usage or None
        What the strategy's own model call used; None without a call, or where it told nothing.
    messages_tokens, messages_after_tokens : int
        Estimated tokens of the messages, before and after.
    failed : bool
        Whether a model, a server or a disk failed where something was to be done; not where a
        strategy had nothing to do.
    """

    messages: Sequence[Any]
    changed: bool
    reason: str
    dropped: tuple[int, ...] = ()
    kept: tuple[int, ...] = ()
    summarised: tuple[int, ...] = ()
    rewritten: tuple[int, ...] = ()
    usage: Usage | None = None
    messages_tokens: int = 0
    messages_after_tokens: int = 0
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Replacement:
    """A conversation that could take the place of the one before.

    Parameters
    ----------
    entries : tuple of int or object
        The new conversation: an index keeps that message, anything else is a new raw message.
    tokens : int
        Its estimated tokens.
    summarised, rewritten : tuple of int
        As of `Result`. Every other message whose index is not in `entries` is dropped.
    """

    entries: tuple[Any, ...]
    tokens: int
    summarised: tuple[int, ...] = ()
    rewritten: tuple[int, ...] = ()


def unchanged(
    conversation: Conversation, reason: str, usage: Usage | None = None, *, failed: bool = False
) -> Result:
    """Return that nothing happened to the conversation."""
    tokens = conversation.tokens()
    everything = tuple(range(len(conversation.messages)))
    return Result(
        conversation.source,
        False,
        reason,
        kept=everything,
        usage=usage,
        messages_tokens=tokens,
        messages_after_tokens=tokens,
        failed=failed,
    )


def replaced(
    conversation: Conversation, new: Replacement, reason: str, usage: Usage | None = None
) -> Result:
    """Return the new conversation, or that it would not have been smaller."""
    before = conversation.tokens()
    if new.tokens >= before:
        grown = f"would not shrink the context: {before} tokens before, {new.tokens} after"
        return unchanged(conversation, grown, usage)
    kept = tuple(entry for entry in new.entries if isinstance(entry, int))
    gone = {*kept, *new.summarised, *new.rewritten}
    messages = conversation.messages
    return Result(
        [messages[entry].raw if isinstance(entry, int) else entry for entry in new.entries],
        True,
        reason,
        tuple(index for index in range(len(messages)) if index not in gone),
        tuple(sorted(kept)),
        new.summarised,
        new.rewritten,
        usage,
        before,
        new.tokens,
    )
