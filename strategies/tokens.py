"""Token counts: characters ÷ 4, the provider's counter where there is one, and the error learned.

Usage tells how many tokens a request really had. One ratio of told to estimated tokens per
conversation corrects the estimates that follow: what a text's language and its tokenizer do to
characters ÷ 4 is much the same throughout one conversation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compactuary.errors import InputError
from ledger.usage import Usage
from strategies.conversation import CHARACTERS_PER_TOKEN

__all__ = ["CODING_RATIO", "CountTokens", "TokenRatio", "estimated_tokens"]

#: Tokens per characters ÷ 4 of coding agents on Claude models, to begin with: the usage of 21,099
#: requests of public Claude Code sessions tells 3.5 characters a token of prose, 2.9 of files, 2.6
#: of what commands print and 2.8 of paths, in shares of 15, 57, 20 and 8%.
CODING_RATIO = 1.4

#: A provider's counter: messages as the caller holds them → tokens of the whole request.
CountTokens = Callable[[Sequence[Any]], int]


def estimated_tokens(text: str) -> int:
    """Return characters ÷ 4, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class TokenRatio:
    """Tokens that a provider told, per token estimated, over the requests of one conversation.

    Parameters
    ----------
    told_tokens, guessed_tokens : int
        Sums over the requests learned from; both 0 before the first.

    Examples
    --------
    >>> from ledger.usage import Usage
    >>> TokenRatio().learned(1000, Usage(cache_read=900, uncached=300)).value
    1.2
    """

    told_tokens: int = 0
    guessed_tokens: int = 0

    @property
    def value(self) -> float:
        """The ratio; 1 until something was learned."""
        return self.told_tokens / self.guessed_tokens if self.guessed_tokens else 1.0

    def learned(self, guessed_tokens: int, usage: Usage, prefix_tokens: int = 0) -> "TokenRatio":
        """Return the ratio with one more request in it.

        Parameters
        ----------
        guessed_tokens : int
            Estimate of the request's messages.
        usage : Usage
            What the provider told of the request.
        prefix_tokens : int
            Known tokens of system prompt and tools, which the estimate does not cover.

        Raises
        ------
        InputError
            The estimate is not positive, or the request told no more than its prefix.
        """
        told = usage.context_tokens - prefix_tokens
        if guessed_tokens <= 0 or told <= 0:
            where = "guessed_tokens" if guessed_tokens <= 0 else "usage"
            value = guessed_tokens if guessed_tokens <= 0 else usage.context_tokens
            remedy = "Learn from requests that sent messages."
            raise InputError(
                "tells nothing about messages", where=where, value=value, remedy=remedy
            )
        return TokenRatio(self.told_tokens + told, self.guessed_tokens + guessed_tokens)
