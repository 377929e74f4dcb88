"""Inputs: the numbers a decision depends on beside the life table, and where each is from."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from policy.parameters import Parameters
from policy.pauses import Pauses, pause_exceeds
from policy.question import Question
from policy.sizes import INSTRUCTION_TOKENS

__all__ = ["Inputs", "inputs_of"]


class Inputs(NamedTuple):
    """Given by the caller, else learned from the ledger, else assumed.

    Parameters
    ----------
    context_after_tokens, prefix_tokens, summary_output_tokens : int
        X′, p′ and S + R of the compaction in question.
    rework_tokens : int
        L; 0 until learned.
    growth_tokens : float
        g per request.
    miss_probability : float
        q; 0 until learned.
    resume_probability, requests_after_turn : float
        q_s and ν; 0 until learned.
    first_growth_tokens : float
        g₀, growth by a turn's first request; g until learned.
    instruction_tokens : int
        I.
    pauses : tuple of (float, float)
        ``(seconds, P(pause > seconds))`` of sessions that go on.
    origins : mapping of str to str
        Where each is from, by name: 'given', 'assumed', or the level that taught it.
    """

    context_after_tokens: int
    prefix_tokens: int
    summary_output_tokens: int
    rework_tokens: int
    growth_tokens: float
    miss_probability: float
    resume_probability: float
    requests_after_turn: float
    first_growth_tokens: float
    instruction_tokens: int
    pauses: Pauses
    origins: Mapping[str, str]

    def learned(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the names that the ledger taught, in their order."""
        origins = self.origins
        return tuple([name for name in names if origins[name] not in _NOT_LEARNED])

    def assumed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return those of the names that a default stands in for, in their order.

        What is 0 until learned is not among them, nor g₀, which is g until learned.
        """
        origins = self.origins
        off = _OFF_UNTIL_LEARNED
        return tuple([name for name in names if origins[name] == "assumed" and name not in off])

    def cold_probability(self, ttl_seconds: float, idle_seconds: float = 0.0) -> float:
        """Return p_c: that a session which goes on finds its cache expired.

        Parameters
        ----------
        ttl_seconds : float
            Time to live of the cached context.
        idle_seconds : float
            How long it has been idle already.
        """
        if idle_seconds >= ttl_seconds:
            return 1.0
        longer = pause_exceeds(self.pauses, ttl_seconds)
        so_far = pause_exceeds(self.pauses, idle_seconds)
        return longer / so_far if so_far else 1.0

    def resumed(self, idle_seconds: float = 0.0) -> float:
        """Return P(the session goes on | idle for so long), q_s at the end of a turn."""
        going_on = self.resume_probability * pause_exceeds(self.pauses, idle_seconds)
        over = 1.0 - self.resume_probability
        return going_on / (going_on + over) if going_on else 0.0


def inputs_of(question: Question, known: Parameters, strategy: str, otherwise: str) -> Inputs:
    """Return the inputs of one question.

    Parameters
    ----------
    question : Question
        What it gives goes before what was learned.
    known : Parameters
        Of the role asked about.
    strategy, otherwise : str
        Whose parameters count, and whose where nothing was learned of that strategy.
    """
    parameters = (*_OF_COMPACTION(known.compaction(strategy, otherwise)), *_OF_ROLE(known))
    asked = _ASKED(question)
    values: list[float] = []
    origins = {"instruction_tokens": "assumed"}
    for name, given, parameter in zip(_NAMES, asked, parameters, strict=True):
        if given is None:
            values.append(parameter.value)
            origins[name] = parameter.source
        else:
            values.append(given)
            origins[name] = "given"
    first = known.first_growth_tokens
    if question.growth_tokens is not None or first.source == "assumed":
        first_growth, origins["first_growth_tokens"] = values[4], "assumed"
    else:
        first_growth, origins["first_growth_tokens"] = first.value, first.source
    after, prefix, output, rework, growth, missed, resumed, later = values
    if question.context_after_tokens is None and question.prefix_tokens is not None:
        after = max(after, _least_after(question.kind, prefix, output))
    return Inputs(
        round(after),
        round(prefix),
        round(output),
        round(rework),
        growth,
        missed,
        resumed,
        later,
        first_growth,
        INSTRUCTION_TOKENS,
        known.pauses,
        origins,
    )


def _least_after(kind: str, prefix_tokens: float, output_tokens: float) -> float:
    """Return what a compaction leaves at least: the prefix a caller tells of, and the summary.

    Where a role's compactions left less, or less is assumed, that was said of a smaller prefix.
    """
    return prefix_tokens + (0.0 if kind == "clear" else output_tokens)


# What a caller may give; where it does not, the ledger's parameter stands in.
_NAMES = (
    "context_after_tokens",
    "prefix_tokens",
    "summary_output_tokens",
    "rework_tokens",
    "growth_tokens",
    "miss_probability",
    "resume_probability",
    "requests_after_turn",
)
_ASKED = attrgetter(*_NAMES)
_OF_ROLE = attrgetter(*_NAMES[4:])
# What survives a compaction in the cache is what the next request reads of it.
_OF_COMPACTION = attrgetter(
    "context_after_tokens", "cached_after_tokens", "summary_output_tokens", "rework_tokens"
)
_OFF_UNTIL_LEARNED = frozenset(
    (
        "rework_tokens",
        "miss_probability",
        "resume_probability",
        "requests_after_turn",
        "first_growth_tokens",
    )
)
_NOT_LEARNED = frozenset(("given", "assumed"))
