"""The token counts that a compaction's cost depends on, and what stands in for unknown ones."""

from dataclasses import dataclass

__all__ = [
    "CONTEXT_AFTER_TOKENS",
    "GROWTH_TOKENS",
    "INSTRUCTION_TOKENS",
    "PREFIX_TOKENS",
    "SUMMARY_OUTPUT_TOKENS",
    "Sizes",
]

# Median kept prefix P (system prompt and tools) of real compactions, the model, §3.
PREFIX_TOKENS = 28_000
# Median context at the first request after a real compaction, X′, the model, §3.
CONTEXT_AFTER_TOKENS = 51_000
# Median output of a summary call, S + R, the model, §3.
SUMMARY_OUTPUT_TOKENS = 5_000
# Summarization instruction I of the pricing reference's worked numbers, §3.4.
INSTRUCTION_TOKENS = 500
# Usual growth of the context per request outside compactions, the model, §4.
GROWTH_TOKENS = 1_100


@dataclass(frozen=True, slots=True)
class Sizes:
    """The token counts that a compaction's cost depends on.

    Parameters
    ----------
    context_tokens : int
        Context before, X.
    context_after_tokens : int
        Context after, X′: kept prefix, summary and verbatim tail.
    prefix_tokens : int
        Kept prefix P; of the new context, p′ = min(P, X′) is still cached. Where content is
        cleared without a call, the place of the first changed token.
    summary_output_tokens : int
        Output of the summary call, S + R: summary and thinking.
    instruction_tokens : int
        Instruction I added to the summary call.
    cached_tokens : int or None
        Part of X that the summary call reads from the cache, X_hit; None means all of it.
    """

    context_tokens: int
    context_after_tokens: int = CONTEXT_AFTER_TOKENS
    prefix_tokens: int = PREFIX_TOKENS
    summary_output_tokens: int = SUMMARY_OUTPUT_TOKENS
    instruction_tokens: int = INSTRUCTION_TOKENS
    cached_tokens: int | None = None
