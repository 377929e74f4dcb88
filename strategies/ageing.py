"""How micro-compaction before every call ages a conversation, round by round.

A round is one response with tool calls and their results. Behind each the view says what the next
call is sent: which results are whole, which have become placeholders, how large the context is,
and how much of it the call before had sent already, so that a prompt cache still holds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from strategies.conversation import Conversation
from strategies.formats.recognise import see
from strategies.micro import Micro
from strategies.safe_split import pair_up
from strategies.situation import Situation
from strategies.strategy import DEFAULT

__all__ = ["AgedResult", "Ageing", "Fate", "RoundView", "age", "round_ends"]

#: What the next call is sent of a result; 'preserved' tools' are never shortened.
Fate = Literal["whole", "placeholder", "preserved"]


@dataclass(frozen=True, slots=True)
class AgedResult:
    """A tool result that the view follows.

    Parameters
    ----------
    message, place : int
        Where it is.
    tool : str
        Who brought it; empty where the call is not in the conversation.
    """

    message: int
    place: int
    tool: str


@dataclass(frozen=True, slots=True)
class RoundView:
    """What the call behind a round is sent.

    Parameters
    ----------
    number : int
        Of the round, from 1 on.
    fates : tuple of str
        Of each result so far, in the order of `Ageing.results`.
    tokens, aged_tokens : int
        The context without and with micro-compaction, prefix included.
    cached_tokens, aged_cached_tokens : int
        What the call before sent in the same place, so that it may be read from the cache: the
        prefix, and every message up to the first that differs. 0 for the first round.
    """

    number: int
    fates: tuple[Fate, ...]
    tokens: int
    aged_tokens: int
    cached_tokens: int
    aged_cached_tokens: int


@dataclass(frozen=True, slots=True)
class Ageing:
    """The rounds of a conversation.

    Parameters
    ----------
    results : tuple of AgedResult
        Every result of the rounds shown, the oldest first.
    rounds : tuple of RoundView
    rounds_in_all : int
        How many the conversation has.
    """

    results: tuple[AgedResult, ...]
    rounds: tuple[RoundView, ...]
    rounds_in_all: int


def round_ends(conversation: Conversation) -> list[int]:
    """Return where each round ends: the place behind its last result.

    Calls of one response make one round, also where a format gives each an entry of its own: a
    round ends before the next entry that is no result, once no call waits.
    """
    ends: list[int] = []
    last: dict[int, int] = {}
    for first, end in pair_up(conversation.messages).spans:
        # A provider's own summary holds all that follows together; rounds go on behind it.
        if end < len(conversation.messages):
            last[first] = max(end, last.get(first, end))
    open_until, results = -1, False
    for index, message in enumerate(conversation.messages):
        has_result = any(part.kind == "tool_result" for part in message.parts)
        if results and index > open_until and not has_result and message.parts:
            ends.append(index)
            results = False
        open_until = max(open_until, last.get(index, -1))
        results = results or has_result
    return [*ends, len(conversation.messages)] if results else ends


def age(
    conversation: Conversation,
    micro: Micro | None = None,
    situation: Situation = DEFAULT,
    *,
    rounds: int = 10,
) -> Ageing:
    """Return how the first rounds of a conversation age.

    Parameters
    ----------
    conversation : Conversation
    micro : Micro, optional
        Who shortens; default `Micro()`, which keeps the last 3 results and those of ``read_file``.
    situation : Situation
        Prefix and ratio of the conversation.
    rounds : int
        How many at most; default 10.
    """
    strategy = micro or Micro()
    ends = round_ends(conversation)
    shown = ends[:rounds]
    sent = [_Sent.of(conversation, end, strategy) for end in shown]
    results = _results(conversation, shown[-1] if shown else 0)
    views = [
        _view(number, sent[number - 2] if number > 1 else None, now, results, strategy, situation)
        for number, now in enumerate(sent, 1)
    ]
    return Ageing(results, tuple(views), len(ends))


@dataclass(frozen=True, slots=True)
class _Sent:
    """One call's messages, without and with micro-compaction."""

    plain: Conversation
    aged: Conversation

    @classmethod
    def of(cls, conversation: Conversation, end: int, micro: Micro) -> "_Sent":
        messages = conversation.messages[:end]
        raws = [message.raw for message in messages]
        plain = Conversation(raws, messages, conversation.wire_format)
        result = micro.compact(plain)
        aged = see(result.messages, conversation.wire_format.name) if result.changed else plain
        return cls(plain, aged)


def _results(conversation: Conversation, end: int) -> tuple[AgedResult, ...]:
    calls = conversation.calls()
    return tuple(
        AgedResult(index, part.place, calls[part.id].name if part.id in calls else "")
        for index, message in enumerate(conversation.messages[:end])
        for part in message.parts
        if part.kind == "tool_result"
    )


def _view(
    number: int,
    before: _Sent | None,
    now: _Sent,
    results: tuple[AgedResult, ...],
    micro: Micro,
    situation: Situation,
) -> RoundView:
    size = len(now.plain.messages)
    so_far = [each for each in results if each.message < size]
    return RoundView(
        number,
        tuple(_fate(now, each, micro) for each in so_far),
        situation.sent(now.plain.tokens()),
        situation.sent(now.aged.tokens()),
        _cached(before.plain, now.plain, situation) if before else 0,
        _cached(before.aged, now.aged, situation) if before else 0,
    )


def _fate(now: _Sent, result: AgedResult, micro: Micro) -> Fate:
    if result.tool in micro.preserve:
        return "preserved"
    whole, aged = now.plain.messages[result.message], now.aged.messages[result.message]
    return "whole" if _text(whole.parts, result) == _text(aged.parts, result) else "placeholder"


def _text(parts: Sequence[Any], result: AgedResult) -> tuple[str, int]:
    return next(
        (part.text, part.images)
        for part in parts
        if part.kind == "tool_result" and part.place == result.place
    )


def _cached(before: Conversation, now: Conversation, situation: Situation) -> int:
    same = 0
    for old, new in zip(before.messages, now.messages, strict=False):
        if old.raw is not new.raw and old.raw != new.raw:
            break
        same += 1
    return situation.sent(now.tokens(0, same))
