"""Reports: one table of numbers and cells, printed in the form that is asked for."""

import shutil
import sys
from enum import StrEnum
from textwrap import fill
from typing import TYPE_CHECKING

from cli.output import Format, print_rows
from estimator.report_table import Cell, ReportTable, plain_text, write

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["ReportFormat", "print_report"]

_WIDEST = 10_000
_LINE = 79


class ReportFormat(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"
    HTML = "html"
    JSON = "json"
    JSONL = "jsonl"


def print_report(table: ReportTable, how: ReportFormat) -> None:
    """Print a report; CSV and JSON hold its numbers in full, one row a line."""
    if how is ReportFormat.TEXT:
        _print_text(table)
    elif how in (ReportFormat.JSON, ReportFormat.JSONL):
        print_rows(table.columns, table.records(), Format(how.value))
    else:
        sys.stdout.write(write(table, how.value))


def _print_text(table: ReportTable) -> None:
    """Print a box with the caption's first sentence above it and the others below, one a line."""
    from rich.console import Console  # noqa: PLC0415 - every other form goes without rich
    from rich.table import Table  # noqa: PLC0415

    # As wide as the table needs: a narrow terminal wraps lines, where rich would cut digits off.
    console = Console(width=_WIDEST)
    # What can't be shown bold carries a star.
    star = "" if sys.stdout.isatty() or not _has_bold(table) else "*"
    box = Table()
    for place, head in enumerate(table.heads):
        box.add_column(
            head, justify="left" if place < table.text_columns else "right", no_wrap=True
        )
    for number, row in enumerate(table.cells, start=1):
        if table.total and number == len(table.cells):
            box.add_section()
        box.add_row(*(_styled(cell, star) for cell in row))
    caption = table.caption.replace("Bold:", "Bold (*):") if star else table.caption
    title, *notes = [f"{part.rstrip('.')}." for part in plain_text(caption).split(". ")]
    columns = min(max(console.measure(box).maximum, _LINE), shutil.get_terminal_size().columns)
    _write(title, columns)
    console.print(box)
    for note in notes:
        _write(note, columns)


def _write(sentence: str, columns: int) -> None:
    sys.stdout.write(fill(sentence, columns, break_on_hyphens=False) + "\n")


def _has_bold(table: ReportTable) -> bool:
    return any(cell.bold for row in table.cells for cell in row)


def _styled(cell: Cell, star: str) -> "Text":
    from rich.text import Text  # noqa: PLC0415

    text = Text(plain_text(cell.text), style="bold green" if cell.bold else "")
    if cell.bold:
        text = Text(star) + text
    return text + Text(f" {cell.detail}") if cell.detail else text
