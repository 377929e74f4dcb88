"""Strategy `tail_digest`: the prefix stays byte for byte, old bulky results become one line."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from policy.prices import Prices
from strategies.conversation import (
    CHARACTERS_PER_TOKEN,
    IMAGE_CHARACTERS,
    MEMORY_MARK,
    Conversation,
    Message,
    Part,
)
from strategies.cost_quote import Quote, nothing_to_do, quote_of
from strategies.digest import DIGEST_CHARACTERS, DIGEST_MARK, digest_of
from strategies.micro import Shortening, saved_tokens, texts_by_message
from strategies.result import Replacement, Result, replaced, unchanged
from strategies.safe_split import pair_up
from strategies.settings import at_least, check_types
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, refusal, seen
from strategies.tokens import estimated_tokens
from strategies.working_memory import MEMORY_LINE_CHARACTERS, MOST_LINES, TakeNotes, memory_text

__all__ = ["TailDigest"]


@dataclass(frozen=True, slots=True)
class TailDigest:
    """Turns old bulky tool results into digests, and keeps a working memory behind them.

    Parameters
    ----------
    prefix_messages : int
        So many messages after the system prompt are never touched, whatever they hold; default 1,
        the task.
    keep_recent : int
        So many of the last messages are left alone as well; default 6.
    bulky_tokens : int
        Results of at least this size are digested; default 500.
    notes : callable, optional
        Takes notes for the working memory, beside what the conversation itself tells.

    Raises
    ------
    InputError
        A number is out of range.

    Notes
    -----
    The memory goes behind the last digest: what an earlier compaction left before it is the same,
    byte for byte, and stays in the cache.
    """

    name: ClassVar[str] = "tail_digest"
    prefix_messages: int = 1
    keep_recent: int = 6
    bulky_tokens: int = 500
    notes: TakeNotes | None = None

    def __post_init__(self) -> None:
        at_least(0, prefix_messages=self.prefix_messages, keep_recent=self.keep_recent)
        at_least(1, bulky_tokens=self.bulky_tokens)
        check_types(self)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Digest what is old and bulky; without anything to digest nothing changes."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        shorter = list(self._shortenings(conversation))
        if not shorter:
            return unchanged(conversation, "no old result is bulky")
        return _digested(conversation, shorter, self._memory(conversation, shorter))

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the price of caching again what follows the first change.

        Digests are not written for a quote: each counts as a usual one, and so does the memory.
        """
        conversation = seen(messages, situation)
        bulky = list(self._bulky(conversation))
        total = conversation.tokens()
        if not bulky:
            return nothing_to_do(situation.sent(total))
        memories = _memories(conversation)
        lines = min(len(bulky), MOST_LINES)
        added = len(bulky) * DIGEST_CHARACTERS + (lines + 2) * MEMORY_LINE_CHARACTERS
        held = sum(conversation.tokens_held(k, _size(part)) for k, part, _ in bulky)
        removed = sum(conversation.messages[k].tokens for k in memories)
        after = total - removed + int(added / CHARACTERS_PER_TOKEN - held)
        first = min([bulky[0][0], *memories])
        return quote_of(
            "clear",
            prices,
            context_tokens=situation.sent(total),
            after_tokens=situation.sent(after),
            cached_tokens=situation.sent(conversation.tokens(0, first)),
        )

    def _memory(self, conversation: Conversation, shorter: list[Shortening]) -> str:
        ids = {
            part.id
            for each in shorter
            for part in conversation.messages[each.message].parts
            if part.kind == "tool_result" and part.place == each.place
        }
        return memory_text(conversation, ids, self.notes(conversation) if self.notes else None)

    def _shortenings(self, conversation: Conversation) -> Iterator[Shortening]:
        for index, part, call in self._bulky(conversation):
            text = digest_of(call, part)
            if len(text) < _size(part):
                yield Shortening(index, part.place, text, _size(part) - len(text))

    def _recent(self, conversation: Conversation) -> int:
        """Return where the recent messages begin; a working memory among them does not count."""
        memories = set(_memories(conversation))
        left = self.keep_recent
        for index in range(len(conversation.messages) - 1, -1, -1):
            if left == 0:
                return index + 1
            left -= index not in memories
        return 0

    def _bulky(self, conversation: Conversation) -> Iterator[tuple[int, Part, Part]]:
        """Yield message, result and call of what is old, bulky and no digest yet."""
        calls = conversation.calls()
        first = conversation.head + self.prefix_messages
        for index in range(first, self._recent(conversation)):
            for part in conversation.messages[index].parts:
                if part.kind != "tool_result" or part.id not in calls or part.place == -2:
                    continue
                bulky = _size(part) >= self.bulky_tokens * CHARACTERS_PER_TOKEN
                if bulky and not part.text.startswith(DIGEST_MARK):
                    yield index, part, calls[part.id]


def _size(part: Part) -> int:
    """Return the characters that a result adds, images at what their tokens hold."""
    return part.characters + part.images * IMAGE_CHARACTERS


def _memories(conversation: Conversation) -> list[int]:
    """Return where earlier compactions put a working memory."""
    return [
        index
        for index, message in enumerate(conversation.messages)
        if message.is_synthetic and message.parts[0].text.startswith(MEMORY_MARK)
    ]


def _digested(conversation: Conversation, shorter: list[Shortening], memory: str) -> Result:
    messages, make = conversation.messages, conversation.wire_format.with_results
    texts = texts_by_message(shorter)
    old = set(_memories(conversation))
    place = _place_for_memory(conversation, shorter[-1].message + 1)
    entries: list[object] = []
    for index, message in enumerate(messages):
        if index == place:
            entries.append(conversation.wire_format.user_text(memory, message.raw))
        if index not in old:
            entries.append(make(message, texts[index]) if index in texts else index)
    saved = saved_tokens(conversation, shorter)
    tokens = conversation.tokens() - saved - sum(messages[k].tokens for k in old)
    tokens += estimated_tokens(memory) if place < len(messages) else 0
    new = Replacement(tuple(entries), tokens, (), tuple(texts))
    return replaced(conversation, new, f"digested {len(shorter)} tool results")


def _place_for_memory(conversation: Conversation, first: int) -> int:
    """Return before which message a user message can stand; the length where nowhere."""
    messages = conversation.messages
    steps = [0] * (len(messages) + 2)
    for begin, end in pair_up(messages).spans:
        if end < len(messages):
            steps[begin + 1] += 1
            steps[end + 1] -= 1
    parted = list(accumulate(steps))
    for k in range(first, len(messages)):
        if not parted[k] and _may_follow(messages, k):
            return k
    return len(messages)


def _may_follow(messages: tuple[Message, ...], k: int) -> bool:
    """Whether a user message before message k parts no response: its entries follow each other."""
    before, after = messages[k - 1].role, messages[k].role
    return not (before == after == "assistant") and "other" not in (before, after)
