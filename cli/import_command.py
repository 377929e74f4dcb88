"""``compactuary import``: logs into the ledger."""

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from cli.ledger import has_turns, open_ledger
from cli.no_logs import told_no_logs
from cli.options import AsJson, Db, log_path
from cli.output import print_json, say
from cli.stopped import Stopped
from compactuary.errors import SourceError
from ledger.importing import FileReport, ImportOptions, import_logs
from ledger.readers.discovery import USUAL_FOLDERS, log_files, usual_folders
from ledger.recording import Recorded

__all__ = ["import_command"]

#: Notes of one kind shown before the rest is only counted.
_SHOWN_NOTES = 10


def import_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files or folders: logs of Claude Code, Codex, OpenCode, Pi, Gemini CLI, "
            "tau-bench, SWE-agent, OpenTelemetry (OTLP JSON); tables of turns, requests or "
            "compactions (CSV, JSON lines); plain or .gz. Default: the usual folders.",
            show_default=False,
            parser=log_path,
            metavar="[PATHS]...",
        ),
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
    role_by: Annotated[
        str, typer.Option("--role-by", help="'agent', or 'project' to prefix the project's name.")
    ] = "agent",
    skip_corrupt: Annotated[
        bool, typer.Option("--skip-corrupt", help="Read on behind lines that are not JSON.")
    ] = False,
    reread: Annotated[
        bool, typer.Option("--reread", help="Read files from the start that shrank or changed.")
    ] = False,
    if_empty: Annotated[
        bool, typer.Option("--if-empty", help="Do nothing where the ledger has turns already.")
    ] = False,
) -> None:
    """Read agent logs into the ledger. Files read before cost nothing; grown files go on."""
    if role_by not in ("agent", "project"):
        raise typer.BadParameter("it is 'agent' or 'project'", param_hint="--role-by")
    chosen = _chosen(paths)
    options = ImportOptions(
        role_by_project=role_by == "project", skip_corrupt=skip_corrupt, reread=reread
    )
    with open_ledger(db, make=True) as engine:
        if if_empty and has_turns(engine):
            say("The ledger has turns already; nothing was imported.")
            reports: list[FileReport] = []
        else:
            reports = _imported(engine, chosen, options)
    _tell(reports, as_json=as_json)


def _imported(engine: Engine, chosen: Sequence[Path], options: ImportOptions) -> list[FileReport]:
    """Import, and return what became of every file; stopped, say what is kept."""
    reports: list[FileReport] = []
    try:
        with _progress(chosen) as advance:

            def report(one: FileReport) -> None:
                reports.append(one)
                advance(one)

            import_logs(engine, chosen, options, progress=report)
    except KeyboardInterrupt:
        raise Stopped(_kept(reports)) from None
    return reports


def _tell(reports: Sequence[FileReport], *, as_json: bool) -> None:
    """Print what was done; refused files make the command fail."""
    if as_json:
        print_json(_summary(reports))
    elif reports:
        sys.stdout.write(_sentence(reports) + "\n")
        _notes(reports)
    refused = [report for report in reports if report.error is not None]
    for report in refused:
        say(f"refused: {report.error}")
    if refused:
        kept = f"{len(refused)} of {_counted(len(reports), 'file')} refused"
        say(f"{kept}; nothing of {'it' if len(refused) == 1 else 'them'} was kept.")
        raise typer.Exit(1)


def _chosen(paths: Sequence[Path] | None) -> list[Path]:
    if paths:
        return list(paths)
    found = usual_folders()
    if not found:
        places = (f"~/{base}{f' or ${name}' if name else ''}" for name, base, _ in USUAL_FOLDERS)
        raise SourceError(
            f"no logs in the usual folders ({', '.join(places)})",
            where="PATH",
            remedy="Name the folder: compactuary import PATH.",
        )
    for folder in found:
        say(f"found {folder}")
    return found


def _progress(paths: Sequence[Path]) -> Any:
    """Return a progress bar over the files on a terminal, else nothing."""
    if not sys.stderr.isatty():
        return nullcontext(lambda _report: None)
    from cli.progress import file_progress  # noqa: PLC0415 - only a terminal needs rich

    return file_progress(len(log_files(paths)))


def _total(reports: Sequence[FileReport]) -> Recorded:
    return sum((report.recorded for report in reports), Recorded())


def _summary(reports: Sequence[FileReport]) -> dict[str, Any]:
    total = _total(reports)
    types: Counter[str] = Counter()
    for report in reports:
        types.update(report.unknown_types)
    return {
        "files": dict(Counter(report.outcome for report in reports)),
        "turns": total.turns,
        "requests": total.requests,
        "compactions": total.compactions,
        "left_out": total.left_out,
        "lines": sum(report.lines for report in reports),
        "skipped_lines": [where for report in reports for where in report.skipped],
        "unknown_line_types": dict(types),
        "refused": [str(report.error) for report in reports if report.error is not None],
    }


def _sentence(reports: Sequence[FileReport]) -> str:
    total = _total(reports)
    outcomes = Counter(report.outcome for report in reports)
    read = f"{_counted(outcomes['read'], 'file')} read, {outcomes['unchanged']:,} unchanged"
    return (
        f"{read}: {_counted(total.turns, 'new turn')}, {_counted(total.requests, 'request')}, "
        f"{_counted(total.compactions, 'compaction')}."
    )


def _kept(reports: Sequence[FileReport]) -> str:
    total, files = _total(reports), sum(report.outcome == "read" for report in reports)
    if not files:
        return "nothing was kept."
    kept = f"{_counted(files, 'file')} kept, with {_counted(total.turns, 'new turn')}"
    return f"{kept}; run it again for the rest."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _notes(reports: Sequence[FileReport]) -> None:
    summary = _summary(reports)
    if summary["left_out"]:
        left_out = _counted(summary["left_out"], "turn")
        say(f"left out {left_out} from before the time up to which the ledger was pruned")
    skipped = summary["skipped_lines"]
    for where in skipped[:_SHOWN_NOTES]:
        say(f"skipped a line that is no record: {where}")
    if len(skipped) > _SHOWN_NOTES:
        say(f"skipped {len(skipped) - _SHOWN_NOTES} more such lines")
    for name, count in summary["unknown_line_types"].items():
        say(f"skipped {_counted(count, 'line')} of the unknown type {name!r}")
    strange = [report.path for report in reports if report.outcome == "unrecognised"]
    if strange:
        say(told_no_logs(strange))
