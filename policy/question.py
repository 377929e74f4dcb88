"""The question an agent asks before a request, and what makes it answerable."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from compactuary.errors import InputError
from policy.break_even import RULE
from policy.role_table import UNITS

__all__ = [
    "KINDS",
    "MOMENTS",
    "RULES",
    "Question",
    "missing_context",
    "missing_model",
    "validate",
]

#: When a question may be asked, and what kinds of compaction it may be about.
MOMENTS = ("call", "turn_end", "idle", "resume")
KINDS = ("summary", "separate", "clear", "server_side")

#: The rules a question can ask for: all that need nothing to be trained first.
RULES = (
    "occupancy",
    RULE,
    "reorder",
    "renewal",
    "idle",
    "eoq",
    "fixed-remaining",
    "lindy",
    "median-remaining",
    "never",
)

# Beyond this no count of tokens or calls is meant seriously, and floats begin to lose units.
_LARGEST = 10**12


@dataclass(frozen=True, slots=True)
class Question:
    """Whether a turn shall compact its context now.

    Parameters
    ----------
    role : str
        The agent's role, as the ledger knows it.
    calls : int
        Tool calls made so far in this turn; requests made so far where `unit` is 'requests'.
    context_tokens : int, optional
        Context before the next request, X. May be left out if cost and saving are given; the
        hard limit can't act then.
    model : str, optional
        Whose prices to use; needed unless weights, or cost and saving, are given.
    unit : {'tool_calls', 'requests'}
        What `calls` counts.
    provider : str, optional
        Who bills for the model; found by the model's name when left out.
    at : {'call', 'turn_end', 'idle', 'resume'}
        When it is asked: before a request of a running turn; when the turn is over; while the
        agent waits for its user, just before the cache expires; or before the first request of a
        turn that follows a pause.
    idle_seconds : float, optional
        How long the session has been idle; needed for 'idle'. At 'resume', left out means longer
        than the cache lives.
    kind : {'summary', 'separate', 'clear', 'server_side'}
        What would make the new context: the same model behind the cached prefix; another model or
        prompt; no call; or the provider, at what the ledger has seen it cost.
    strategy : str, optional
        Whose sizes count, as the ledger names strategies; 'clear' for that kind, 'server_side'
        for that, 'summary' otherwise. The same stand in for a strategy that the ledger never saw.
    summary_model : str, optional
        Who summarizes where that is another model; needed for 'separate' and quoted beside.
    context_after_tokens, prefix_tokens, summary_output_tokens : int, optional
        X′, what of it stays cached p′, and S + R; learned from the ledger when left out, assumed
        until then (the answer says so).
    growth_tokens : float, optional
        g, growth of the context per request; as above.
    rework_tokens : int, optional
        L, what the agent reads in again; as above, 0 until learned.
    quality_cost : float
        Q, a charge per compaction in base tokens.
    miss_probability, resume_probability, requests_after_turn : float, optional
        q, q_s and ν; as above, 0 until learned.
    ttl : {'5m', '1h', '12h'}
        For how long the agent has its context cached.
    useless_compactions : int
        How many compactions in a row shrank this context by less than 5%.
    cost : float, optional
        C in base tokens; computed from prices when left out.
    saving : float, optional
        s in base tokens per remaining request; computed from prices when left out.
    weights : mapping of str to float, optional
        Weights to use instead of a price look-up, see `policy.prices.weights_from`.
    window_tokens : int, optional
        What the model can hold; from the price book when left out.
    turn_id, session_id : str, optional
        Names of the turn and its session, by which the decision is joined to what happened.
    rule : str, optional
        Which rule decides, one of `RULES`. Left out, it is 'renewal' where its inputs are
        learned, 'reorder' where they are not, 'break-even' where no context is known.
    quotes : bool
        Whether the answer carries what every kind of compaction would cost.
    explain : bool
        Whether the answer carries every term of C, s and m.
    """

    role: str
    calls: int
    context_tokens: int | None = None
    model: str | None = None
    unit: str = "tool_calls"
    provider: str | None = None
    at: str = "call"
    idle_seconds: float | None = None
    kind: str = "summary"
    strategy: str | None = None
    summary_model: str | None = None
    context_after_tokens: int | None = None
    prefix_tokens: int | None = None
    summary_output_tokens: int | None = None
    growth_tokens: float | None = None
    rework_tokens: int | None = None
    quality_cost: float = 0.0
    miss_probability: float | None = None
    resume_probability: float | None = None
    requests_after_turn: float | None = None
    ttl: str = "5m"
    useless_compactions: int = 0
    cost: float | None = None
    saving: float | None = None
    weights: Mapping[str, float] | None = None
    window_tokens: int | None = None
    turn_id: str | None = None
    session_id: str | None = None
    rule: str | None = None
    quotes: bool = False
    explain: bool = False


def validate(question: Question) -> None:
    """Check a question's fields; weights are checked where they are read.

    Raises
    ------
    InputError
        Names the field, the value and the remedy.
    """
    _check_words(question)
    _check_count("calls", question.calls)
    for name in _COUNTS:
        value = getattr(question, name)
        if value is not None:
            _check_count(name, value)
    if question.window_tokens == 0:
        raise _wrong("window_tokens", 0, "must be positive", "Leave it out where it is unknown")
    for name in _AMOUNTS:
        value = getattr(question, name)
        if value is not None:
            _check_amount(name, value)
    for name in ("miss_probability", "resume_probability"):
        value = getattr(question, name)
        if value is not None and not 0 <= value <= 1:
            raise _wrong(name, value, "must lie between 0 and 1", "Leave it out if it is unknown")
    _check_answerable(question)


def _check_words(question: Question) -> None:
    """Check the role, the words of which only a few are known, and the names."""
    if not isinstance(question.role, str) or not question.role:
        raise _wrong("role", question.role, "must be a name", "Give the agent's role, like main")
    for name, known in _CHOICES:
        value = getattr(question, name)
        if value not in known and not (name == "rule" and value is None):
            raise _wrong(name, value, "is not known", f"Known: {', '.join(known)}")
    for name in _NAMES:
        value = getattr(question, name)
        if value is not None and (not isinstance(value, str) or not value):
            raise _wrong(name, value, "must be a name", "Leave it out where there is none")


_CHOICES = (
    ("unit", UNITS),
    ("rule", RULES),
    ("at", MOMENTS),
    ("kind", KINDS),
    ("ttl", ("5m", "1h", "12h")),
)
_NAMES = ("model", "provider", "turn_id", "session_id", "strategy", "summary_model")
_COUNTS = (
    "context_tokens",
    "context_after_tokens",
    "prefix_tokens",
    "summary_output_tokens",
    "rework_tokens",
    "window_tokens",
    "useless_compactions",
)
# What each amount is counted in.
_AMOUNTS = {
    "cost": "base tokens",
    "saving": "base tokens per request",
    "idle_seconds": "seconds",
    "growth_tokens": "tokens per request",
    "quality_cost": "base tokens",
    "requests_after_turn": "a mean number of requests",
}


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise _wrong(name, value, "must be a whole number from 0 to 10^12", f"Give {name} as such")


def _check_amount(name: str, value: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= _LARGEST:
        raise _wrong(name, value, "must be a number from 0 to 10^12", f"Give {_AMOUNTS[name]}")
    if name == "saving" and not value:
        raise _wrong(
            name, value, "leaves nothing to decide", "Give a positive number, or leave it out"
        )


def _check_answerable(question: Question) -> None:
    if question.at == "idle" and question.idle_seconds is None:
        raise InputError(
            "is missing", where="idle_seconds", remedy="Give how long the session has been idle"
        )
    if question.kind == "separate" and question.summary_model is None:
        raise InputError(
            "is missing", where="summary_model", remedy="Give the model that summarizes"
        )
    if question.cost is not None and question.saving is not None:
        if question.context_tokens is None and question.rule not in (None, RULE):
            raise missing_context()
        return
    if question.model is None and question.weights is None:
        raise missing_model()
    if question.context_tokens is None:
        raise missing_context()


def missing_model() -> InputError:
    """Return the error of a question that nothing can be priced from."""
    remedy = "Give model, or weights, or cost with saving"
    return InputError("is missing", where="model", remedy=remedy)


def missing_context() -> InputError:
    """Return the error of a question whose cost or saving depends on an unknown context."""
    return InputError(
        "is missing, and cost or saving depends on it",
        where="context_tokens",
        remedy="Give context_tokens, or both cost and saving",
    )


def _wrong(name: str, value: object, problem: str, remedy: str) -> InputError:
    return InputError(problem, where=name, value=value, remedy=remedy)
