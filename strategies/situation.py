"""What a strategy is told besides the messages."""

from dataclasses import dataclass

from strategies.conversation import Conversation
from strategies.tokens import CountTokens

__all__ = ["Situation", "context_tokens_of"]


@dataclass(frozen=True, slots=True)
class Situation:
    """What is known around a conversation when a strategy is called.

    Parameters
    ----------
    prefix_tokens : int
        Tokens that a request sends in front of the messages: system prompt and tools, where they
        are no messages. Part of X, X′ and p′.
    token_ratio : float
        Tokens per token estimated, as `TokenRatio` learns it; 1 trusts characters ÷ 4.
    count_tokens : callable, optional
        The provider's own counter: messages → tokens, the prefix included. It is asked where a
        threshold or a budget is compared.
    wire_format : str, optional
        Format of the messages; told by them unless given.
    force : bool
        Compact whether or not the strategy's threshold is reached.
    """

    prefix_tokens: int = 0
    token_ratio: float = 1.0
    count_tokens: CountTokens | None = None
    wire_format: str | None = None
    force: bool = False

    def scaled(self, tokens: int) -> int:
        """Return estimated tokens of messages as this conversation's ratio corrects them."""
        return round(tokens * self.token_ratio)

    def sent(self, tokens: int) -> int:
        """Return what a request with these estimated tokens of messages sends in all."""
        return self.prefix_tokens + self.scaled(tokens)


def context_tokens_of(conversation: Conversation, situation: Situation) -> int:
    """Return X: by the provider's counter where there is one, else estimated."""
    if situation.count_tokens is not None:
        return situation.count_tokens([message.raw for message in conversation.messages])
    return situation.sent(conversation.tokens())
