"""The decision: a question, a snapshot and a price book give an answer, in pure code."""

import math
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from policy.answer import Answer, Basis, Decision, Interval, Reason, Share, Versions
from policy.break_even import break_even_requests, pays
from policy.guards import hard_limit, no_saving
from policy.prices import PriceBook
from policy.question import Question, validate
from policy.quote import Quote, quote
from policy.role_table import Remaining
from policy.sizes import GROWTH_TOKENS, SUMMARY_OUTPUT_TOKENS
from policy.snapshot import Found, Snapshot

__all__ = ["POLICY_VERSION", "Answer", "Question", "decide", "validate"]

POLICY_VERSION = "2"

# Asking for more remaining calls than this is asking for certainty; it keeps exponents finite.
_MOST_CALLS = 10**15


class _Estimate(NamedTuple):
    """What the life table says at the question's age, in both units."""

    found: Found
    remaining: Remaining
    requests_per_call: float
    calls: float
    requests: float


class _Shown(NamedTuple):
    """The answer's fields that need an estimate."""

    calls: float | None = None
    requests: float | None = None
    continue_probability: float | None = None
    interval: Interval | None = None
    median: int | None = None
    probability_pays: float | None = None
    net: float | None = None


_NOTHING = _Shown()


def decide(
    question: Question,
    snapshot: Snapshot,
    price_book: PriceBook,
    *,
    at: datetime,
    decision_id: str,
) -> Answer:
    """Answer whether to compact before the next request.

    Guards go first (hard limit, then no saving), then the rule; without any table, wait.

    Parameters
    ----------
    question, snapshot : Question, Snapshot
        What is asked, and the life tables to answer from.
    price_book : PriceBook
        Asked only if cost or saving has to be computed from a model's prices.
    at : datetime
        When the next request is made, with a time zone.
    decision_id : str
        Name of this decision.

    Raises
    ------
    InputError
        The question can't be answered; an UnknownPriceError where no price is known.

    Notes
    -----
    C/s counts requests, so tool calls are turned into requests by the role's own requests per
    tool call, 1 until learned. Reference: the model, §§1, 3, 4 and 5.
    """
    validate(question)
    quoted = quote(question, price_book, at=at)
    estimate = _estimate(question, snapshot)
    break_even = break_even_requests(quoted.cost, quoted.saving)
    decision, reason = _verdict(question, quoted, break_even, estimate)
    shown = _show(question, quoted, break_even, estimate)
    prices = None if quoted.prices is None else quoted.prices.source
    return Answer(
        decision=decision,
        reason=reason,
        rule=question.rule,
        expected_remaining_calls=shown.calls,
        expected_remaining_requests=shown.requests,
        continue_probability=shown.continue_probability,
        interval=shown.interval,
        median_remaining_calls=shown.median,
        probability_pays=shown.probability_pays,
        break_even_calls=break_even,
        cost=quoted.cost,
        saving_per_call=quoted.saving,
        expected_net=shown.net,
        basis=_basis(question, quoted, estimate),
        decision_id=decision_id,
        versions=Versions(POLICY_VERSION, snapshot.version, prices),
        terms=_terms(question, quoted, estimate) if question.explain else None,
    )


def _estimate(question: Question, snapshot: Snapshot) -> _Estimate | None:
    """Return the life table's view in tool calls and in requests, None where there is none."""
    found = snapshot.lookup(question.unit, question.role, question.model)
    if found is None:
        return None
    table = found.table
    remaining = table.remaining(question.calls)
    rate = 1.0 if table.requests_per_call is None else table.requests_per_call
    if question.unit == "requests":
        calls, requests = remaining.expected / rate, remaining.expected
    else:
        calls, requests = remaining.expected, remaining.expected * rate
    return _Estimate(found, remaining, rate, calls, requests)


