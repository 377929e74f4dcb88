"""``compactuary audit``: whether past compactions paid."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from backtest.audit import HORIZONS, Audit, Horizon, audit
from backtest.audit_payload import assumptions, audit_payload, compaction_payload
from backtest.audit_summary import AuditSummary, summarize
from backtest.audit_tables import ahead_table, compactions_table, groups_table, headlines
from backtest.compaction_cases import compaction_cases
from cli.findings import print_findings
from cli.log_paths import LogPaths, paths_to_read
from cli.options import AsJson, Db, SkipCorrupt
from cli.output import Format, print_json, print_rows, say
from cli.pricing import pricing_of
from cli.reading import open_report
from cli.report import ReportFormat
from cli.scheduler import Scheduler
from cli.weights import Weights
from compactuary.workers import workers
from estimator.report_table import write
from policy.sizes import GROWTH_TOKENS

__all__ = ["audit_command"]


def audit_command(
    paths: LogPaths = None,
    db: Db = None,
    as_json: AsJson = False,
    horizon: Annotated[
        str, typer.Option(help="Count what followed to the end of the 'turn' or the 'session'.")
    ] = HORIZONS[0],
    model: Annotated[
        str | None, typer.Option(help="Whose prices to use. Default: each compaction's own model.")
    ] = None,
    weight: Weights = None,
    each: Annotated[bool, typer.Option("--each", help="Print every compaction besides.")] = False,
    how: Annotated[
        ReportFormat, typer.Option("--format", help="How to print; CSV: one row a compaction.")
    ] = ReportFormat.TEXT,
    scheduler: Scheduler = None,
    skip_corrupt: SkipCorrupt = False,
) -> None:
    """Judge every past compaction: what it cost, what it saved, and whether it paid."""
    if horizon not in HORIZONS:
        raise typer.BadParameter(f"it is one of {', '.join(HORIZONS)}", param_hint="--horizon")
    pricing = pricing_of(model, weight)
    logs = paths_to_read(paths, db)
    with (
        workers(scheduler) as by,
        open_report(
            db, logs, role_by_project=bool(logs), skip_corrupt=skip_corrupt, workers=by
        ) as connection,
    ):
        cases = compaction_cases(connection, GROWTH_TOKENS, by_project=bool(logs))
    known: Horizon = "turn" if horizon == "turn" else "session"
    audited = audit(cases, pricing, known)
    if how in (ReportFormat.CSV, ReportFormat.JSONL) and not as_json:
        _print_rows(audited, how)
        return
    summary = summarize(audited)
    if as_json or how is ReportFormat.JSON:
        print_json(audit_payload(audited, summary))
    elif not audited.compactions:
        say(_nothing(logs))
    else:
        _print_report(audited, summary, how, each=each)


def _nothing(logs: Sequence[Path]) -> str:
    if logs:
        return "No compaction in these logs."
    return "No compaction in this ledger. Name logs: compactuary audit PATH"


def _print_rows(audited: Audit, how: ReportFormat) -> None:
    if how is ReportFormat.CSV:
        sys.stdout.write(write(compactions_table(audited), how.value))
        return
    rows = [compaction_payload(one) for one in audited.compactions]
    print_rows((), rows, Format(how.value))


def _print_report(audited: Audit, summary: AuditSummary, how: ReportFormat, *, each: bool) -> None:
    tables = [groups_table(summary), ahead_table(summary)]
    tables += [compactions_table(audited)] if each else []
    print_findings(headlines(audited, summary), tables, assumptions(audited), how)
