"""The verdict: guards, then the rule, with the reason in one sentence."""

from typing import NamedTuple

from policy.answer import Decision, Reason
from policy.break_even import pays
from policy.estimate import Estimate
from policy.guards import hard_limit, no_saving, useless
from policy.question import Question
from policy.quote import Quote
from policy.ruling import Ruling

__all__ = ["Verdict", "verdict_of"]


class Verdict(NamedTuple):
    """What to do, why, and whether compacting now would pay at all."""

    decision: Decision
    reason: Reason
    pays: bool | None


def verdict_of(
    question: Question,
    quoted: Quote,
    break_even: float | None,
    estimate: Estimate | None,
    ruling: Ruling,
) -> Verdict:
    """Return the verdict on one question.

    Parameters
    ----------
    break_even : float or None
        C/s in requests; None where nothing is saved.
    estimate : Estimate or None
        None without any life table.
    ruling : Ruling
        The rule that decides where no guard does.

    Notes
    -----
    Reference: the model, §§4 and 5.
    """
    paying = None
    if estimate is not None:
        paying = break_even is not None and pays(estimate.requests, break_even)
    guarded = _guarded(question, quoted, break_even)
    if guarded is not None:
        return Verdict(*guarded, paying)
    if estimate is None or break_even is None:
        text = "No life tables have been made yet; nothing can be said about what remains."
        return Verdict("wait", Reason("empty_ledger", text), paying)
    compact = ruling.reached(question.context_tokens) if ruling.by_context else bool(paying)
    text = _comparison_text(question, estimate, break_even)
    if compact == paying:
        code = "pays" if compact else "does_not_pay"
    else:
        code = "threshold" if compact else "worth_waiting"
        text += f" {_threshold_text(question, ruling)}"
    decision: Decision = "compact" if compact else "wait"
    return Verdict(decision, Reason(code, text), paying)  # type: ignore[arg-type]


def _guarded(
    question: Question, quoted: Quote, break_even: float | None
) -> tuple[Decision, Reason] | None:
    """Return what a guard says, the hard limit first, or None where none applies."""
    context, window, inputs = question.context_tokens, quoted.window_tokens, quoted.inputs
    growth, output = inputs.growth_tokens, inputs.summary_output_tokens
    if context is not None and window is not None:
        limits = {"growth_tokens": growth, "summary_output_tokens": output}
        if question.at in ("call", "resume") and hard_limit(context, window, **limits):
            return "compact", Reason(
                "hard_limit", _hard_limit_text(context, window, growth, output)
            )
    after = quoted.sizes.context_after_tokens if quoted.sizes else question.context_after_tokens
    if break_even is None or no_saving(quoted.saving, context, after):
        return "wait", Reason("no_saving", _no_saving_text(quoted, context, after))
    if useless(question.useless_compactions):
        times = question.useless_compactions
        text = f"The last {times} compactions shrank this context by less than 5% each."
        return "wait", Reason("useless", text)
    return None


def _hard_limit_text(context: int, window: int, growth: float, output: float) -> str:
    return (
        f"{context:,} tokens, {growth:,.0f} of growth and {output:,.0f} of a summary's output "
        f"exceed the window of {window:,}."
    )


def _no_saving_text(quoted: Quote, context: int | None, after: int | None) -> str:
    if context is not None and after is not None and after >= context:
        return f"The context of {context:,} tokens would be {after:,} after a compaction."
    return f"A compaction would save {quoted.saving:.3g} base tokens per request."


def _threshold_text(question: Question, ruling: Ruling) -> str:
    context = question.context_tokens or 0
    if ruling.threshold_tokens is None:
        return f"The rule {ruling.rule} waits at any context."
    side = "reached by" if ruling.reached(context) else "above"
    return (
        f"The rule {ruling.rule} compacts from {ruling.threshold_tokens:,.0f} tokens, "
        f"{side} the {context:,} there are."
    )


def _comparison_text(question: Question, estimate: Estimate, break_even: float) -> str:
    if question.at in ("turn_end", "idle"):
        return (
            f"After such a turn of {question.role} {estimate.requests:.1f} more requests are "
            f"expected in the session; compacting pays from {break_even:.1f}."
        )
    made = question.calls
    source, standard = estimate.found.table.source, estimate.found.standard
    elsewhere = standard.name if standard else "a standard table"
    whose = _WHOSE[source].format(
        role=question.role, table=estimate.found.table.role, standard=elsewhere
    )
    if question.unit == "requests":
        noun, in_requests = "request", ""
    else:
        noun, in_requests = "call", f" ({estimate.requests:.1f} requests)"
    plural = "" if made == 1 else "s"
    return (
        f"{whose} that have made {made} {noun}{plural} make "
        f"{estimate.remaining.expected:.1f} more on average{in_requests}; "
        f"compacting pays from {break_even:.1f}."
    )


_WHOSE = {
    "role": "{table} turns",
    "all_roles": "No {role} turn has ended yet. Turns of all roles",
    "standard": "No turn has ended in this ledger yet. Turns elsewhere ({standard})",
    "none": "Turns",
}
