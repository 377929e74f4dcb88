"""Strategy `sliding_window`: the last messages stay, the older ones go."""

from dataclasses import dataclass
from typing import ClassVar

from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.cost_quote import Quote
from strategies.cutting import drop_before, quote_of_cut
from strategies.result import Result, unchanged
from strategies.safe_split import safe_cut
from strategies.settings import at_least, check_types
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, refusal, seen

__all__ = ["SlidingWindow"]


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """Keeps the last messages, more where the safe split needs them, and all system messages.

    Parameters
    ----------
    keep_last : int
        At least this many stay; default 10.

    Raises
    ------
    InputError
        `keep_last` is below 1.
    """

    name: ClassVar[str] = "sliding_window"
    keep_last: int = 10

    def __post_init__(self) -> None:
        at_least(1, keep_last=self.keep_last)
        check_types(self)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Drop what lies before the window, if a clean boundary lets it."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        size = len(conversation.messages)
        if size <= self.keep_last:
            return unchanged(conversation, f"{size} messages fit the window of {self.keep_last}")
        cut = self._cut(conversation)
        if not cut:
            return unchanged(conversation, "no clean boundary before the window")
        return drop_before(conversation, cut, f"dropped what was older than message {cut}")

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return what sliding the window once costs: no call, but all of it is cached again.

        A window that moves with every turn pays that every time: `policy.cost.sliding_window`.
        """
        conversation = seen(messages, situation)
        return quote_of_cut(conversation, self._cut(conversation), prices, situation)

    def _cut(self, conversation: Conversation) -> int:
        return safe_cut(conversation, len(conversation.messages) - self.keep_last)