def _verdict(
    question: Question, quoted: Quote, break_even: float | None, estimate: _Estimate | None
) -> tuple[Decision, Reason]:
    context, window, sizes = question.context_tokens, quoted.window_tokens, quoted.sizes
    if context is not None and window is not None and hard_limit(context, window):
        return "compact", Reason("hard_limit", _hard_limit_text(context, window))
    after = sizes.context_after_tokens if sizes else question.context_after_tokens
    if break_even is None or no_saving(quoted.saving, context, after):
        return "wait", Reason("no_saving", _no_saving_text(quoted, context, after))
    if estimate is None:
        text = f"No life tables have been made yet; compacting pays from {break_even:.1f}."
        return "wait", Reason("empty_ledger", text)
    text = _comparison_text(question, estimate, break_even)
    if pays(estimate.requests, break_even):
        return "compact", Reason("pays", text)
    return "wait", Reason("does_not_pay", text)


def _hard_limit_text(context: int, window: int) -> str:
    return (
        f"{context:,} tokens, {GROWTH_TOKENS:,} of growth and {SUMMARY_OUTPUT_TOKENS:,} of a "
        f"summary's output exceed the window of {window:,}."
    )


def _no_saving_text(quoted: Quote, context: int | None, after: int | None) -> str:
    if context is not None and after is not None and after >= context:
        return f"The context of {context:,} tokens would be {after:,} after a compaction."
    return f"A compaction would save {quoted.saving:.3g} base tokens per request."


def _comparison_text(question: Question, estimate: _Estimate, break_even: float) -> str:
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


def _show(
    question: Question, quoted: Quote, break_even: float | None, estimate: _Estimate | None
) -> _Shown:
    if estimate is None:
        return _NOTHING
    table, remaining = estimate.found.table, estimate.remaining
    return _Shown(
        estimate.calls,
        estimate.requests,
        remaining.continue_probability,
        Interval(table.level, remaining.lower, remaining.upper),
        table.median(question.calls),
        _probability_pays(question, estimate, break_even),
        estimate.requests * quoted.saving - quoted.cost,
    )


def _probability_pays(question: Question, estimate: _Estimate, break_even: float | None) -> float:
    """Return P(remaining requests > C/s), counted in the table's unit."""
    if break_even is None:
        return 0.0
    if question.unit != "requests":
        break_even /= estimate.requests_per_call
    # N − i is whole, so it exceeds x exactly when it exceeds x rounded down.
    return estimate.found.table.probability_more_than(
        question.calls, math.floor(min(break_even, _MOST_CALLS))
    )


def _basis(question: Question, quoted: Quote, estimate: _Estimate | None) -> Basis:
    assumed = quoted.assumed
    if quoted.window_tokens is None:
        assumed += ("window_tokens",)
    elif question.context_tokens is None:
        assumed += ("context_tokens",)
    else:
        assumed += ("growth_tokens",)
        if "summary_output_tokens" not in assumed:
            assumed += ("summary_output_tokens",)
    if estimate is None:
        return Basis(
            question.role, "none", question.unit, 0, 0, 0, 1.0, False, 0.0, 0.0, None, (), assumed
        )
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
        assumed,
    )


def _shares(question: Question, estimate: _Estimate) -> tuple[Share, ...]:
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


def _terms(question: Question, quoted: Quote, estimate: _Estimate | None) -> dict[str, Any]:
    """Return every term of C, s and m as plain JSON values."""
    prices = quoted.prices
    return {
        "cost": None if quoted.terms is None else asdict(quoted.terms),
        "sizes": None if quoted.sizes is None else asdict(quoted.sizes),
        "weights": None if prices is None else {name: getattr(prices, name) for name in _WEIGHTS},
        "dollars_per_million": None if prices is None else dict(prices.dollars_per_million),
        "prices_as_of": None if prices is None else prices.as_of,
        "window_tokens": quoted.window_tokens,
        "growth_tokens": GROWTH_TOKENS,
        "age": question.calls,
        "tail_age": None if estimate is None else estimate.found.table.tail_age,
        "remaining": None if estimate is None else asdict(estimate.remaining),
    }


_WEIGHTS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
