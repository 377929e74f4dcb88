"""Strategy `micro`: results of old tool calls become placeholders that name the tool."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from policy.prices import Prices
from strategies.conversation import CHARACTERS_PER_TOKEN, IMAGE_CHARACTERS, Conversation
from strategies.cost_quote import Quote, nothing_to_do, quote_of
from strategies.result import Replacement, Result, replaced, unchanged
from strategies.settings import at_least, check_types
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, refusal, seen

__all__ = ["PLACEHOLDER", "Micro", "Shortening", "saved_tokens", "texts_by_message"]

PLACEHOLDER = "[Previous: used {tool}]"


class Shortening(NamedTuple):
    """A tool result that gets a shorter content: its message, its place, the text, what it saves.

    The saving is in characters, images at what their tokens hold.
    """

    message: int
    place: int
    text: str
    saved_characters: int


@dataclass(frozen=True, slots=True)
class Micro:
    """Ages tool results; cheap enough to be called before every request.

    Parameters
    ----------
    keep : int
        How many of the latest results stay whole; default 3.
    preserve : tuple of str
        Tools whose results always stay: reference material that would be read again. Default
        ``read_file``.

    Raises
    ------
    InputError
        `keep` is negative.
    """

    name: ClassVar[str] = "micro"
    keep: int = 3
    preserve: tuple[str, ...] = ("read_file",)

    def __post_init__(self) -> None:
        at_least(0, keep=self.keep)
        check_types(self)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Put placeholders in the place of old results; none grows."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        shorter = list(self._shortenings(conversation))
        if not shorter:
            return unchanged(conversation, f"no result older than the last {self.keep} to shorten")
        return _rewritten(conversation, shorter, f"shortened {len(shorter)} tool results")

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the price of what follows the first placeholder being cached again."""
        conversation = seen(messages, situation)
        return _quoted(conversation, list(self._shortenings(conversation)), prices, situation)

    def _shortenings(self, conversation: Conversation) -> Iterator[Shortening]:
        calls = conversation.calls()
        results = [
            (index, part)
            for index, message in enumerate(conversation.messages)
            for part in message.parts
            if part.kind == "tool_result"
        ]
        for index, part in results[: max(len(results) - self.keep, 0)]:
            call = calls.get(part.id)
            if call is None or call.name in self.preserve or part.place == -2:
                continue
            text = PLACEHOLDER.format(tool=call.name)
            size = part.characters + part.images * IMAGE_CHARACTERS
            if len(text) < size:
                yield Shortening(index, part.place, text, size - len(text))


def texts_by_message(shorter: list[Shortening]) -> dict[int, dict[int, str]]:
    """Return the new texts by message and place."""
    texts: dict[int, dict[int, str]] = defaultdict(dict)
    for each in shorter:
        texts[each.message][each.place] = each.text
    return dict(texts)


def saved_tokens(conversation: Conversation, shorter: list[Shortening]) -> int:
    """Return what shorter results save: what they held, less their new texts."""
    saved = 0.0
    for each in shorter:
        text = len(each.text)
        held = conversation.tokens_held(each.message, each.saved_characters + text)
        saved += held - text / CHARACTERS_PER_TOKEN
    return int(saved)


def _rewritten(conversation: Conversation, shorter: list[Shortening], reason: str) -> Result:
    texts = texts_by_message(shorter)
    make = conversation.wire_format.with_results
    entries = tuple(
        make(message, texts[index]) if index in texts else index
        for index, message in enumerate(conversation.messages)
    )
    # At least one token less: a message's estimate is rounded up.
    tokens = conversation.tokens() - max(saved_tokens(conversation, shorter), 1)
    return replaced(conversation, Replacement(entries, tokens, (), tuple(texts)), reason)


def _quoted(
    conversation: Conversation, shorter: list[Shortening], prices: Prices, situation: Situation
) -> Quote:
    """Return the quote of shortening results: everything from the first on is cached again."""
    total = conversation.tokens()
    before = situation.sent(total)
    if not shorter:
        return nothing_to_do(before)
    saved = saved_tokens(conversation, shorter)
    return quote_of(
        "clear",
        prices,
        context_tokens=before,
        after_tokens=situation.sent(total - saved),
        cached_tokens=situation.sent(conversation.tokens(0, shorter[0].message)),
    )
