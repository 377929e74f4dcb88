"""Parameters: what the ledger teaches about a role's costs, and what stands in until it does."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from compactuary.errors import InputError
from policy.pauses import Pauses, pause_exceeds
from policy.sizes import (
    CONTEXT_AFTER_TOKENS,
    GROWTH_TOKENS,
    PREFIX_TOKENS,
    SUMMARY_OUTPUT_TOKENS,
)

__all__ = [
    "ASSUMED",
    "DEFAULT_STRATEGY",
    "CompactionParameters",
    "Parameter",
    "ParameterSource",
    "Parameters",
]

#: Which turns or compactions a number rests on most closely.
ParameterSource = Literal["model", "role", "all_roles", "assumed"]
_CLOSEST: tuple[ParameterSource, ...] = ("model", "role", "all_roles", "assumed")

#: Times to live of caches for which the probability of finding them cold is told.
_CACHE_SECONDS = (300, 3600)

#: A summary by the same model on the shared prefix, what agents' own compaction does.
DEFAULT_STRATEGY = "summary"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One number that a compaction's cost or worth depends on, and what it rests on.

    Parameters
    ----------
    value : float
        What decisions use: the observations blended with what the next wider level says.
    source : {'model', 'role', 'all_roles', 'assumed'}
        The closest level that has observations.
    observations : int
        How many that level has.
    credibility : float
        Their weight, 0 to 1; the rest is borrowed from wider levels, at last the assumed value.
    median, lower_quartile, upper_quartile : float or None
        Of those observations; None without any, and for a share. Of all roles: of their values.
    """

    value: float
    source: ParameterSource = "assumed"
    observations: int = 0
    credibility: float = 0.0
    median: float | None = None
    lower_quartile: float | None = None
    upper_quartile: float | None = None


