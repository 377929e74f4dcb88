"""The setting: everything a rule needs to know besides the life table."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from compactuary.errors import InputError
from policy.pauses import Pauses, pause_exceeds

__all__ = ["CallKind", "Setting"]

#: What makes the new context: the same model behind the cached prefix, no call at all, or
#: anything whose cost is linear in the context before.
CallKind = Literal["shared_prefix", "no_call", "linear"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Prices, sizes and habits that a rule is compiled for, in base tokens of the agent's model.

    Parameters
    ----------
    read_weight, write_weight, output_weight : float
        r, w and o.
    context_after_tokens, cached_after_tokens : float
        X′, and p′, how much of it the next request finds in the cache (at most X′).
    summary_output_tokens : float
        S + R, what the summary call writes.
    instruction_tokens : float
        I, what it is asked with.
    growth_tokens, first_growth_tokens : float
        g, growth of the context per request, and g₀, that of a turn's first request.
    window_tokens : float or None
        Usable limit of the context: a compaction is forced where context, growth and S + R would
        not fit. None is no limit.
    miss_probability : float
        q, that a request misses a cache that should hold its prefix.
    resume_probability : float
        q_s, that the session goes on after a turn. 0 is a session of one turn.
    cold_probability : float
        p_c, that a session which goes on finds the cache expired.
    requests_after_turn : float
        ν, requests expected after this turn.
    rework_tokens : float
        L, what the agent reads in again with its next request; the context after is X′ + L.
    quality_cost : float
        Q, a charge per compaction.
    pauses : tuple of (float, float)
        ``(idle_seconds, P(pause > idle_seconds))`` of sessions that go on, rising in seconds.
        Empty where unknown: whoever asks just before the expiry needs p_c alone.
    ttl_seconds : float or None
        How long the cache lives without a request; None where nothing is promised.
    call : {'shared_prefix', 'no_call', 'linear'}
        What makes the new context.
    call_slope, call_intercept : float
        C_sum(b) = slope·b + intercept, of call 'linear' only, such as a summary by another model.
        The intercept is negative where less than the context is sent.

    Raises
    ------
    InputError
        A number is NaN, infinite, negative, or a probability above 1; pauses are out of order.

    Notes
    -----
    Weights hold for every context size: a price cliff inside the window is not seen here.
    Reference: the model, §§3 and 4.
    """

    read_weight: float
    write_weight: float
    output_weight: float
    context_after_tokens: float
    cached_after_tokens: float
    summary_output_tokens: float
    instruction_tokens: float
    growth_tokens: float
    first_growth_tokens: float
    window_tokens: float | None = None
    miss_probability: float = 0.0
    resume_probability: float = 0.0
    cold_probability: float = 0.0
    requests_after_turn: float = 0.0
    rework_tokens: float = 0.0
    quality_cost: float = 0.0
    pauses: Pauses = ()
    ttl_seconds: float | None = None
    call: CallKind = "shared_prefix"
    call_slope: float = 0.0
    call_intercept: float = 0.0

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            _check_number(name, getattr(self, name))
        _check_number("call_intercept", self.call_intercept, least=-math.inf)
        for name in _OPTIONAL:
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name))
        for name in _PROBABILITIES:
            if getattr(self, name) > 1:
                raise _wrong(name, getattr(self, name), "Give a number from 0 to 1")
        if self.call not in get_args(CallKind):
            raise _wrong("call", self.call, f"Known: {', '.join(get_args(CallKind))}")
        _check_pauses(self.pauses)

    def with_linear_call(self, slope: float, intercept: float) -> "Setting":
        """Return the same with C_sum(b) = slope·b + intercept on a warm and on a cold cache."""
        return replace(self, call="linear", call_slope=slope, call_intercept=intercept)

    def without_call(self) -> "Setting":
        """Return the same where content is only cleared: C_sum = 0."""
        return replace(self, call="no_call")

    @property
    def mean_read_weight(self) -> float:
        """r̄ = (1 − q)·r + q·w, of a token that the cache should hold."""
        missed = self.miss_probability
        return (1.0 - missed) * self.read_weight + missed * self.write_weight

    @property
    def after_tokens(self) -> float:
        """X′ + L, the context that goes on growing after a compaction."""
        return self.context_after_tokens + self.rework_tokens

    @property
    def recached_tokens(self) -> float:
        """X′ + L − p′, what the first request after a warm compaction writes."""
        return self.after_tokens - min(self.cached_after_tokens, self.context_after_tokens)

    @property
    def recache_cost(self) -> float:
        """(w − r̄)(X′ + L − p′), the surcharge on that request."""
        return (self.write_weight - self.mean_read_weight) * self.recached_tokens

    @property
    def summary_slope(self) -> float:
        """What C_sum grows by per token of context on a warm cache."""
        if self.call == "shared_prefix":
            # A miss sends the context at the weight of plain input.
            return (1.0 - self.miss_probability) * self.read_weight + self.miss_probability
        return self.call_slope if self.call == "linear" else 0.0

    @property
    def cold_summary_slope(self) -> float:
        """What C_sum grows by per token of context on a cold cache."""
        return 1.0 if self.call == "shared_prefix" else self.summary_slope

    @property
    def summary_intercept(self) -> float:
        """What of C_sum does not grow with the context, and Q."""
        if self.call == "shared_prefix":
            written = self.output_weight * self.summary_output_tokens
            return self.instruction_tokens + written + self.quality_cost
        return (self.call_intercept if self.call == "linear" else 0.0) + self.quality_cost

    def summary_cost(self, context_tokens: float) -> float:
        """Return C_sum + Q at a context, on a warm cache."""
        return self.summary_slope * context_tokens + self.summary_intercept

    def cost(self, context_tokens: float) -> float:
        """Return C = C_sum + Q + (w − r̄)(X′ + L − p′) at a context, on a warm cache."""
        return self.summary_cost(context_tokens) + self.recache_cost

    def saving(self, context_tokens: float) -> float:
        """Return s = r̄·(context − X′ − L) per remaining request."""
        return self.mean_read_weight * (context_tokens - self.after_tokens)

    def limit_tokens(self, growth_tokens: float | None = None) -> float:
        """Return the largest context that need not be compacted, infinite without a window.

        Parameters
        ----------
        growth_tokens : float, optional
            Growth by the next request; g when left out.
        """
        if self.window_tokens is None:
            return math.inf
        growth = self.growth_tokens if growth_tokens is None else growth_tokens
        return self.window_tokens - growth - self.summary_output_tokens

    def pause_exceeds(self, idle_seconds: float) -> float | None:
        """Return P(pause > idle_seconds) of sessions that go on, None where nothing is known."""
        return pause_exceeds(self.pauses, idle_seconds) if self.pauses else None

    def to_payload(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "Setting":
        """Return what `to_payload` wrote.

        Raises
        ------
        InputError
            A key is missing, unknown, or holds an impossible value.
        """
        try:
            given = dict(payload)
            pauses = given.pop("pauses")
            return cls(pauses=tuple((float(upto), float(left)) for upto, left in pauses), **given)
        except (KeyError, TypeError, ValueError) as error:
            problem = f"is not a stored setting: {type(error).__name__} {error}"
            remedy = "Compile the thresholds again"
            raise InputError(problem, where="setting", remedy=remedy) from error


_OPTIONAL = ("window_tokens", "ttl_seconds")
_NUMBERS = tuple(
    field.name
    for field in fields(Setting)
    if field.name not in (*_OPTIONAL, "pauses", "call", "call_intercept")
)
_PROBABILITIES = ("miss_probability", "resume_probability", "cold_probability")


def _check_number(name: str, value: object, least: float = 0.0) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "Give a number")
    if not math.isfinite(value) or value < least:
        raise _wrong(name, value, "Give a finite number that is not negative")


def _check_pauses(pauses: Pauses) -> None:
    so_far, left = 0.0, 1.0
    for seconds, share in pauses:
        if not (so_far <= seconds < math.inf and 0 <= share <= left):
            remedy = "Give seconds that rise and shares that fall from at most 1"
            raise _wrong("pauses", (seconds, share), remedy)
        so_far, left = seconds, share


def _wrong(name: str, value: object, remedy: str) -> InputError:
    return InputError("is out of range", where=f"setting.{name}", value=value, remedy=remedy)
