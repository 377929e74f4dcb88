"""What a compaction costs and what it saves per request: C and s, term by term.

A compaction is a call that makes the new context, of one kind or another
(`policy.summary_call`), and what then happens to the cache (`policy.cache_state`). Without a
compaction the next request finds p tokens of its context X in the cache, with one p′ of X′:
net(n) = n·s − C, with s = r·(X − X′) and C = C_sum + (w − r)·[(X′ − p′) − (X − p)].
"""

from dataclasses import dataclass

from policy.cache_state import WARM, CacheState, Ttl
from policy.prices import Prices
from policy.sizes import Sizes
from policy.summary_call import NO_CALL, SummaryCall, shared_prefix_call

__all__ = ["CostTerms", "compaction_terms", "sliding_window", "warm_summary"]


@dataclass(frozen=True, slots=True)
class CostTerms:
    """Every term of C and s, in base tokens at the price level of the context before.

    Parameters
    ----------
    read : float
        r·X_hit, the cached context that the summary call reads.
    uncached : float
        X − X_hit + I, what the summary call sends uncached; at w where it is cached as well.
    output : float
        o·(S + R), what the summary call writes.
    recache : float
        (w − r)(X′ − p′), the surcharge on the next request's uncached part.
    saving : float
        s = r·(X − X′), what each remaining request then costs less.
    recache_avoided : float
        (w − r)(X − p), the surcharge that the next request would have paid without the
        compaction: 0 on a warm cache, where p = X.
    rework : float
        (w − r)·L, the surcharge on tokens that the next request reads in again; s is less by r·L.
    quality : float
        Q, a charge for what a summary loses; 0 unless somebody sets it.
    """

    read: float
    uncached: float
    output: float
    recache: float
    saving: float
    recache_avoided: float = 0.0
    rework: float = 0.0
    quality: float = 0.0

    @property
    def cost(self) -> float:
        """The total C in base tokens; negative where the compaction pays at once."""
        call = self.read + self.uncached + self.output
        return call + self.recache + self.rework + self.quality - self.recache_avoided

    def net(self, requests: float) -> float:
        """Return n·s − C, what a compaction is worth if `requests` remain, the next one included.

        At least one request must remain: without any, nothing is cached again either.
        """
        return requests * self.saving - self.cost


def compaction_terms(
    call: SummaryCall,
    sizes: Sizes,
    prices: Prices,
    prices_after: Prices | None = None,
    state: CacheState = WARM,
    *,
    rework_tokens: int = 0,
    quality_cost: float = 0.0,
) -> CostTerms:
    """Return C and s of one compaction of any kind, in any state of the cache.

    Parameters
    ----------
    call : SummaryCall
        What makes the new context; `NO_CALL` where content is just cleared.
    sizes : Sizes
        Token counts, measured or assumed.
    prices : Prices
        Prices at the context before.
    prices_after : Prices, optional
        Prices at the context after, where a price cliff lies between the two; the lower price
        of the requests to come is then part of the saving. Defaults to `prices`.
    state : CacheState
        Warm by default. On either side of a pause the unchanged context would be cached again as
        well, and no prefix is left, unless the call after the pause revived it.
    rework_tokens : int
        L, what the agent reads in again with its next request.
    quality_cost : float
        Q in base tokens.

    Notes
    -----
    Reference: the model, §3. New tokens and output of the requests to come are left out of s;
    below a cliff they get cheaper too, so s is then a little too small, never too large.
    """
    before, after = sizes.context_tokens, sizes.context_after_tokens
    level, later = _level(prices, prices_after)
    read, write = state.read_weight(prices), state.write_weight(prices)
    read_after = level * state.read_weight(later)
    surcharge_after = level * state.write_weight(later) - read_after
    alive = state.next_is_warm or (call.revives_prefix and not state.call_is_warm)
    still_cached = min(sizes.prefix_tokens, after) if alive else 0
    sent_later = after + rework_tokens
    return CostTerms(
        read=call.read,
        uncached=call.uncached,
        output=call.output,
        recache=surcharge_after * (after - still_cached),
        saving=read * (before - sent_later)
        if later is prices
        else read * before - read_after * sent_later,
        recache_avoided=0.0 if state.next_is_warm else (write - read) * before,
        rework=surcharge_after * rework_tokens,
        quality=quality_cost,
    )


def sliding_window(
    sizes: Sizes, prices: Prices, prices_after: Prices | None = None, state: CacheState = WARM
) -> CostTerms:
    """Return C and s of a window that slides at every request, so that its tail never is cached.

    Parameters
    ----------
    sizes : Sizes
        X, the window X′ (prefix P and tail), P; the rest plays no part.
    prices, prices_after, state
        As of `compaction_terms`.

    Returns
    -------
    CostTerms
        s = r·(X − X′) − (w − r)(X′ − P): every request pays the surcharge, so s may be negative.

    Notes
    -----
    Reference: the model, §3, kind c. What an unchanged context would go on to grow by is left
    out, so s is a little too small, never too large.
    """
    once = compaction_terms(NO_CALL, sizes, prices, prices_after, state)
    warm = CacheState("warm", state.ttl, state.miss_probability)
    each = compaction_terms(NO_CALL, sizes, prices, prices_after, warm).recache
    return CostTerms(
        0.0,
        0.0,
        0.0,
        recache=once.recache - each,
        saving=once.saving - each,
        recache_avoided=once.recache_avoided,
    )


def warm_summary(
    sizes: Sizes, prices: Prices, prices_after: Prices | None = None, *, ttl: Ttl = "5m"
) -> CostTerms:
    """Return cost and saving of a same-model summary while the cache is warm (kind a).

    Parameters
    ----------
    sizes, prices, prices_after
        As of `compaction_terms`.
    ttl : {'5m', '1h', '12h'}
        Whose write weight w is paid for the new context.

    Notes
    -----
    Reference: the model, §3.
    """
    state = WARM if ttl == "5m" else CacheState(ttl=ttl)
    call = shared_prefix_call(sizes, prices)
    return compaction_terms(call, sizes, prices, prices_after, state)


def _level(prices: Prices, prices_after: Prices | None) -> tuple[float, Prices]:
    """Return the base price after ÷ before, and the prices it is of."""
    if prices_after is None or prices_after is prices:
        return 1.0, prices
    before = prices.dollars_per_million.get("input")
    after = prices_after.dollars_per_million.get("input")
    # A price book that knows weights only can't have a cliff in its base price.
    level = after / before if before and after else 1.0
    return level, prices_after
