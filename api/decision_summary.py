"""The decision log held against outcomes: one summary for the service and the command line."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection

from estimator.outcomes import (
    Judged,
    advice_worth,
    continue_check,
    probability_tenths,
    remaining_check,
    wait_worth,
)
from ledger.clock import iso
from ledger.decisions import DecisionMade, Logged, Outcome, read_decisions

__all__ = ["MOST_DECISIONS", "decision_rows", "decision_summary"]

#: The latest decisions that a summary is made of.
MOST_DECISIONS = 50_000
#: Moments that ask about the turn they name; the others ask about the pause behind it.
_WITHIN_TURN = ("call", "resume")

_Pair = tuple[DecisionMade, Outcome]


def decision_rows(
    connection: Connection,
    *,
    limit: int,
    role: str | None = None,
    since_ms: int | None = None,
    turn_id: str | None = None,
) -> list[dict[str, Any]]:
    """Return the latest decisions as plain JSON values, newest first, each with its outcome.

    Parameters
    ----------
    connection : Connection
    limit : int
        How many at most.
    role, turn_id : str, optional
        Only decisions that named them.
    since_ms : int, optional
        Only decisions made at that time or later.
    """
    found = read_decisions(connection, limit=limit, role=role, since_ms=since_ms, turn_id=turn_id)
    return [_row(one) for one in found]


def decision_summary(
    connection: Connection,
    *,
    role: str | None = None,
    since_ms: int | None = None,
    limit: int = MOST_DECISIONS,
) -> dict[str, Any]:
    """Return what the latest decisions said against what their turns then did, as JSON values.

    Parameters
    ----------
    connection : Connection
    role : str, optional
        Only decisions that named it.
    since_ms : int, optional
        Only decisions made at that time or later.
    limit : int, default 50,000
        The latest so many are read; `truncated` says whether there are more.

    Returns
    -------
    dict
        Counts of decisions, by answer and by why some are not judged; `compact` and `wait`, what
        the answers were worth; `by_unit` and `by_role`, expected calls against those that
        remained; `probability_deciles`, P(pays) against how often it paid.
    """
    found = read_decisions(connection, limit=limit + 1, role=role, since_ms=since_ms)
    truncated = len(found) > limit
    found = found[:limit]
    sorted_out = _sort_out(found)
    judged = _judged(sorted_out.pairs)
    return {
        "role": role,
        "since": iso(since_ms),
        "from": iso(found[-1].decision.at_ms) if found else None,
        "to": iso(found[0].decision.at_ms) if found else None,
        "decisions": len(found),
        "truncated": truncated,
        **_counts(found),
        "joined": sum(one.outcome is not None for one in found),
        "not_judged": dict(sorted_out.left_out),
        "judged": len(sorted_out.pairs),
        "ended": int(judged.ended.sum()),
        "cut": int((~judged.ended).sum()),
        "requests_converted": sum(outcome.converted for _, outcome in sorted_out.pairs),
        "compact": asdict(advice_worth(judged)),
        "wait": asdict(wait_worth(judged)),
        "by_unit": _by(sorted_out.pairs, judged, ("unit",)),
        "by_role": _by(sorted_out.pairs, judged, ("role", "unit")),
        "probability_deciles": [asdict(tenth) for tenth in probability_tenths(judged)],
    }


def _row(logged: Logged) -> dict[str, Any]:
    made, outcome = logged
    row = made._asdict()
    row = {"decision_id": row.pop("decision_id"), "at": iso(row.pop("at_ms"))} | row
    if outcome is None:
        return row | {"outcome": None}
    told = outcome._asdict() | {"paid": outcome.paid(made), "net_tokens": outcome.net(made)}
    return row | {"outcome": told}


def _counts(found: Sequence[Logged]) -> dict[str, dict[str, int]]:
    made = [one.decision for one in found]
    named = {"by_answer": "would_decide", "by_reason": "reason", "by_rule": "rule"}
    named |= {"by_mode": "mode", "by_moment": "moment", "by_source": "source"}
    return {
        name: dict(Counter(getattr(one, column) for one in made).most_common())
        for name, column in named.items()
    }


@dataclass(frozen=True, slots=True)
class _SortedOut:
    """Decisions that can be judged, oldest first, and how many can't, by why."""

    pairs: list[_Pair] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def _sort_out(found: Sequence[Logged]) -> _SortedOut:
    """Leave out what has no outcome, is about a pause, or was asked again about the same call."""
    sorted_out = _SortedOut(left_out=Counter(dict.fromkeys(_LEFT_OUT, 0)))
    seen = set()
    for made, outcome in found:  # newest first: of two answers to the same, the last one counts
        why = _why_not(made, outcome)
        if why is None and outcome is not None:
            key = (outcome.turn_id, made.unit, made.calls, made.moment)
            if key not in seen:
                seen.add(key)
                sorted_out.pairs.append((made, outcome))
                continue
            why = "asked_again"
        sorted_out.left_out[why or "unknown_turn"] += 1
    sorted_out.pairs.reverse()
    return sorted_out


