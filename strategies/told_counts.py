"""Counts of messages as usage told them: from one request to the next, what came between.

One ratio for a whole conversation takes code and prose alike; a tokenizer does not. But each
request told its whole context, so the difference between two is what the messages between hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from compactuary.errors import InputError
from ledger.usage import Usage
from strategies.conversation import Conversation
from strategies.formats.recognise import see
from strategies.situation import Situation
from strategies.strategy import Messages

__all__ = ["ToldCounts"]

#: From so many requests on, what frames a message is told apart from what it says.
LEAST_STRETCHES = 10


@dataclass(frozen=True, slots=True)
class ToldCounts:
    """What the requests of a conversation told, each of the messages before it.

    Parameters
    ----------
    prefix_tokens : int
        Tokens of system prompt and tools, where they are no messages; default 0.
    marks : tuple of (int, int)
        How many messages each request sent, and the context that it told, ascending.

    Examples
    --------
    >>> from ledger.usage import Usage
    >>> talk = [{"role": "user", "content": "x" * 400}, {"role": "user", "content": "y" * 400}]
    >>> counts = ToldCounts(1000).learned(1, Usage(uncached=1100))
    >>> counts = counts.learned(2, Usage(cache_read=1100, uncached=300))
    >>> view, situation = counts.seen(talk)
    >>> [situation.scaled(message.tokens) for message in view.messages]
    [100, 300]
    """

    prefix_tokens: int = 0
    marks: tuple[tuple[int, int], ...] = ()

    def learned(self, messages: int, usage: Usage, answer_messages: int = 0) -> "ToldCounts":
        """Return the counts with one more request in them.

        Parameters
        ----------
        messages : int
            How many messages it sent.
        usage : Usage
            What the provider told of it.
        answer_messages : int
            How many messages its answer became, where later requests send all that was written:
            they then count as its output did. Default 0: thinking was left out, or nobody knows.

        Raises
        ------
        InputError
            It sent no messages, or told no more than the prefix.
        """
        told = usage.context_tokens
        if messages < 1 or told <= self.prefix_tokens:
            where, value = ("messages", messages) if messages < 1 else ("usage", told)
            remedy = "Learn from requests that sent messages."
            raise InputError(
                "tells nothing about messages", where=where, value=value, remedy=remedy
            )
        # A context that shrank, as where thinking is not sent again, says nothing of what it held.
        kept = [each for each in self.marks if each[0] < messages and each[1] < told]
        kept.append((messages, told))
        if answer_messages and usage.output:
            kept.append((messages + answer_messages, told + usage.output))
        return ToldCounts(self.prefix_tokens, tuple(kept))

    def kept_until(self, message: int) -> "ToldCounts":
        """Return the counts without requests that sent a message from this one on.

        After a compaction: of the first message that it changed.
        """
        kept = tuple(each for each in self.marks if each[0] <= message)
        return ToldCounts(self.prefix_tokens, kept)

    def seen(
        self, messages: Messages, situation: Situation | None = None
    ) -> tuple[Conversation, Situation]:
        """Return a view of messages and a situation in which their tokens are as told.

        Parameters
        ----------
        messages : sequence or Conversation
        situation : Situation, optional
            Its prefix and ratio are replaced; default the usual one.

        Returns
        -------
        tuple of Conversation and Situation
            For `compact` and `quote`. Messages that no request has sent yet count by the ratio
            that the last request taught; so do texts that a strategy adds.
        """
        given = situation or Situation()
        view = see(messages, given.wire_format)
        ends = [(0, self.prefix_tokens), *(m for m in self.marks if m[0] <= len(view.messages))]
        stretches = [_stretch(view, *pair) for pair in pairwise(ends)]
        guessed = sum(each.guessed for each in stretches)
        ratio = (ends[-1][1] - self.prefix_tokens) / guessed if guessed else 1.0
        frame = _frame_tokens(stretches)
        tokens = [count / ratio for each in stretches for count in _spread(view, each, frame)]
        tokens += [float(message.tokens) for message in view.messages[ends[-1][0] :]]
        counted = tuple(
            message._replace(tokens=count)
            for message, count in zip(view.messages, _whole(tokens), strict=True)
        )
        known = replace(given, prefix_tokens=self.prefix_tokens, token_ratio=ratio)
        return replace(view, messages=counted, frame_tokens=frame / ratio), known


class _Stretch(NamedTuple):
    """Messages that one request sent and the one before did not, and what they count together."""

    first: int
    end: int
    told: int
    guessed: int
    parts: int


def _stretch(view: Conversation, before: tuple[int, int], after: tuple[int, int]) -> _Stretch:
    messages = view.messages[before[0] : after[0]]
    parts = sum(len(message.parts) for message in messages)
    guessed = view.tokens(before[0], after[0])
    return _Stretch(before[0], after[0], after[1] - before[1], guessed, parts)


def _frame_tokens(stretches: Sequence[_Stretch]) -> float:
    """Return what a part counts beside its text: told = frame·parts + ratio·guessed, fitted.

    Squares are weighed by 1/told: what is large varies more.
    """
    if len(stretches) < LEAST_STRETCHES:
        return 0.0
    pp = sum(each.parts**2 / each.told for each in stretches)
    pg = sum(each.parts * each.guessed / each.told for each in stretches)
    gg = sum(each.guessed**2 / each.told for each in stretches)
    parts = sum(each.parts for each in stretches)
    guessed = sum(each.guessed for each in stretches)
    determinant = pp * gg - pg * pg
    return max((parts * gg - guessed * pg) / determinant, 0.0) if determinant > 0 else 0.0


def _spread(view: Conversation, stretch: _Stretch, frame: float) -> Iterator[float]:
    """Yield the tokens of a stretch's messages: their frames, and the rest as they are guessed."""
    frame = min(frame, stretch.told / max(stretch.parts, 1))
    rest = stretch.told - frame * stretch.parts
    # Without a guess, the first message of a stretch stands for all of it.
    for number, message in enumerate(view.messages[stretch.first : stretch.end]):
        share = message.tokens / stretch.guessed if stretch.guessed else float(number == 0)
        yield frame * len(message.parts) + rest * share


def _whole(parts: Iterable[float]) -> Iterator[int]:
    """Round numbers so that their running sums are off by no more than a half."""
    total, given = 0.0, 0
    for part in parts:
        total += part
        yield round(total) - given
        given = round(total)
