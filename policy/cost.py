"""What a compaction costs and what it saves per request, on a warm cache.

The strategy is a summary by the same model on the shared prefix (the model, §3, kind a): the
summary call reads the cached context, adds an instruction and writes the summary; the next
request then caches the new context again.
"""

from dataclasses import dataclass

from policy.prices import Prices

__all__ = [
    "CONTEXT_AFTER_TOKENS",
    "GROWTH_TOKENS",
    "INSTRUCTION_TOKENS",
    "PREFIX_TOKENS",
    "SUMMARY_OUTPUT_TOKENS",
    "CostTerms",
    "Sizes",
    "warm_summary",
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
        Kept prefix P; of the new context, p′ = min(P, X′) is still cached.
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


@dataclass(frozen=True, slots=True)
class CostTerms:
    """Every term of C and s, in base tokens at the price level of the context before.

    Parameters
    ----------
    read : float
        r·X_hit, the cached context that the summary call reads.
    uncached : float
        X − X_hit + I, what the summary call sends uncached.
    output : float
        o·(S + R), what the summary call writes.
    recache : float
        (w − r)(X′ − p′), the surcharge on the next request's uncached part.
    saving : float
        s = r·(X − X′), what each remaining request then costs less.
    """

    read: float
    uncached: float
    output: float
    recache: float
    saving: float

    @property
    def cost(self) -> float:
        """The total C in base tokens; net after n requests is n·s − C."""
        return self.read + self.uncached + self.output + self.recache


def warm_summary(
    sizes: Sizes, prices: Prices, prices_after: Prices | None = None, *, ttl: str = "5m"
) -> CostTerms:
    """Return cost and saving of a same-model summary while the cache is warm.

    Parameters
    ----------
    sizes : Sizes
        Token counts, measured or assumed.
    prices : Prices
        Prices at the context before.
    prices_after : Prices, optional
        Prices at the context after, where a price cliff lies between the two; the lower price
        of the requests to come is then part of the saving. Defaults to `prices`.
    ttl : {'5m', '1h'}
        Whose write weight w is paid for the new context.

    Notes
    -----
    Reference: the model, §3. New tokens and output of the requests to come are left out of s;
    below a cliff they get cheaper too, so s is then a little too small, never too large.
    """
    before, after = sizes.context_tokens, sizes.context_after_tokens
    hit = before if sizes.cached_tokens is None else sizes.cached_tokens
    level, later = _level(prices, prices_after)
    read_after = level * later.cache_read
    write_after = level * (later.cache_write_1h if ttl == "1h" else later.cache_write_5m)
    still_cached = min(sizes.prefix_tokens, after)
    return CostTerms(
        read=prices.cache_read * hit,
        uncached=float(before - hit + sizes.instruction_tokens),
        output=prices.output * sizes.summary_output_tokens,
        recache=(write_after - read_after) * (after - still_cached),
        saving=prices.cache_read * (before - after)
        if later is prices
        else prices.cache_read * before - read_after * after,
    )


def _level(prices: Prices, prices_after: Prices | None) -> tuple[float, Prices]:
    """Return the base price after ÷ before, and the prices it is of."""
    if prices_after is None or prices_after is prices:
        return 1.0, prices
    before = prices.dollars_per_million.get("input")
    after = prices_after.dollars_per_million.get("input")
    # A price book that knows weights only can't have a cliff in its base price.
    level = after / before if before and after else 1.0
    return level, prices_after
