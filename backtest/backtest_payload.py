"""A backtest as plain JSON values, and the assumptions that have to be told with it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from backtest.backtest import Backtest, RuleResult
from backtest.prequential import FIRST_SESSIONS, session_starts
from backtest.role_savings import RoleSaving
from backtest.sensitivity import Run

__all__ = ["assumptions", "backtest_payload", "role_payload", "rule_payload", "run_payload"]


def backtest_payload(
    found: Backtest,
    *,
    by_role: Sequence[RoleSaving] = (),
    runs: Sequence[Run] = (),
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the whole of it; names of rules, roles and projects, and numbers, no text of a log.

    Parameters
    ----------
    found : Backtest
    by_role : sequence of RoleSaving
    runs : sequence of Run
        Of the sensitivity.
    notes : sequence of str
        Assumptions about prices and sizes, told before the others.
    """
    scored = found.trial.scored
    sessions = np.array(found.sequences.session)
    return {
        "rules": [rule_payload(one) for one in found.rules],
        "baseline": rule_payload(found.baseline),
        "requests": found.sequences.requests,
        "sessions": len(set(found.sequences.session)),
        "scored_requests": int(found.sequences.lengths[scored].sum()),
        "scored_sessions": int(np.unique(sessions[scored]).size),
        "horizon": found.options.horizon,
        "split": found.options.split,
        "by_role": [role_payload(one) for one in by_role],
        "sensitivity": [run_payload(one) for one in runs],
        "assumptions": [*notes, *assumptions(found)],
    }


def rule_payload(one: RuleResult) -> dict[str, Any]:
    """Return one rule; costs in base tokens, differences as shares of the baseline's cost."""
    return {
        "rule": one.rule,
        "cost": one.cost,
        "dollars": one.dollars,
        "relative_to_baseline": one.relative,
        "interval": list(one.interval),
        "difference_shown": one.shown,
        "difference_shown_for_all_rules": one.shown_together,
        "share_of_clairvoyant": one.share,
        "regret": one.regret,
        "relative_to_best_threshold": one.over_best,
        "interval_to_best_threshold": list(one.over_best_interval),
        "compactions": one.compactions,
        "share_paid": one.share_paid,
        "hindsight": one.hindsight,
    }


def role_payload(one: RoleSaving) -> dict[str, Any]:
    """Return one role; the saving in base tokens."""
    return {
        "role": one.role,
        "rule": one.rule,
        "turns": one.turns,
        "sessions": one.sessions,
        "requests": one.requests,
        "saving": one.saving,
        "interval": list(one.saving_interval),
        "dollars": one.dollars,
        "relative_to_baseline": one.relative,
        "verdict": one.verdict,
        "with_m": one.with_m,
        "with_m_interval": list(one.with_m_interval),
        "m_matters": one.m_matters,
    }


def run_payload(one: Run) -> dict[str, Any]:
    """Return one run of the sensitivity."""
    return {
        "kind": one.kind,
        "name": one.name,
        "problem": one.problem or None,
        "rules": [rule_payload(rule) for rule in one.rules],
    }


def assumptions(found: Backtest) -> list[str]:
    """Return what a reader has to know before believing the figures."""
    sequences, limit = found.sequences, found.scenario.limit_tokens
    beyond = int((sequences.context_tokens > limit).sum())
    return [
        _sizes(found),
        (
            "Growth is replayed as if a compaction did not change it, but for L; a session's end "
            "may be where its log stops."
        ),
        f"Every rule is forced at {limit:,.0f} tokens, as never is not feasible past the window. "
        + _share(beyond, sequences.requests, limit),
        (
            "These are accounts of tokens on the input side and for summaries, not causal savings; "
            "ordinary output costs the same under every rule."
        ),
        _split(found),
        *_left_out(found),
        *_horizon(found),
        *_one_project(found),
    ]


def _sizes(found: Backtest) -> str:
    left, seen = found.aftermath, found.compactions_seen
    sizes = (
        f"median X′ {np.median(left.after_tokens):,.0f}, P {np.median(left.prefix_tokens):,.0f}, "
        f"L {np.median(left.rework_tokens):,.0f}"
    )
    if not seen:
        return f"No compaction in these logs: {sizes} tokens are assumed."
    return (
        f"What a compaction leaves, {found.options.leavings.name}: {sizes} tokens; {seen:,} "
        "compactions in the logs."
    )


def _share(beyond: int, requests: int, limit: float) -> str:
    if not beyond:
        return f"No request had more than {limit:,.0f}."
    return (
        f"{beyond:,} of {requests:,} requests had more, and are replayed as if they had been "
        "compacted there."
    )


def _split(found: Backtest) -> str:
    if found.options.split == "random":
        return (
            f"Fitted on a random half of the sessions and billed on the other, both ways, seed "
            f"{found.options.seed}."
        )
    return (
        f"Rules are fitted when {FIRST_SESSIONS}, {2 * FIRST_SESSIONS}, {4 * FIRST_SESSIONS} … "
        "sessions have begun, on the turns that had ended by then; a session is decided by the "
        f"last fit before it began. The first {FIRST_SESSIONS} sessions are learned from only."
    )


def _left_out(found: Backtest) -> list[str]:
    if found.options.split == "random":
        return []
    names = np.array(found.sequences.session)
    undated = np.unique(names[session_starts(found.sequences) <= 0]).size
    if not undated:
        return []
    return [f"{undated:,} sessions whose log tells no time are left out of what is billed."]


def _horizon(found: Backtest) -> list[str]:
    if found.options.horizon == "session":
        return []
    return [
        (
            "Every turn stands alone: it begins by writing the context it had, and nothing that a "
            "compaction saves after its end counts."
        )
    ]


def _one_project(found: Backtest) -> list[str]:
    bills: dict[str, float] = {}
    for project, bill in zip(found.sequences.project, found.trial.baseline.tolist(), strict=True):
        bills[project] = bills.get(project, 0.0) + bill
    total = sum(bills.values())
    largest = max(bills.values())
    if len(bills) < 2 or not total:
        return []
    return [f"The largest of {len(bills)} projects makes {largest / total:.0%} of the bill."]
