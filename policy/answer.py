"""The answer: compact or wait, why, from what, and by which versions."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from policy.role_table import TableSource

__all__ = [
    "Answer",
    "Basis",
    "Decision",
    "Interval",
    "Mode",
    "QuotedKind",
    "Reason",
    "ReasonCode",
    "Share",
    "Versions",
]

Decision = Literal["compact", "wait"]
ReasonCode = Literal[
    "pays",
    "threshold",
    "worth_waiting",
    "does_not_pay",
    "hard_limit",
    "no_saving",
    "useless",
    "empty_ledger",
]
Mode = Literal["enforce", "shadow", "off"]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why: a code for programs and one sentence for people.

    Parameters
    ----------
    code : str
        Stable. 'pays' and 'does_not_pay' compare m with C/s. Where the rule says otherwise it is
        'threshold' (compact, although m alone would not pay for it) or 'worth_waiting' (wait,
        although it would pay now). The guards' are 'hard_limit', 'no_saving', 'useless' and
        'empty_ledger'.
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
    learned : tuple of str
        Names of inputs that the ledger taught.
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
    learned: tuple[str, ...]
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
    thresholds : int or None
        Version of the snapshot that the thresholds were compiled from; None where the rule was
        worked out for this question alone.
    """

    policy: str
    estimate: int
    prices: str | None
    thresholds: int | None = None


@dataclass(frozen=True, slots=True)
class QuotedKind:
    """What one kind of compaction would cost and be worth now.

    Parameters
    ----------
    kind : {'summary', 'separate', 'clear', 'server_side'}
        What makes the new context.
    cost, saving_per_call : float
        C, and s per remaining request, in base tokens.
    break_even_calls : float or None
        C/s in requests.
    expected_net : float or None
        Expected remaining requests × s − C.
    context_after_tokens : int or None
        X′ it was quoted for.
    assumed : tuple of str
        Inputs that a default stood in for.
    """

    kind: str
    cost: float
    saving_per_call: float
    break_even_calls: float | None
    expected_net: float | None
    context_after_tokens: int | None
    assumed: tuple[str, ...]


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
        The rule that decided: the one asked for, or the one chosen where none was.
    at : {'call', 'turn_end', 'idle', 'resume'}
        The moment that was asked about.
    mode : {'enforce', 'shadow', 'off'}
        In shadow the answer is to wait, and `would_decide` is what it would have been; off, no
        role's compaction is advised at all.
    would_decide : {'compact', 'wait'}
        What guards and rule say, whatever the mode.
    pays : bool or None
        Whether m exceeds C/s: compacting now is better than never. It may still be worth waiting.
    threshold_tokens : float or None
        The context from which the rule compacts here; None where it never does, or where it is no
        matter of the context.
    ask_again_seconds : float or None
        When to ask again while the agent is idle: just before its cache expires.
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
    quotes : tuple of QuotedKind or None
        Every kind of compaction that can be quoted, the best net first, where asked for.
    terms : mapping or None
        Every term of C, s and m where the question asks to explain.
    """

    decision: Decision
    reason: Reason
    rule: str
    at: str
    mode: Mode
    would_decide: Decision
    pays: bool | None
    threshold_tokens: float | None
    ask_again_seconds: float | None
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
    quotes: tuple[QuotedKind, ...] | None = None
    terms: Mapping[str, Any] | None = None

    def as_payload(self) -> dict[str, Any]:
        """Return plain JSON values; `quotes` and `terms` only where the question asked for them."""
        # Spelled out because dataclasses.asdict copies in depth, at several times the cost.
        reason, interval, basis, versions = self.reason, self.interval, self.basis, self.versions
        payload = {name: getattr(self, name) for name in _PAYLOAD_FIELDS}
        payload["reason"] = {"code": reason.code, "text": reason.text}
        if interval is not None:
            payload["interval"] = {name: getattr(interval, name) for name in Interval.__slots__}
        payload["basis"] = {name: getattr(basis, name) for name in Basis.__slots__}
        payload["basis"]["learned"] = list(basis.learned)
        payload["basis"]["assumed"] = list(basis.assumed)
        payload["basis"]["rests_on"] = [
            {"name": share.name, "turns": share.turns, "weight": share.weight}
            for share in basis.rests_on
        ]
        payload["versions"] = {name: getattr(versions, name) for name in Versions.__slots__}
        if self.quotes is not None:
            payload["quotes"] = [
                {name: getattr(quoted, name) for name in QuotedKind.__slots__}
                for quoted in self.quotes
            ]
        if self.terms is not None:
            payload["terms"] = dict(self.terms)
        return payload


_PAYLOAD_FIELDS = tuple(
    field.name for field in fields(Answer) if field.name not in ("quotes", "terms")
)
