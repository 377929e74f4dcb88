"""The estimate: what the life table says about one question, in calls and in requests."""

import math
from typing import NamedTuple

from policy.answer import Interval
from policy.question import Question
from policy.quote import Quote
from policy.role_table import Remaining, RoleTable
from policy.snapshot import Found, Snapshot

__all__ = ["Estimate", "Shown", "estimate_of", "shown"]

# Asking for more remaining calls than this is asking for certainty; it keeps exponents finite.
_MOST_CALLS = 10**15


class Estimate(NamedTuple):
    """What is expected to remain.

    Parameters
    ----------
    found : Found
        The life table and what it borrows from.
    remaining : Remaining
        What it says at the question's age.
    requests_per_call : float
        The role's own ratio, 1 until learned.
    calls, requests : float
        Expected to remain: in this turn, or after it where the turn is over.
    requests_made : int
        The question's age in requests.
    in_requests : RoleTable or None
        The same turns' table in requests, where requests are counted by it.
    """

    found: Found
    remaining: Remaining
    requests_per_call: float
    calls: float
    requests: float
    requests_made: int
    in_requests: RoleTable | None


class Shown(NamedTuple):
    """The answer's fields that need an estimate."""

    calls: float | None = None
    requests: float | None = None
    continue_probability: float | None = None
    interval: Interval | None = None
    median: int | None = None
    probability_pays: float | None = None
    net: float | None = None


def estimate_of(question: Question, snapshot: Snapshot, quoted: Quote) -> Estimate | None:
    """Return what remains of the turn or, where it is over, of the session; None without tables.

    Notes
    -----
    C/s counts requests. For a caller that counts tool calls, the age is turned into requests by the
    role's own requests per tool call, and its table in requests tells how many remain: before a
    request it is known that there is one more, but not that it asks for another tool call. Where
    there is no such table, what remains is turned into requests itself. After a turn ν requests
    are expected, more or fewer once the session has been idle for a while: the model, §§1 and 3.
    """
    found = snapshot.lookup(question.unit, question.role, question.model)
    if found is None:
        return None
    table = found.table
    remaining = table.remaining(question.calls)
    rate = 1.0 if table.requests_per_call is None else table.requests_per_call
    in_requests = question.unit == "requests"
    made = question.calls if in_requests else round(question.calls * rate)
    if question.at in ("turn_end", "idle"):
        requests = _after_turn(quoted)
        return Estimate(found, remaining, rate, requests / rate, requests, made, None)
    if in_requests:
        requests = remaining.expected
        return Estimate(found, remaining, rate, requests / rate, requests, made, table)
    other = snapshot.in_requests(table, question.role, question.model)
    calls = remaining.expected
    requests = calls * rate if other is None else other.remaining(made).expected
    return Estimate(found, remaining, rate, calls, requests, made, other)


def _after_turn(quoted: Quote) -> float:
    """Return ν, given how likely the session still goes on."""
    inputs = quoted.inputs
    if not inputs.resume_probability:
        return 0.0
    return inputs.requests_after_turn * quoted.pause.resumed / inputs.resume_probability


def shown(
    question: Question, quoted: Quote, break_even: float | None, estimate: Estimate | None
) -> Shown:
    """Return what the answer shows of an estimate; of a turn that is over, only what follows it."""
    if estimate is None:
        return Shown()
    net = estimate.requests * quoted.saving - quoted.cost
    if question.at in ("turn_end", "idle"):
        return Shown(estimate.calls, estimate.requests, net=net)
    table, remaining = estimate.found.table, estimate.remaining
    return Shown(
        estimate.calls,
        estimate.requests,
        remaining.continue_probability,
        Interval(table.level, remaining.lower, remaining.upper),
        table.median(question.calls),
        _probability_pays(question, estimate, break_even),
        net,
    )


def _probability_pays(question: Question, estimate: Estimate, break_even: float | None) -> float:
    """Return P(remaining requests > C/s), counted in the unit of the table there is."""
    if break_even is None:
        return 0.0
    table, age = estimate.in_requests, estimate.requests_made
    if table is None:
        table, age = estimate.found.table, question.calls
        break_even /= estimate.requests_per_call
    # N − i is whole, so it exceeds x exactly when it exceeds x rounded down; C may be negative.
    return table.probability_more_than(age, math.floor(min(max(break_even, 0.0), _MOST_CALLS)))
