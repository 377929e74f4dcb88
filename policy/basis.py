"""The basis: what an answer rests on, and what was learned or assumed for it."""

from policy.answer import Basis, Share
from policy.estimate import Estimate
from policy.question import Question
from policy.quote import Quote

__all__ = ["basis_of"]


def basis_of(
    question: Question, quoted: Quote, estimate: Estimate | None, used: tuple[str, ...]
) -> Basis:
    """Return the basis of an answer.

    Parameters
    ----------
    question, quoted, estimate
        What was asked, what compacting costs, and what remains.
    used : tuple of str
        Names of inputs that the rule needed beside those of cost and saving.
    """
    learned, assumed = _origins(question, quoted, used)
    if estimate is None:
        nothing = (0, 0, 0, 1.0, False, 0.0, 0.0, None, ())
        return Basis(question.role, "none", question.unit, *nothing, learned, assumed)
    table, remaining = estimate.found.table, estimate.remaining
    if table.requests_per_call is None:
        assumed += ("requests_per_call",)
    return Basis(
        question.role,
        table.source,
        question.unit,
        table.turns,
        remaining.at_risk,
        remaining.ends,
        estimate.requests_per_call,
        remaining.extrapolated,
        remaining.credibility,
        remaining.effective_ends,
        table.half_life_turns,
        _shares(question, estimate),
        learned,
        assumed,
    )


def _origins(
    question: Question, quoted: Quote, used: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the inputs that were learned, and those assumed, of all that played a part."""
    inputs = quoted.inputs
    names = list(quoted.used)
    lacking: tuple[str, ...] = ()
    if quoted.window_tokens is None:
        lacking = ("window_tokens",)
    elif question.context_tokens is None:
        lacking = ("context_tokens",)
    else:
        names += ["growth_tokens", "summary_output_tokens"]
    unique = dict.fromkeys((*names, *used))
    return inputs.learned(unique), inputs.assumed(unique) + quoted.assumed_weights + lacking


def _shares(question: Question, estimate: Estimate) -> tuple[Share, ...]:
    """Return what the estimate rests on: its own turns, and what each table borrows in turn."""
    table, age, left = estimate.found.table, question.calls, estimate.remaining.credibility
    shares = [Share(table.role, table.turns, left)]
    rest = 1.0 - left
    for parent in estimate.found.borrows:
        z = parent.credibility_at(age)
        shares.append(Share(parent.role, parent.turns, rest * z))
        rest *= 1.0 - z
    standard = estimate.found.standard
    if standard is not None and rest:
        shares.append(Share(standard.name, standard.turns, rest))
    return tuple(share for share in shares if share.weight)
