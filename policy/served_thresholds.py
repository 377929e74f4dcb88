"""Served thresholds: what a caller needs to decide locally, as one JSON document."""

from datetime import datetime
from typing import Any

from policy.answer import Mode
from policy.decision import POLICY_VERSION
from policy.prices import PriceBook
from policy.question import Question, validate
from policy.quote import quote
from policy.ruling import default_rule
from policy.snapshot import Snapshot
from policy.threshold_book import Compiled, ThresholdKey, key_of

__all__ = ["asked_thresholds", "served_thresholds"]

#: The context whose price band counts where nobody names one.
CONTEXT_TOKENS = 100_000


def asked_thresholds(
    question: Question, snapshot: Snapshot, price_book: PriceBook, *, at: datetime
) -> ThresholdKey:
    """Return the key of the thresholds that answer questions like this one.

    Raises
    ------
    InputError
        The question is wrong, or an UnknownPriceError where no price is known.
    """
    validate(question)
    known = snapshot.parameters_of(question.role, question.model)
    quoted = quote(question, price_book, known, at=at)
    return key_of(question.rule or default_rule(question, quoted), question, quoted)


def served_thresholds(
    key: ThresholdKey,
    compiled: Compiled,
    question: Question,
    snapshot: Snapshot,
    mode: Mode = "enforce",
) -> dict[str, Any]:
    """Return thresholds with what a caller needs to look up its own place in them.

    Parameters
    ----------
    key, compiled : ThresholdKey, Compiled
        What was asked for, and what it compiled to.
    question : Question
        Whose unit tells how calls become requests.
    snapshot : Snapshot
        Whose tables tell the role's requests per tool call.
    mode : {'enforce', 'shadow', 'off'}
        The role's: only where it is enforced shall a caller act on them.

    Returns
    -------
    dict
        ``at_call[i]`` is the context from which to compact after i requests of the turn (the last
        one holds beyond, null is never), i = round(calls × ``requests_per_call``), which is 1 where
        requests are counted; beyond
        ``hard_limit_tokens`` compact whatever they say.
    """
    rate = None
    # Who counts requests has the age already by which thresholds are listed.
    if question.unit != "requests":
        found = snapshot.lookup(question.unit, question.role, question.model)
        rate = None if found is None else found.table.requests_per_call
    thresholds, setting = compiled.thresholds, compiled.thresholds.setting
    payload = thresholds.to_payload()
    limit = None
    if setting is not None and setting.window_tokens is not None:
        limit = max(0.0, setting.limit_tokens())
    return {
        "role": question.role,
        "model": question.model,
        **payload,
        "rule": key.rule,
        "mode": mode,
        "requests_per_call": 1.0 if rate is None else rate,
        "hard_limit_tokens": limit,
        "versions": {"policy": POLICY_VERSION, "thresholds": compiled.version},
    }
