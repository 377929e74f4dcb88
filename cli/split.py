"""``compactuary split``: whether a role's turns are really of several kinds."""

from typing import Annotated

import typer

from cli.options import AsJson, Db, From, SkipCorrupt
from cli.output import print_json
from cli.reading import open_report
from cli.report import ReportFormat, print_report
from compactuary.role_parts import SPLITS, role_parts
from estimator.splits import split, split_table

__all__ = ["split_command"]


def split_command(
    role: Annotated[str, typer.Argument(help="The role; without its project for --by project.")],
    by: Annotated[
        str, typer.Option(help=f"What tells the turns apart: {', '.join(SPLITS)}.")
    ] = SPLITS[0],
    db: Db = None,
    as_json: AsJson = False,
    how: Annotated[
        ReportFormat, typer.Option("--format", help="How to print.")
    ] = ReportFormat.TEXT,
    from_: From = None,
    skip_corrupt: SkipCorrupt = False,
) -> None:
    """Test by log-rank and Cox whether parts of a role deserve tables of their own.

    For a report, once: tested every day, some part will seem to differ.
    """
    if by not in SPLITS:
        raise typer.BadParameter(f"it is one of {', '.join(SPLITS)}", param_hint="--by")
    project = by == "project"
    with open_report(db, from_, role_by_project=project, skip_corrupt=skip_corrupt) as connection:
        parts = role_parts(connection, role, by)
    found = split(parts.histograms, by=by)
    report = split_table(found, role=role, unknown_turns=parts.unknown_turns)
    if not as_json and how is not ReportFormat.JSON:
        print_report(report, how)
        return
    print_json(
        {
            "role": role,
            "by": by,
            "pays": found.pays,
            "reason": found.reason,
            "chi2": found.chi2,
            "degrees_of_freedom": found.degrees_of_freedom,
            "p": found.p,
            "level": found.level,
            "late_entries": found.late_entries,
            "unknown_turns": parts.unknown_turns,
            "parts": report.records(),
        }
    )
