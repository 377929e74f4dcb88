"""The question an agent asks before a request, and what makes it answerable."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from compactuary.errors import InputError
from policy.break_even import RULE
from policy.role_table import UNITS

__all__ = ["RULES", "Question", "missing_context", "missing_model", "validate"]

# The rules that `decide` can be asked to apply.
RULES = (RULE,)

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
    context_after_tokens : int, optional
        Context after a compaction, X′; assumed when left out (the answer says so).
    cost : float, optional
        C in base tokens; computed from prices when left out.
    saving : float, optional
        s in base tokens per remaining request; computed from prices when left out.
    weights : mapping of str to float, optional
        Weights to use instead of a price look-up, see `policy.prices.weights_from`.
    window_tokens : int, optional
        What the model can hold; from the price book when left out.
    turn_id, session_id : str, optional
        Names of the turn and its session, for the decision log only.
    rule : {'break-even'}
        Which rule decides.
    explain : bool
        Whether the answer carries every term of C, s and m.
    """

    role: str
    calls: int
    context_tokens: int | None = None
    model: str | None = None
    unit: str = "tool_calls"
    provider: str | None = None
    context_after_tokens: int | None = None
    cost: float | None = None
    saving: float | None = None
    weights: Mapping[str, float] | None = None
    window_tokens: int | None = None
    turn_id: str | None = None
    session_id: str | None = None
    rule: str = RULE
    explain: bool = False


def validate(question: Question) -> None:
    """Check a question's fields; weights are checked where they are read.

    Raises
    ------
    InputError
        Names the field, the value and the remedy.
    """
    if not isinstance(question.role, str) or not question.role:
        raise _wrong("role", question.role, "must be a name", "Give the agent's role, like main")
    if question.unit not in UNITS:
        raise _wrong("unit", question.unit, "is not known", f"Known units: {', '.join(UNITS)}")
    if question.rule not in RULES:
        raise _wrong("rule", question.rule, "is not known", f"Known rules: {', '.join(RULES)}")
    for name in ("model", "provider", "turn_id", "session_id"):
        value = getattr(question, name)
        if value is not None and (not isinstance(value, str) or not value):
            raise _wrong(name, value, "must be a name", "Leave it out where there is none")
    _check_count("calls", question.calls)
    for name in ("context_tokens", "context_after_tokens", "window_tokens"):
        value = getattr(question, name)
        if value is not None:
            _check_count(name, value)
    if question.window_tokens == 0:
        raise _wrong("window_tokens", 0, "must be positive", "Leave it out where it is unknown")
    for name in ("cost", "saving"):
        value = getattr(question, name)
        if value is not None:
            _check_amount(name, value)
    _check_priceable(question)


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise _wrong(name, value, "must be a whole number from 0 to 10^12", f"Give {name} as such")


def _check_amount(name: str, value: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= _LARGEST:
        raise _wrong(name, value, "must be a number from 0 to 10^12", "Give base tokens")
    if name == "saving" and not value:
        raise _wrong(
            name, value, "leaves nothing to decide", "Give a positive number, or leave it out"
        )


def _check_priceable(question: Question) -> None:
    if question.cost is not None and question.saving is not None:
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
