"""Strategy `token_budget`: the oldest turns go until the rest fits a budget."""

from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.cost_quote import Quote
from strategies.cutting import drop_before, quote_of_cut, systems_before
from strategies.result import Result, unchanged
from strategies.safe_split import clean_cuts
from strategies.settings import at_least, check_types
from strategies.situation import Situation, context_tokens_of
from strategies.strategy import DEFAULT, Messages, refusal, seen

__all__ = ["TokenBudget"]


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Drops the oldest turns until the context fits a budget.

    Parameters
    ----------
    budget_tokens : int
        What the context may hold, prefix included; default 50,000.

    Raises
    ------
    InputError
        `budget_tokens` is below 1.

    Notes
    -----
    Characters ÷ 4 say where to cut first. Where the situation has the provider's counter, it is
    asked about that cut and, while the context is still too large, about later ones, each chosen
    by the error seen so far: a few questions, not one a message.
    """

    name: ClassVar[str] = "token_budget"
    budget_tokens: int = 50_000

    def __post_init__(self) -> None:
        at_least(1, budget_tokens=self.budget_tokens)
        check_types(self)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Drop as little as the budget asks for, at clean boundaries only."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        now = context_tokens_of(conversation, situation)
        if now <= self.budget_tokens:
            return unchanged(conversation, f"{now} tokens fit the budget of {self.budget_tokens}")
        cuts = clean_cuts(conversation)
        if not cuts:
            return unchanged(conversation, f"{now} tokens, but no clean boundary to cut at")
        cut, left = self._fitting(conversation, cuts, situation)
        over = "" if left <= self.budget_tokens else f"; {left} tokens are left, over the budget"
        reason = f"dropped what was older than message {cut}{over}"
        return drop_before(conversation, cut, reason)

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return what the cut costs that the estimate chooses; the counter is not asked."""
        conversation = seen(messages, situation)
        cut = 0
        if situation.sent(conversation.tokens()) > self.budget_tokens:
            cuts = clean_cuts(conversation)
            sizes = _sizes_after(conversation, cuts)
            cut = cuts[self._first(sizes, 0, situation, 1.0)] if cuts else 0
        return quote_of_cut(conversation, cut, prices, situation)

    def _fitting(
        self, conversation: Conversation, cuts: list[int], situation: Situation
    ) -> tuple[int, int]:
        """Return the cut, and the tokens that are left after it."""
        sizes = _sizes_after(conversation, cuts)
        chosen = self._first(sizes, 0, situation, 1.0)
        if situation.count_tokens is None:
            return cuts[chosen], situation.sent(sizes[chosen])
        while True:
            left = situation.count_tokens(_raws_after(conversation, cuts[chosen]))
            if left <= self.budget_tokens or chosen == len(cuts) - 1:
                return cuts[chosen], left
            told = left - situation.prefix_tokens
            error = max(told / max(situation.scaled(sizes[chosen]), 1), 1.0)
            chosen = self._first(sizes, chosen + 1, situation, error)

    def _first(self, sizes: list[int], start: int, situation: Situation, error: float) -> int:
        """Return which cut, from `start` on, is the first to fit; the last where none does."""
        for number in range(start, len(sizes)):
            expected = situation.prefix_tokens + situation.scaled(sizes[number]) * error
            if expected <= self.budget_tokens:
                return number
        return len(sizes) - 1


def _sizes_after(conversation: Conversation, cuts: list[int]) -> list[int]:
    """Return the estimated tokens of the messages that each cut leaves."""
    messages = conversation.messages
    gone = [0, *accumulate(0 if each.role == "system" else each.tokens for each in messages)]
    total = conversation.tokens()
    return [total - gone[cut] for cut in cuts]


def _raws_after(conversation: Conversation, cut: int) -> list[object]:
    kept = (*systems_before(conversation, cut), *range(cut, len(conversation.messages)))
    return [conversation.messages[k].raw for k in kept]