_LEFT_OUT = ("no_turn_id", "unknown_turn", "between_turns", "contradicted", "asked_again")


def _why_not(made: DecisionMade, outcome: Outcome | None) -> str | None:
    if made.turn_id is None:
        return "no_turn_id"
    if outcome is None:
        return "unknown_turn"
    if made.moment not in _WITHIN_TURN:
        return "between_turns"
    left = outcome.calls if made.unit == "tool_calls" else outcome.requests
    return "contradicted" if left is None or left < 0 else None


def _judged(pairs: Sequence[_Pair]) -> Judged:
    def numbers(values: Sequence[float | None]) -> Any:
        return np.array([np.nan if value is None else value for value in values], dtype=float)

    made = [one for one, _ in pairs]
    outcomes = [outcome for _, outcome in pairs]
    by_calls = [one.unit == "tool_calls" for one in made]
    both = list(zip(made, outcomes, by_calls, strict=True))
    break_even = numbers([one.break_even_calls for one in made])
    return Judged(
        turn=_codes([outcome.turn_id for outcome in outcomes]),
        session=_codes([outcome.session_id for outcome in outcomes]),
        ended=np.array([outcome.ended for outcome in outcomes], dtype=bool),
        remaining=numbers([left.calls if calls else left.requests for _, left, calls in both]),
        requests=numbers([outcome.requests for outcome in outcomes]),
        expected=numbers(
            [
                one.expected_remaining_calls if calls else one.expected_remaining_requests
                for one, _, calls in both
            ]
        ),
        continue_probability=numbers(
            [one.continue_probability if calls else None for one, _, calls in both]
        ),
        probability_pays=numbers([one.probability_pays for one in made]),
        break_even=np.where(np.isnan(break_even), np.inf, break_even),
        cost=numbers([one.cost for one in made]),
        saving=numbers([one.saving_per_call for one in made]),
        compact=np.array([one.would_decide == "compact" for one in made], dtype=bool),
        forced=np.array([one.reason == "hard_limit" for one in made], dtype=bool),
    )


def _codes(names: Sequence[str]) -> Any:
    return np.unique(np.array(names, dtype=object), return_inverse=True)[1].astype(np.int64)


def _by(pairs: Sequence[_Pair], judged: Judged, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row for each combination of columns, those with most decisions first."""
    places: dict[tuple[str, ...], list[int]] = {}
    for place, (made, _) in enumerate(pairs):
        places.setdefault(tuple(getattr(made, name) for name in columns), []).append(place)
    rows = []
    for names, where in sorted(places.items(), key=lambda one: (-len(one[1]), one[0])):
        own = judged.only(np.array(where))
        remaining, go_on = remaining_check(own), continue_check(own)
        rows.append(
            dict(zip(columns, names, strict=True))
            | {
                "judged": len(where),
                "ended": int(own.ended.sum()),
                "remaining": None if remaining is None else asdict(remaining),
                "no_further_call": None if go_on is None else asdict(go_on),
                "compact": asdict(advice_worth(own)),
                "wait": asdict(wait_worth(own)),
            }
        )
    return rows
