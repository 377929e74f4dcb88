"""Findings: sentences, tables and what was assumed, printed in the form that is asked for."""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill

from cli.report import ReportFormat
from estimator.report_table import ReportTable, as_text, plain_text, write

__all__ = ["print_findings"]

_LINE = 79


def print_findings(
    told: Sequence[str],
    tables: Sequence[ReportTable],
    assumed: Sequence[str],
    how: ReportFormat,
) -> None:
    """Print text, or a form of tables whose first caption holds all that is told.

    Parameters
    ----------
    told, assumed : sequence of str
        Sentences ahead of the tables, and behind them.
    tables : sequence of ReportTable
        At least one.
    how : ReportFormat
        Text, Markdown, LaTeX or HTML.
    """
    lines = [plain_text(line) for line in told]
    notes = [plain_text(line) for line in assumed]
    if how is not ReportFormat.TEXT:
        caption = " ".join([*lines, tables[0].caption, "Assumed:", *notes])
        for table in (replace(tables[0], caption=caption), *tables[1:]):
            sys.stdout.write(write(table, how.value) + "\n")
        return
    columns = min(_LINE, shutil.get_terminal_size().columns)
    _write_lines(lines, columns, "")
    for table in tables:
        sys.stdout.write(f"\n{as_text(table, terminal=sys.stdout.isatty())}")
    sys.stdout.write("\nAssumed:\n")
    _write_lines(notes, columns, "- ")


def _write_lines(lines: Sequence[str], columns: int, mark: str) -> None:
    for line in lines:
        told = fill(
            line,
            columns,
            initial_indent=mark,
            subsequent_indent=" " * len(mark),
            break_on_hyphens=False,
        )
        sys.stdout.write(f"{told}\n")
