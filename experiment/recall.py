"""What the simulated model overlooks: an assumption, not a measurement.

A model finds less of what its context holds the longer the context is and the further back a thing
lies. Here, nothing is overlooked in a context of up to `CLEAR_TOKENS`, nor anything of the current
turn. Beyond, a thing that lies d of the context's T tokens back is found with probability
exp(−(T − CLEAR_TOKENS) / FADE_TOKENS · d / T). Whether it is found is drawn from the seed, the
thing itself and the section under way, never from a clock: what was overlooked once stays so while
that section is written.
"""

import math
from hashlib import blake2b

__all__ = ["CLEAR_TOKENS", "FADE_TOKENS", "chance_of_recall", "share_of"]

#: Up to this context nothing is overlooked.
CLEAR_TOKENS = 15_000
#: So many tokens more make what lies at the very beginning e times as rarely found.
FADE_TOKENS = 5_000


def chance_of_recall(context_tokens: int, tokens_back: int) -> float:
    """Return the probability that a thing in the context is found.

    Parameters
    ----------
    context_tokens : int
        T, of the whole request.
    tokens_back : int
        d, from the thing to the end of the request.

    Examples
    --------
    >>> chance_of_recall(15_000, 15_000)
    1.0
    >>> round(chance_of_recall(25_000, 12_500), 4)
    0.3679
    """
    excess = max(context_tokens - CLEAR_TOKENS, 0) / FADE_TOKENS
    return math.exp(-excess * tokens_back / context_tokens) if excess else 1.0


def share_of(*parts: object) -> float:
    """Return a number from 0 to below 1 that depends on the parts alone, evenly spread."""
    told = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(told, digest_size=8).digest(), "big") / 2**64
