"""The parts of a report: what was found, as sentences, tables and pictures."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from matplotlib.figure import Figure

from backtest.audit_payload import assumptions as audit_assumptions
from backtest.audit_payload import audit_payload
from backtest.audit_tables import ahead_table, groups_table, headlines
from backtest.backtest_payload import assumptions as backtest_assumptions
from backtest.backtest_payload import backtest_payload
from backtest.backtest_tables import backtest_headlines, roles_table, rules_table
from backtest.figures import plot_contexts, plot_costs, plot_crossing
from backtest.html_report import Section
from cli.reported import Reported
from compactuary.role_lives import MOST_PANELS
from estimator.note_table import note_table
from estimator.plots import plot_remaining
from estimator.report_table import ReportTable

__all__ = ["assumed", "figures", "period", "report_payload", "sections", "tables", "told_lines"]


def sections(told: Reported) -> list[Section]:
    """Return the parts in reading order; what nothing is known of is a sentence."""
    found = tables(told)
    pictures = {name: (shows, figure) for name, shows, figure in figures(told)}

    def part(title: str, lines: Sequence[str], *names: str) -> Section:
        return Section(
            title,
            lines,
            tuple(pictures[name] for name in names if name in pictures),
            tuple(found[name] for name in names if name in found),
        )

    return [
        part("Remaining calls by role", _remaining(told), "remaining"),
        part("Did past compactions pay?", _past(told), "crossing", "audit", "ahead"),
        part("What other rules would have cost", _replayed(told), "costs", "rules"),
        part("Where to switch a rule on", _switches(told), "roles"),
        part("Contexts and compactions", (), "contexts"),
    ]


def _remaining(told: Reported) -> list[str]:
    if any(row.life is not None for row in told.lives.roles):
        return []
    return ["No turn has ended yet."]


def _past(told: Reported) -> list[str]:
    if not told.audited.compactions:
        return ["No compaction in these logs."]
    return headlines(told.audited, told.summary)


def _replayed(told: Reported) -> list[str]:
    if told.found is None:
        return [f"No rule was replayed: {told.problem}"]
    return backtest_headlines(told.found)


def _switches(told: Reported) -> list[str]:
    if not told.roles:
        return []
    on = [row.role for row in told.roles if row.verdict == "on"]
    nothing = [row.role for row in told.roles if row.m_matters is False]
    rule = told.roles[0].rule
    return [
        f"{rule} is cheaper than the trigger in: {', '.join(on) or 'no role, as far as is shown'}.",
        f"m(i) changes nothing that shows in: {', '.join(nothing) or 'no role'}.",
    ]


def tables(told: Reported) -> dict[str, ReportTable]:
    """Return every table by the name of its file."""
    found = {"remaining": _lives_table(told)}
    if told.audited.compactions:
        found |= {"audit": groups_table(told.summary), "ahead": ahead_table(told.summary)}
    if told.found is not None:
        found |= {"rules": rules_table(told.found)}
    if told.roles:
        found |= {"roles": roles_table(told.roles)}
    return {name: table for name, table in found.items() if table.data}


def figures(told: Reported) -> Iterator[tuple[str, str, Figure]]:
    """Yield every picture that can be drawn: name of its file, what it shows, and itself."""
    ended = [row for row in told.lives.roles if row.life is not None]
    if ended:
        shows = (
            "Expected remaining tool calls m(i) by role with 90% bands, and the break-even: what "
            "lies above it, compacting pays for on average."
        )
        yield "remaining", shows, plot_remaining(ended[:MOST_PANELS])
    if any(row.share_paid is not None for row in told.summary.ahead["requests"]):
        shows = "Share of past compactions that paid, by the requests that were ahead of them."
        yield "crossing", shows, plot_crossing(told.summary)
    if told.found is not None:
        shows = "Every rule's bill against the trigger's, cheapest first."
        yield "costs", shows, plot_costs(told.found)
    if told.sequences is not None:
        shows = "Contexts of the sessions that compacted most, request by request."
        limit = None if told.found is None else told.found.scenario.limit_tokens
        yield "contexts", shows, plot_contexts(told.sequences, limit_tokens=limit)


def _lives_table(told: Reported) -> ReportTable:
    return note_table(told.lives.roles, whole=told.lives.whole)


def told_lines(told: Reported) -> list[str]:
    """Return what was found, as sentences."""
    found = [period(told) + "."]
    for lines in (_remaining(told), _past(told), _replayed(told), _switches(told)):
        found += lines
    return found


def report_payload(told: Reported) -> dict[str, Any]:
    """Return all of it as plain JSON values."""
    backtested = (
        None
        if told.found is None
        else backtest_payload(told.found, by_role=told.roles, notes=told.notes)
    )
    return {
        "remaining": _lives_table(told).records(),
        "audit": audit_payload(told.audited, told.summary),
        "backtest": backtested,
        "problem": told.problem or None,
    }


def assumed(told: Reported) -> list[str]:
    """Return what has to be known before believing the figures."""
    later = [] if told.found is None else backtest_assumptions(told.found)
    return [*told.notes, *audit_assumptions(told.audited), *later]


def period(told: Reported) -> str:
    """Return what the report is of, in one line."""
    turns = sum(row.turns for row in told.lives.roles)
    line = f"{turns:,.0f} turns with a call, {len(told.audited.compactions):,} compactions"
    if told.sequences is None:
        return line
    known = told.sequences.at_seconds[told.sequences.at_seconds > 0]
    line += (
        f", {told.sequences.requests:,} requests in {len(set(told.sequences.session)):,} sessions"
    )
    if known.size:
        first, last = (datetime.fromtimestamp(float(at), UTC) for at in (known.min(), known.max()))
        line += f", {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    return line
