"""Strategy `summarize`: the older messages become one synthetic user message, a summary."""

from dataclasses import dataclass
from typing import ClassVar

from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.cost_quote import Quote
from strategies.result import Result, unchanged
from strategies.safe_split import safe_cut
from strategies.settings import at_least, check_types
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, refusal, seen
from strategies.summary import (
    Summarizer,
    SummaryModel,
    quote_of_summary,
    summarized,
    summarizer_of,
    summary_worth_asking,
)

__all__ = ["Summarize"]


@dataclass(frozen=True, slots=True)
class Summarize:
    """Summarizes the older messages once there are many, and keeps the recent ones verbatim.

    Parameters
    ----------
    model : callable or Summarizer
        Who writes the summary. It must not compact by itself, or it would call this again.
    threshold : int
        Messages from which on it acts; default 20, 0 always.
    keep_recent : int
        At least this many messages stay verbatim; default 6.
    within_turn : bool
        Whether it may also cut before a response inside a turn, so that one long turn can be
        compacted; the turn's prompt then stays, behind the summary. Default: at prompts only.

    Raises
    ------
    InputError
        A number is out of range, or the model can't be called.
    """

    name: ClassVar[str] = "summarize"
    model: Summarizer | SummaryModel
    threshold: int = 20
    keep_recent: int = 6
    within_turn: bool = False

    def __post_init__(self) -> None:
        at_least(0, threshold=self.threshold)
        at_least(1, keep_recent=self.keep_recent)
        summarizer_of(self.model)
        check_types(self)

    @property
    def summarizer(self) -> Summarizer:
        """Who writes the summary, and how it is asked."""
        return summarizer_of(self.model)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Summarize what is old, if a clean boundary lets it."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        size = len(conversation.messages)
        if size < self.threshold and not situation.force:
            reason = f"{size} messages are below the threshold of {self.threshold}"
            return unchanged(conversation, reason)
        cut = self._cut(conversation)
        if not cut:
            return unchanged(conversation, "no clean boundary before the recent messages")
        if not summary_worth_asking(conversation, cut):
            return unchanged(conversation, "nothing new to summarize")
        return summarized(conversation, cut, self.summarizer)

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the price of the summary call and of caching summary and tail again."""
        conversation = seen(messages, situation)
        acts = situation.force or len(conversation.messages) >= self.threshold
        cut = self._cut(conversation) if acts else 0
        return quote_of_summary(conversation, cut, self.summarizer, prices, situation)

    def _cut(self, conversation: Conversation) -> int:
        desired = len(conversation.messages) - self.keep_recent
        return safe_cut(conversation, desired, within_turn=self.within_turn)
