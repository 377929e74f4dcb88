"""The answer: compact or wait, why, from what, and by which versions."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from policy.role_table import TableSource

__all__ = ["Answer", "Basis", "Decision", "Interval", "Reason", "ReasonCode", "Share", "Versions"]

Decision = Literal["compact", "wait"]
ReasonCode = Literal["pays", "does_not_pay", "hard_limit", "no_saving", "empty_ledger"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a code for programs and one sentence for people.

    Parameters
    ----------
    code : {'pays', 'does_not_pay', 'hard_limit', 'no_saving', 'empty_ledger'}
        Stable.
    text : str
        With the numbers; its wording may change.
    """

    code: ReasonCode
    text: str


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval on the expected remaining calls (or requests), in the unit asked.

    Parameters
    ----------
    level : float
        Nominal coverage.
    lower, upper : float
        Its ends.
    """

    level: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Share:
    """What part of an estimate rests on a table.

    Parameters
    ----------
    name : str
        The role, the role on a model, all roles, or the standard table with its date.
    turns : int
        Turns it was made from.
    weight : float
        0 to 1; the shares of an answer add up to 1.
    """

    name: str
    turns: int
    weight: float


@dataclass(frozen=True, slots=True)
class Basis:
    """What the estimate rests on.

    Parameters
    ----------
    role : str
        The role that was asked about.
    source : {'role', 'all_roles', 'standard', 'none'}
        Whose life table was used: the role's, that of all roles together, or the standard table.
    unit : {'tool_calls', 'requests'}
        What the table counts.
    turns, at_risk, ends : int
        Turns in that table, those observed at this age, and those seen to end beyond it.
    requests_per_call : float
        Used to turn calls into requests or back; 1 until learned.
    extrapolated : bool
        Whether the age lies in the open tail.
    credibility : float
        z, the weight of the table's own turns; the rest is borrowed.
    effective_ends : float
        `ends` as far as the turns' weights let them count.
    half_life_turns : float or None
        After so many later turns of the role a turn counts half.
    rests_on : tuple of Share
        Every table that the estimate rests on, its own first, with its weight.
    assumed : tuple of str
        Names of inputs that a default stood in for. 'window_tokens' or 'context_tokens' means
        that the hard limit could not act.
    """

    role: str
    source: TableSource
    unit: str
    turns: int
    at_risk: int
    ends: int
    requests_per_call: float
    extrapolated: bool
    credibility: float
    effective_ends: float
    half_life_turns: float | None
    rests_on: tuple[Share, ...]
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Versions:
    """What made the answer.

    Parameters
    ----------
    policy : str
        Version of the decision's code.
    estimate : int
        Version of the snapshot.
    prices : str or None
        Source of the prices, 'caller' for weights, None where cost and saving were given.
    """

    policy: str
    estimate: int
    prices: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision on one question.

    Parameters
    ----------
    decision : {'compact', 'wait'}
        What to do before the next request.
    reason : Reason
        Why.
    rule : str
        The rule that was asked for.
    expected_remaining_calls, expected_remaining_requests : float or None
        m(i) in tool calls and in requests; None where there is no table at all.
    continue_probability : float or None
        P(N > i | N ≥ i): the turn goes on at all.
    interval : Interval or None
        Around m(i), in the unit asked.
    median_remaining_calls : int or None
        Median residual life, in the unit asked.
    probability_pays : float or None
        Probability that more than C/s requests remain; shown, never compared with ½.
    break_even_calls : float or None
        C/s, which counts requests (the model, §1); None where nothing is saved.
    cost, saving_per_call : float
        C, and s per remaining request, in base tokens.
    expected_net : float or None
        Expected remaining requests × s − C, in base tokens.
    basis : Basis
        What the estimate rests on.
    decision_id : str
        The caller's name for this decision.
    versions : Versions
        What made it.
    terms : mapping or None
        Every term of C, s and m where the question asks to explain.
    """

    decision: Decision
    reason: Reason
    rule: str
    expected_remaining_calls: float | None
    expected_remaining_requests: float | None
    continue_probability: float | None
    interval: Interval | None
    median_remaining_calls: int | None
    probability_pays: float | None
    break_even_calls: float | None
    cost: float
    saving_per_call: float
    expected_net: float | None
    basis: Basis
    decision_id: str
    versions: Versions
    terms: Mapping[str, Any] | None = None

    def as_payload(self) -> dict[str, Any]:
        """Return plain JSON values; `terms` is left out unless the question asked for it."""
        # Spelled out because dataclasses.asdict copies in depth, at several times the cost.
        reason, interval, basis, versions = self.reason, self.interval, self.basis, self.versions
        payload = {name: getattr(self, name) for name in _PAYLOAD_FIELDS}
        payload["reason"] = {"code": reason.code, "text": reason.text}
        if interval is not None:
            payload["interval"] = {name: getattr(interval, name) for name in Interval.__slots__}
        payload["basis"] = {name: getattr(basis, name) for name in Basis.__slots__}
        payload["basis"]["assumed"] = list(basis.assumed)
        payload["basis"]["rests_on"] = [
            {"name": share.name, "turns": share.turns, "weight": share.weight}
            for share in basis.rests_on
        ]
        payload["versions"] = {name: getattr(versions, name) for name in Versions.__slots__}
        if self.terms is not None:
            payload["terms"] = dict(self.terms)
        return payload


_PAYLOAD_FIELDS = tuple(field.name for field in fields(Answer) if field.name != "terms")
