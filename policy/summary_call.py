"""What the call that makes the new context costs, C_sum, by kind of compaction."""

import math
from dataclasses import dataclass

from compactuary.errors import InputError
from policy.cache_state import WARM, CacheState
from policy.prices import Prices
from policy.sizes import Sizes

__all__ = ["NO_CALL", "SummaryCall", "observed_call", "separate_call", "shared_prefix_call"]


@dataclass(frozen=True, slots=True)
class SummaryCall:
    """The terms of C_sum, in base tokens of the agent's model before the compaction.

    Parameters
    ----------
    read : float
        Context that the call reads from the cache.
    uncached : float
        What it sends uncached, at the weight of input or, where it is cached as well, of a write.
    output : float
        What it writes: summary and thinking.
    revives_prefix : bool
        Whether it writes the agent's own prefix to the cache, so that the next request finds the
        prefix there although the cache had expired.
    """

    read: float = 0.0
    uncached: float = 0.0
    output: float = 0.0
    revives_prefix: bool = False

    @property
    def cost(self) -> float:
        """C_sum in base tokens."""
        return self.read + self.uncached + self.output


#: Kind c: old tool results are cleared, or the window slides; no model is asked.
NO_CALL = SummaryCall()


def shared_prefix_call(
    sizes: Sizes, prices: Prices, state: CacheState = WARM, *, markers: bool = False
) -> SummaryCall:
    """Return kind a: the same model summarizes behind the agent's own, cached prefix.

    Parameters
    ----------
    sizes : Sizes
        Token counts; `cached_tokens` is what a warm cache holds of the context, X_hit.
    prices : Prices
        Prices at the context before.
    state : CacheState
        After a pause nothing is read. A miss, with probability q, sends X_hit uncached.
    markers : bool
        Whether cache markers are left on, so that what is uncached costs w instead of 1.

    Returns
    -------
    SummaryCall
        r·X_hit + (X − X_hit + I) + o·(S + R).

    Notes
    -----
    Reference: the model, §3, kind a.
    """
    context = sizes.context_tokens
    hit: float = 0
    if state.call_is_warm:
        hit = context if sizes.cached_tokens is None else sizes.cached_tokens
        if state.miss_probability:
            hit *= 1 - state.miss_probability
    sent = state.write_weight(prices) if markers else 1.0
    return SummaryCall(
        read=prices.cache_read * hit,
        uncached=sent * (context - hit + sizes.instruction_tokens),
        output=prices.output * sizes.summary_output_tokens,
        revives_prefix=markers,
    )


def separate_call(
    sizes: Sizes,
    prices: Prices,
    other: Prices,
    state: CacheState = WARM,
    *,
    sent_tokens: int | None = None,
    price_ratio: float | None = None,
    markers: bool = False,
) -> SummaryCall:
    """Return kind b: another model, or another prompt, so that no cached prefix is shared.

    Parameters
    ----------
    sizes : Sizes
        Token counts.
    prices : Prices
        Prices of the agent's model at the context before.
    other : Prices
        Prices of the summarizing model at the size of its request; `prices` for the same model.
    state : CacheState
        Only its ttl matters, and only with markers.
    sent_tokens : int, optional
        How much of the context is sent; X − P when left out.
    price_ratio : float, optional
        ρ, the ratio of input prices; from the dollars of both when left out.
    markers : bool
        Whether cache markers are left on, so that all that is sent costs w (u₂ = w): a write
        that nobody reads.

    Returns
    -------
    SummaryCall
        ρ·[u₂·(sent + I) + o₂·(S + R)].

    Raises
    ------
    InputError
        The ratio is not positive, or isn't given and the dollars of one model are unknown.

    Notes
    -----
    Reference: the model, §3, kind b.
    """
    ratio = _ratio(prices, other, price_ratio)
    sent = sizes.context_tokens - sizes.prefix_tokens if sent_tokens is None else sent_tokens
    weight = state.write_weight(other) if markers else 1.0
    return SummaryCall(
        uncached=ratio * weight * (max(sent, 0) + sizes.instruction_tokens),
        output=ratio * other.output * sizes.summary_output_tokens,
    )


def observed_call(
    prices: Prices,
    *,
    read_tokens: int = 0,
    uncached_tokens: int = 0,
    written_5m_tokens: int = 0,
    written_1h_tokens: int = 0,
    output_tokens: int = 0,
) -> SummaryCall:
    """Return kind d: a compaction on the server's side, as its own usage entries tell it.

    Parameters
    ----------
    prices : Prices
        Prices at the context before.
    read_tokens, uncached_tokens, written_5m_tokens, written_1h_tokens, output_tokens : int
        Sums over the usage entries of the compaction alone, the message after it left out.

    Returns
    -------
    SummaryCall
        Every class at its weight. Whether the prefix lives on is seen in the next request.

    Raises
    ------
    InputError
        A count is negative.

    Notes
    -----
    Reference: the model, §3, kind d.
    """
    counts = {
        "read_tokens": read_tokens,
        "uncached_tokens": uncached_tokens,
        "written_5m_tokens": written_5m_tokens,
        "written_1h_tokens": written_1h_tokens,
        "output_tokens": output_tokens,
    }
    for name, count in counts.items():
        if count < 0:
            remedy = "Give the tokens of the usage entries"
            raise InputError("must not be negative", where=name, value=count, remedy=remedy)
    written = prices.cache_write_5m * written_5m_tokens + prices.cache_write_1h * written_1h_tokens
    return SummaryCall(
        read=prices.cache_read * read_tokens,
        uncached=uncached_tokens + written,
        output=prices.output * output_tokens,
        revives_prefix=bool(written),
    )


def _ratio(prices: Prices, other: Prices, given: float | None) -> float:
    if given is not None:
        if not 0 < given < math.inf:
            remedy = "Give the ratio of the two models' input prices"
            raise InputError("must be positive", where="price_ratio", value=given, remedy=remedy)
        return given
    if other is prices:
        return 1.0
    own = prices.dollars_per_million.get("input")
    theirs = other.dollars_per_million.get("input")
    if not own or not theirs:
        raise InputError(
            "is unknown: a model's weights come without dollars",
            where="price_ratio",
            remedy="Give the ratio of the two models' input prices",
        )
    return theirs / own
