"""A scenario: the prices of a replay, and what a compaction leaves behind in each unit."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backtest.sequences import Sequences
from compactuary.errors import InputError

__all__ = ["LIMIT_TOKENS", "PREFIX_TOKENS", "Aftermath", "Scenario", "fixed_aftermath"]

#: Where the agents of the logs compact on their own, and what no replayed context may pass.
LIMIT_TOKENS = 167_000
#: The most of a first context that counts as the kept prefix P: system prompt and tools.
PREFIX_TOKENS = 18_000


@dataclass(frozen=True, slots=True)
class Scenario:
    """Weights relative to base input, the life of the cache, and the trigger to compare with.

    Parameters
    ----------
    read_weight : float
        r.
    ttl_seconds : float, default 300
        A request that comes later after the one before finds no cache; each one renews it.
    quality_cost : float, default 0
        Q, base tokens charged per compaction.
    write_weight : float, default 1.25
        w, whatever the time to live.
    output_weight : float, default 5
        o.
    summary_output_tokens : float, default 6,000
        S + R.
    instruction_tokens : float, default 0
        I.
    limit_tokens : float, default 167,000
        A request on a context this large is preceded by a compaction, whatever the rule says.
    window_tokens : float, default 200,000
        What the model can hold, of which some rules take a share.

    Raises
    ------
    InputError
        A number is negative or not finite.
    """

    read_weight: float
    ttl_seconds: float = 300.0
    quality_cost: float = 0.0
    write_weight: float = 1.25
    output_weight: float = 5.0
    summary_output_tokens: float = 6_000.0
    instruction_tokens: float = 0.0
    limit_tokens: float = LIMIT_TOKENS
    window_tokens: float = 200_000.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise InputError(
                    "is negative or not finite",
                    where=f"scenario.{name}",
                    value=value,
                    remedy="Give a number from 0 on",
                )

    @property
    def call_cost(self) -> float:
        """What of a compaction's own call does not depend on the context: I + o(S + R), and Q."""
        written = self.output_weight * self.summary_output_tokens
        return self.instruction_tokens + written + self.quality_cost


@dataclass(frozen=True, slots=True, eq=False)
class Aftermath:
    """What a compaction leaves behind, unit by unit.

    Parameters
    ----------
    prefix_tokens : ndarray of float, shape (units,)
        P, which the next request finds in the cache while that is warm.
    after_tokens : ndarray of float, shape (units,)
        X′, from P up.
    rework_tokens : ndarray of float, shape (units,)
        L, which the next request adds to its usual growth.
    """

    prefix_tokens: NDArray[np.float64]
    after_tokens: NDArray[np.float64]
    rework_tokens: NDArray[np.float64]

    def chosen(self, units: NDArray[np.bool_]) -> "Aftermath":
        """Return that of some of the units."""
        return Aftermath(
            self.prefix_tokens[units], self.after_tokens[units], self.rework_tokens[units]
        )


def fixed_aftermath(
    sequences: Sequences,
    tail_tokens: float = 16_000.0,
    rework_tokens: float = 0.0,
    *,
    tail_of_session: Mapping[str, float] | None = None,
) -> Aftermath:
    """Return P = the first context up to 18k, and X′ = P + the same tail everywhere.

    Parameters
    ----------
    sequences : Sequences
        Whose first contexts tell P.
    tail_tokens : float, default 16,000
        X′ − P: summary and verbatim tail.
    rework_tokens : float, default 0
        L.
    tail_of_session : mapping of str to float, optional
        X′ − P of sessions that compacted; the others have `tail_tokens`.
    """
    prefix = np.minimum(sequences.first_context_tokens, float(PREFIX_TOKENS))
    own = tail_of_session or {}
    tails = np.array([own.get(session, tail_tokens) for session in sequences.session])
    return Aftermath(prefix, prefix + tails, np.full(sequences.units, float(rework_tokens)))
