"""What a strategy would cost on a conversation, and what it would leave: C, X′ and p′."""

from dataclasses import dataclass
from typing import Literal

from policy.cost import CostTerms, compaction_terms
from policy.prices import Prices
from policy.sizes import INSTRUCTION_TOKENS, SUMMARY_OUTPUT_TOKENS, Sizes
from policy.summary_call import NO_CALL, SummaryCall, separate_call, shared_prefix_call

__all__ = ["CompactionKind", "Quote", "SummaryTerms", "nothing_to_do", "quote_of"]

#: As the service's questions name kinds; 'none' where the strategy would leave all as it is.
CompactionKind = Literal["none", "summary", "separate", "clear", "server_side"]


@dataclass(frozen=True, slots=True)
class Quote:
    """The terms on which a strategy would compact a conversation now.

    Parameters
    ----------
    kind : str
        What makes the new context: a call behind the agent's own prefix, a separate one, none
        ('clear'), or the server.
    sizes : Sizes
        X, X′ and p′, and what the call writes, in tokens.
    terms : CostTerms
        C and s, term by term, on a warm cache.
    summary_model : str or None
        Who summarizes, where the summarizer has a name.

    Notes
    -----
    Reference: the model, §3.
    """

    kind: CompactionKind
    sizes: Sizes
    terms: CostTerms
    summary_model: str | None = None

    @property
    def cost(self) -> float:
        """C in base tokens."""
        return self.terms.cost

    @property
    def saving(self) -> float:
        """S in base tokens, per remaining request."""
        return self.terms.saving

    @property
    def context_tokens(self) -> int:
        """X, the context before."""
        return self.sizes.context_tokens

    @property
    def context_after_tokens(self) -> int:
        """X′, the context after."""
        return self.sizes.context_after_tokens

    @property
    def cached_after_tokens(self) -> int:
        """p′, what of the new context is still cached: all before the first changed message."""
        return self.sizes.prefix_tokens


@dataclass(frozen=True, slots=True)
class SummaryTerms:
    """What a summary call sends and writes.

    Parameters
    ----------
    sent_tokens : int
        The part of the conversation that the call is given, without the prefix.
    output_tokens : int
        S + R; the model's median until something was learned.
    instruction_tokens : int
        I.
    prices : Prices, optional
        Of the summarizing model, where it is another one.
    model_name : str, optional
        Its name.
    """

    sent_tokens: int
    output_tokens: int = SUMMARY_OUTPUT_TOKENS
    instruction_tokens: int = INSTRUCTION_TOKENS
    prices: Prices | None = None
    model_name: str | None = None


def nothing_to_do(context_tokens: int) -> Quote:
    """Return the quote of a strategy that would change nothing: C = 0, X′ = p′ = X."""
    sizes = Sizes(context_tokens, context_tokens, context_tokens, 0, 0)
    return Quote("none", sizes, CostTerms(0.0, 0.0, 0.0, 0.0, 0.0))


def quote_of(
    kind: CompactionKind,
    prices: Prices,
    *,
    context_tokens: int,
    after_tokens: int,
    cached_tokens: int,
    prefix_tokens: int = 0,
    summary: SummaryTerms | None = None,
) -> Quote:
    """Return a quote from sizes.

    Parameters
    ----------
    kind : str
    prices : Prices
        Of the agent's model at the context before.
    context_tokens, after_tokens, cached_tokens : int
        X, X′ and p′.
    prefix_tokens : int
        Sent in front of the messages, and by a call behind the agent's prefix as well.
    summary : SummaryTerms, optional
        Of the call; None for kind 'clear'.
    """
    output, instruction = 0, 0
    call = NO_CALL
    if summary is not None:
        output, instruction = summary.output_tokens, summary.instruction_tokens
        call = _call(kind, prices, prefix_tokens, summary)
    sizes = Sizes(context_tokens, after_tokens, cached_tokens, output, instruction)
    named = None if summary is None else summary.model_name
    return Quote(kind, sizes, compaction_terms(call, sizes, prices), named)


def _call(
    kind: CompactionKind, prices: Prices, prefix_tokens: int, summary: SummaryTerms
) -> SummaryCall:
    sent = summary.sent_tokens if kind == "separate" else prefix_tokens + summary.sent_tokens
    sizes = Sizes(
        sent,
        summary_output_tokens=summary.output_tokens,
        instruction_tokens=summary.instruction_tokens,
    )
    if kind == "separate":
        return separate_call(sizes, prices, summary.prices or prices, sent_tokens=sent)
    return shared_prefix_call(sizes, prices)
