"""The state of the prompt cache around a compaction, and what a token then weighs."""

from dataclasses import dataclass
from typing import Literal

from compactuary.errors import InputError
from policy.prices import Prices

__all__ = ["AFTER_PAUSE", "BEFORE_PAUSE", "WARM", "CacheState", "Moment", "Ttl"]

Moment = Literal["warm", "before_pause", "after_pause"]
Ttl = Literal["5m", "1h", "12h"]


@dataclass(frozen=True, slots=True)
class CacheState:
    """When a compaction happens, relative to the life of the cached context.

    Parameters
    ----------
    moment : {'warm', 'before_pause', 'after_pause'}
        Whether the next request follows within the cache's time to live, or only after a pause
        that outlasts it; and in that case on which side of the pause the compaction is made.
    ttl : {'5m', '1h', '12h'}
        Whose write weight w is paid for what the next requests write.
    miss_probability : float
        Probability q that a request misses a cache that should hold its prefix, each request for
        itself; 0 is a cache that keeps its promise.

    Raises
    ------
    InputError
        The probability is outside [0, 1], or moment or ttl is not known.

    Notes
    -----
    Reference: the model, §3.
    """

    moment: Moment = "warm"
    ttl: Ttl = "5m"
    miss_probability: float = 0.0

    def __post_init__(self) -> None:
        if self.moment not in _MOMENTS:
            raise _wrong("moment", self.moment, f"Known: {', '.join(_MOMENTS)}")
        if self.ttl not in _TTLS:
            raise _wrong("ttl", self.ttl, f"Known: {', '.join(_TTLS)}")
        if not 0 <= self.miss_probability <= 1:
            raise _wrong("miss_probability", self.miss_probability, "Give a number from 0 to 1")

    @property
    def call_is_warm(self) -> bool:
        """Whether a summary call made now finds the context in the cache."""
        return self.moment != "after_pause"

    @property
    def next_is_warm(self) -> bool:
        """Whether the next request comes before the cache expires."""
        return self.moment == "warm"

    def write_weight(self, prices: Prices) -> float:
        """Return w, the weight of a token written for this time to live.

        Raises
        ------
        InputError
            No price is known for writes that live 12 hours.
        """
        if self.ttl == "5m":
            return prices.cache_write_5m
        if self.ttl == "1h":
            return prices.cache_write_1h
        if prices.cache_write_12h is None:
            raise InputError(
                "has no known price on this model",
                where="ttl",
                value=self.ttl,
                remedy="Use '5m' or '1h', or add cache_write_12h to the price file",
            )
        return prices.cache_write_12h

    def read_weight(self, prices: Prices) -> float:
        """Return r̄ = (1 − q)·r + q·w, what a token weighs that the cache should hold."""
        if not self.miss_probability:
            return prices.cache_read
        missed = self.miss_probability
        return (1 - missed) * prices.cache_read + missed * self.write_weight(prices)


_MOMENTS = ("warm", "before_pause", "after_pause")
_TTLS = ("5m", "1h", "12h")

WARM = CacheState()
BEFORE_PAUSE = CacheState("before_pause")
AFTER_PAUSE = CacheState("after_pause")


def _wrong(name: str, value: object, remedy: str) -> InputError:
    return InputError("is out of range", where=name, value=value, remedy=remedy)
