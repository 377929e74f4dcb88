"""An audit as plain JSON values, and the assumptions that have to be told with it."""

from dataclasses import asdict
from typing import Any

from backtest.audit import Audit, AuditedCompaction
from backtest.audit_summary import AuditSummary, GroupSummary
from ledger.clock import iso
from policy.cost import CostTerms

__all__ = ["assumptions", "audit_payload", "compaction_payload"]


def audit_payload(audited: Audit, summary: AuditSummary) -> dict[str, Any]:
    """Return ``{compactions, summary, assumptions}``; ids and numbers, no text of a log."""
    return {
        "horizon": audited.horizon,
        "compactions": [compaction_payload(one) for one in audited.compactions],
        "summary": {
            "all": _group(summary.whole),
            "idle": {**_group(summary.idle), "never_resumed": summary.never_resumed},
            **{
                f"by_{name}": [_group(group) for group in groups]
                for name, groups in summary.groups.items()
            },
            "by_ahead": {
                unit: [asdict(one) for one in rows] for unit, rows in summary.ahead.items()
            },
            "crossing": {unit: asdict(found) for unit, found in summary.crossings.items()},
            "break_even_requests": _quartiles(summary.break_even),
            "rework_tokens": _quartiles(summary.rework),
        },
        "assumptions": assumptions(audited),
    }


def compaction_payload(one: AuditedCompaction) -> dict[str, Any]:
    """Return one compaction; amounts in base tokens of its own model, null where not known."""
    case, remaining = one.case, one.remaining
    return {
        "compaction_id": case.compaction_id,
        "session_id": case.session_id,
        "turn_id": case.turn_id,
        "project": case.project,
        "role": case.role,
        "model": case.model,
        "at": iso(case.at_ms),
        "trigger": case.trigger,
        "strategy": case.strategy,
        "between_turns": case.between_turns,
        "idle": one.idle,
        "context_before": case.context_before,
        "context_after": case.context_after,
        "remaining": {
            "calls": case.in_turn.calls,
            "requests": case.in_turn.requests,
            "session_calls": case.in_session.calls,
            "session_requests": case.in_session.requests,
            "counted_calls": remaining.counted_calls,
            "counted_requests": remaining.counted_requests,
            "missed_requests": remaining.missed,
            "censored": not remaining.final,
        },
        "pause_before_seconds": case.pause_before_seconds,
        "pause_seconds": case.pause_seconds,
        "cost": one.cost,
        "cost_source": one.cost_source,
        "terms": None if one.terms is None else _terms(one.terms),
        "saving_per_call": one.saving,
        "break_even_requests": one.break_even,
        "net": one.net,
        "net_dollars": None
        if one.net is None or one.dollars_per_token is None
        else one.net * one.dollars_per_token,
        "verdict": one.verdict,
        "rework_tokens": case.rework_tokens,
        "rework_cost": one.rework_cost,
        "unpriced": one.problem or None,
    }


def assumptions(audited: Audit) -> list[str]:
    """Return what has to be said wherever figures of an audit are printed."""
    seen = audited.summaries_seen
    told = f"the median of {seen} logged ones" if seen else "assumed, none is logged"
    horizon = {
        "turn": "A compaction between turns counts up to the end of the turn that followed it.",
        "session": "A session counts as over a day before the logs end; that may be an artefact of "
        "where they stop.",
    }
    return [
        (
            "Later requests count as if the compaction had not changed how the context grew, on a "
            "context longer by X - X'. Without any compaction the window would have filled up, so "
            "these are token accounts, not causal savings."
        ),
        "Savings count up to the next summary, which would have cut the longer context as well.",
        horizon[audited.horizon],
        (
            "Cut turns are undecided unless what was seen had paid already; the share paid counts "
            "them as far as they were seen."
        ),
        (
            "Calls for summaries that the log does not tell are modelled: the same model on the "
            f"cached context, {audited.summary_output_tokens:,.0f} output tokens ({told})."
        ),
        (
            "A cache counts as expired only where the pause was longer than its life, 80 seconds "
            "for the summary call left out."
        ),
        "Rework is shown beside the net, not in it.",
        "Base tokens of models with different prices are added up as they are; see the dollars.",
        "The interval of the crossing takes compactions as independent.",
    ]


def _group(group: GroupSummary) -> dict[str, Any]:
    return asdict(group) | {"difference_shown": group.shows_difference}


def _terms(terms: CostTerms) -> dict[str, float]:
    names = ("read", "uncached", "output", "recache", "recache_avoided")
    return {name: getattr(terms, name) for name in names}


def _quartiles(values: tuple[float, float, float] | None) -> dict[str, float] | None:
    names = ("lower_quartile", "median", "upper_quartile")
    return None if values is None else dict(zip(names, values, strict=True))
