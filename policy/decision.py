"""The decision: a question, a snapshot and a price book give an answer, in pure code."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from policy.answer import Answer, Mode, QuotedKind, Versions
from policy.basis import basis_of
from policy.break_even import break_even_requests
from policy.estimate import Estimate, estimate_of, shown
from policy.prices import PriceBook
from policy.question import Question, validate
from policy.quote import Quote, quote, quotes
from policy.ruling import ruling_of
from policy.snapshot import Snapshot
from policy.threshold_book import ThresholdBook
from policy.verdict import verdict_of

__all__ = ["POLICY_VERSION", "Answer", "Question", "decide", "validate"]

POLICY_VERSION = "3"


def decide(
    question: Question,
    snapshot: Snapshot,
    price_book: PriceBook,
    *,
    at: datetime,
    decision_id: str,
    book: ThresholdBook | None = None,
    mode: Mode = "enforce",
) -> Answer:
    """Answer whether to compact now.

    Guards go first (hard limit, then no saving), then the rule; without any table, wait.

    Parameters
    ----------
    question, snapshot : Question, Snapshot
        What is asked, and the life tables and parameters to answer from.
    price_book : PriceBook
        Asked only if cost or saving has to be computed from a model's prices.
    at : datetime
        When the next request is made, with a time zone.
    decision_id : str
        Name of this decision.
    book : ThresholdBook, optional
        Compiled rules. Without one, rules that need compiling give way to 'reorder'.
    mode : {'enforce', 'shadow', 'off'}
        In shadow, and off, the decision is to wait whatever `would_decide` says.

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
    known = snapshot.parameters_of(question.role, question.model)
    quoted = quote(question, price_book, known, at=at)
    estimate = estimate_of(question, snapshot, quoted)
    break_even = break_even_requests(quoted.cost, quoted.saving)
    ruling = ruling_of(question, quoted, estimate, book)
    verdict = verdict_of(question, quoted, break_even, estimate, ruling)
    seen = shown(question, quoted, break_even, estimate)
    prices = None if quoted.prices is None else quoted.prices.source
    return Answer(
        decision=verdict.decision if mode == "enforce" else "wait",
        reason=verdict.reason,
        rule=ruling.rule,
        at=question.at,
        mode=mode,
        would_decide=verdict.decision,
        pays=verdict.pays,
        threshold_tokens=ruling.threshold_tokens,
        ask_again_seconds=ruling.ask_again_seconds,
        expected_remaining_calls=seen.calls,
        expected_remaining_requests=seen.requests,
        continue_probability=seen.continue_probability,
        interval=seen.interval,
        median_remaining_calls=seen.median,
        probability_pays=seen.probability_pays,
        break_even_calls=break_even,
        cost=quoted.cost,
        saving_per_call=quoted.saving,
        expected_net=seen.net,
        basis=basis_of(question, quoted, estimate, ruling.used),
        decision_id=decision_id,
        versions=Versions(POLICY_VERSION, snapshot.version, prices, ruling.version),
        quotes=_kinds(question, quotes(question, price_book, known, at=at), estimate)
        if question.quotes
        else None,
        terms=_terms(question, quoted, estimate) if question.explain else None,
    )


def _kinds(
    question: Question, made: tuple[Quote, ...], estimate: Estimate | None
) -> tuple[QuotedKind, ...]:
    """Return quotes as an answer shows them, the best net first."""
    kinds = [
        QuotedKind(
            quoted.kind,
            quoted.cost,
            quoted.saving,
            break_even_requests(quoted.cost, quoted.saving),
            None if estimate is None else estimate.requests * quoted.saving - quoted.cost,
            quoted.sizes.context_after_tokens if quoted.sizes else question.context_after_tokens,
            quoted.assumed,
        )
        for quoted in made
    ]
    return tuple(sorted(kinds, key=_net, reverse=True))


def _net(kind: QuotedKind) -> float:
    return -kind.cost if kind.expected_net is None else kind.expected_net


def _terms(question: Question, quoted: Quote, estimate: Estimate | None) -> dict[str, Any]:
    """Return every term of C, s and m as plain JSON values."""
    prices, inputs = quoted.prices, quoted.inputs
    return {
        "cost": None if quoted.terms is None else asdict(quoted.terms),
        "sizes": None if quoted.sizes is None else asdict(quoted.sizes),
        "weights": None if prices is None else {name: getattr(prices, name) for name in _WEIGHTS},
        "dollars_per_million": None if prices is None else dict(prices.dollars_per_million),
        "prices_as_of": None if prices is None else prices.as_of,
        "window_tokens": quoted.window_tokens,
        "requests_to_come": {name: getattr(inputs, name) for name in _INPUTS},
        "pause": quoted.pause._asdict(),
        "age": question.calls,
        "tail_age": None if estimate is None else estimate.found.table.tail_age,
        "remaining": None if estimate is None else asdict(estimate.remaining),
    }


_WEIGHTS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
_INPUTS = (
    "growth_tokens",
    "first_growth_tokens",
    "rework_tokens",
    "miss_probability",
    "resume_probability",
    "requests_after_turn",
)
