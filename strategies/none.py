"""Strategy `none`: everything stays as it is."""

from dataclasses import dataclass
from typing import ClassVar

from policy.prices import Prices
from strategies.cost_quote import Quote, nothing_to_do
from strategies.result import Result, unchanged
from strategies.situation import Situation, context_tokens_of
from strategies.strategy import DEFAULT, Messages, seen

__all__ = ["NoCompaction"]


@dataclass(frozen=True, slots=True)
class NoCompaction:
    """Returns the messages as they came: the baseline, and what to use where others decide."""

    name: ClassVar[str] = "none"

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Return the conversation unchanged."""
        return unchanged(seen(messages, situation), "the strategy is none")

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return C = 0 and X′ = X."""
        del prices
        return nothing_to_do(context_tokens_of(seen(messages, situation), situation))