@dataclass(frozen=True, slots=True)
class CompactionParameters:
    """What compactions of one strategy leave behind.

    Parameters
    ----------
    strategy : str
        As the ledger names it, such as 'summary'.
    context_after_tokens : Parameter
        X′, the context of the first request after one.
    cached_after_tokens : Parameter
        p′, how much of it that request read from the cache.
    summary_output_tokens : Parameter
        S + R, what the summary call writes.
    rework_tokens : Parameter
        L, growth of the next ten requests beyond the usual, at least 0.
    observed_call : mapping of str to float, optional
        Median tokens by class of the compaction's own usage, where the ledger holds it, named as
        :func:`policy.summary_call.observed_call` takes them; its output is S + R.
    """

    strategy: str = DEFAULT_STRATEGY
    context_after_tokens: Parameter = Parameter(CONTEXT_AFTER_TOKENS)
    cached_after_tokens: Parameter = Parameter(PREFIX_TOKENS)
    summary_output_tokens: Parameter = Parameter(SUMMARY_OUTPUT_TOKENS)
    rework_tokens: Parameter = Parameter(0.0)
    observed_call: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is known of a role's requests, turns, pauses and compactions.

    Parameters
    ----------
    role, model : str
        Whose; empty for all roles, or all of a role's models.
    prefix_tokens : Parameter
        P, the part of a session's first context that survives a compaction: system prompt, tools
        and memory. Known before the first compaction, it is what p′ and X′ are guessed from.
    growth_tokens, first_growth_tokens : Parameter
        g, growth of the context per request, and g₀, that of a turn's first request.
    miss_probability : Parameter
        q, the probability that a request misses a cache that should hold its prefix.
    resume_probability : Parameter
        q_s, the share of turns after which the session goes on within a day.
    gap_seconds : Parameter
        Time before the next turn, where there is one.
    requests_after_turn : Parameter
        ν, further requests of the session once a turn is over.
    pauses : tuple of (float, float)
        ``(seconds, P(pause > seconds))`` of sessions that go on, rising in seconds.
    compactions : mapping of str to CompactionParameters
        By strategy.
    """

    role: str = ""
    model: str = ""
    prefix_tokens: Parameter = Parameter(PREFIX_TOKENS)
    growth_tokens: Parameter = Parameter(GROWTH_TOKENS)
    first_growth_tokens: Parameter = Parameter(GROWTH_TOKENS)
    miss_probability: Parameter = Parameter(0.0)
    resume_probability: Parameter = Parameter(0.0)
    gap_seconds: Parameter = Parameter(0.0)
    requests_after_turn: Parameter = Parameter(0.0)
    pauses: Pauses = ()
    compactions: Mapping[str, CompactionParameters] = field(
        default_factory=lambda: {DEFAULT_STRATEGY: CompactionParameters()}
    )

    def compaction(
        self, strategy: str = DEFAULT_STRATEGY, otherwise: str = DEFAULT_STRATEGY
    ) -> CompactionParameters:
        """Return what is known of a strategy.

        Parameters
        ----------
        strategy : str
        otherwise : str
            Whose parameters stand in for a strategy never seen: that of its kind. Where that was
            not seen either, a summary stands in, but not for clearing: that reads nothing in again
            until it is seen to, and keeps the prefix.
        """
        found = self.compactions.get(strategy) or self.compactions.get(otherwise)
        if found is not None:
            return found
        if otherwise == "clear":
            return CompactionParameters(otherwise, cached_after_tokens=self.prefix_tokens)
        return self.compactions[DEFAULT_STRATEGY]

    def pause_exceeds(self, seconds: float) -> float | None:
        """Return P(pause > seconds) of sessions that go on, or None while none was seen."""
        return pause_exceeds(self.pauses, seconds) if self.pauses else None

    @property
    def source(self) -> ParameterSource:
        """The closest level that any of it rests on."""
        numbers = [getattr(self, name) for name in _SINGLE]
        for compaction in self.compactions.values():
            numbers += [getattr(compaction, name) for name in _OF_COMPACTION]
        return min((number.source for number in numbers), key=_CLOSEST.index)

    def described(self, role: str, model: str | None = None) -> dict[str, Any]:
        """Return plain JSON values for people: who asked, each number with what it rests on.

        Parameters
        ----------
        role, model : str
            Who asked: the parameters may be those of all roles.
        """
        told: dict[str, Any] = {"role": role, "model": model or None, "source": self.source}
        told |= {name: asdict(getattr(self, name)) for name in _SINGLE}
        told["pauses"] = [
            {"seconds": seconds, "probability": share} for seconds, share in self.pauses
        ]
        told["cold_probability"] = {
            str(seconds): self.pause_exceeds(seconds) for seconds in _CACHE_SECONDS
        }
        told["compactions"] = [asdict(compaction) for compaction in self.compactions.values()]
        return told

    def to_payload(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "Parameters":
        """Return what `to_payload` wrote.

        Raises
        ------
        InputError
            A key is missing, or a value is of another kind.
        """
        try:
            given = {name: payload[name] for name in _FIELDS}
            for name in _SINGLE:
                given[name] = Parameter(**given[name])
            given["pauses"] = tuple((float(upto), float(share)) for upto, share in given["pauses"])
            given["compactions"] = {
                name: _compaction(stored) for name, stored in given["compactions"].items()
            }
            return cls(**given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"are not stored parameters: {type(error).__name__} {error}"
            remedy = "Build the snapshot again from the ledger"
            raise InputError(problem, where="snapshot", remedy=remedy) from error


def _compaction(stored: Mapping[str, Any]) -> CompactionParameters:
    given = dict(stored)
    for name in _OF_COMPACTION:
        given[name] = Parameter(**given[name])
    return CompactionParameters(**given)


_FIELDS = tuple(field.name for field in fields(Parameters))
_SINGLE = tuple(name for name in _FIELDS if name not in ("role", "model", "pauses", "compactions"))
_OF_COMPACTION = tuple(
    field.name
    for field in fields(CompactionParameters)
    if field.name not in ("strategy", "observed_call")
)

#: What stands in before anything is learned.
ASSUMED = Parameters()
