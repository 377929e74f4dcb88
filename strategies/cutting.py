"""Dropping what lies before a cut: the part that windows and budgets share."""

from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.cost_quote import Quote, nothing_to_do, quote_of
from strategies.result import Replacement, Result, replaced
from strategies.situation import Situation

__all__ = ["drop_before", "quote_of_cut", "systems_before"]


def systems_before(conversation: Conversation, cut: int) -> tuple[int, ...]:
    """Return the system messages before a cut: no strategy takes instructions away."""
    return tuple(k for k in range(cut) if conversation.messages[k].role == "system")


def drop_before(conversation: Conversation, cut: int, reason: str) -> Result:
    """Return the conversation without what lies before the cut, system messages apart."""
    messages = conversation.messages
    entries = (*systems_before(conversation, cut), *range(cut, len(messages)))
    tokens = sum(messages[k].tokens for k in entries)
    return replaced(conversation, Replacement(entries, tokens), reason)


def quote_of_cut(
    conversation: Conversation, cut: int, prices: Prices, situation: Situation
) -> Quote:
    """Return the quote of dropping what lies before the cut; 0 drops nothing."""
    before = situation.sent(conversation.tokens())
    if not cut:
        return nothing_to_do(before)
    systems = sum(conversation.messages[k].tokens for k in systems_before(conversation, cut))
    return quote_of(
        "clear",
        prices,
        context_tokens=before,
        after_tokens=situation.sent(systems + conversation.tokens(cut)),
        cached_tokens=situation.sent(conversation.tokens(0, conversation.head)),
    )
