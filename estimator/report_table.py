"""A table to be read: one value, written as text, CSV, Markdown, LaTeX, HTML or a pandas frame.

Printed forms show rounded cells with a caption; CSV and the frame carry the numbers behind them
in full. Written with the standard library: pandas' own writers need two more packages, escape no
caption, and keep bold type in a style sheet that mail, wikis and notebooks strip.
"""

import csv
import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING, TypeAlias

from compactuary.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "FORMATS",
    "Cell",
    "ReportTable",
    "Value",
    "as_csv",
    "as_frame",
    "as_html",
    "as_latex",
    "as_markdown",
    "as_text",
    "plain_text",
    "write",
]

Value: TypeAlias = str | int | float | bool | None

# What is longer goes over page breaks.
LATEX_PAGE_ROWS = 40
TERMINAL_BOLD = ("\x1b[1m", "\x1b[0m")


@dataclass(frozen=True, slots=True)
class Cell:
    """One printed cell.

    Parameters
    ----------
    text : str
        What it says.
    detail : str, default ''
        What follows the text, never bold: an interval, a number at risk.
    bold : bool, default False
        Whether the text stands out.
    """

    text: str
    detail: str = ""
    bold: bool = False


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table with its numbers, its printed cells and its caption.

    Parameters
    ----------
    columns : tuple of str
        Names of the data columns.
    data : tuple of tuple, shape (rows, columns)
        Numbers in full, None where there is none.
    heads : tuple of str
        Heads of the printed columns, which may be fewer.
    cells : tuple of tuple of Cell, shape (rows, heads)
        What is printed, row by row of `data`.
    caption : str
        What the table shows, in which unit, what bold means.
    text_columns : int, default 1
        Leading printed columns that hold names, aligned left.
    total : bool, default False
        Whether the last row sums up the others; a rule is drawn above it.

    Raises
    ------
    InputError
        If a row has not as many values as there are columns, or data and cells differ in rows.
    """

    columns: tuple[str, ...]
    data: tuple[tuple[Value, ...], ...]
    heads: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    caption: str
    text_columns: int = 1
    total: bool = False

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.data} <= {len(self.columns)}
        printed = {len(row) for row in self.cells} <= {len(self.heads)}
        if not (widths and printed and len(self.data) == len(self.cells)):
            raise InputError(
                "rows and columns do not match",
                where="data, cells",
                value=(len(self.data), len(self.cells)),
                remedy="Give every row one value a column",
            )

    def records(self) -> list[dict[str, Value]]:
        """Return the data as one dict a row, ready for JSON."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.data]


def as_text(table: ReportTable, *, terminal: bool = False) -> str:
    """Write aligned columns.

    Parameters
    ----------
    table : ReportTable
    terminal : bool, default False
        Whether bold can be shown as such; otherwise a star stands before the cell.

    Returns
    -------
    str
        Lines of text, the last one ended.
    """
    star = "" if terminal else "*"
    rows = [tuple(map(Cell, table.heads)), *table.cells]
    columns = zip(*([len(_plain(cell, star)) for cell in row] for row in rows), strict=True)
    widths = [max(lengths) for lengths in columns]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [_line(row, widths, table.text_columns, terminal=terminal) for row in rows]
    if table.total and len(table.cells) > 1:
        lines.insert(len(lines) - 1, rule)
    lines.insert(1, rule)
    caption = table.caption if terminal else table.caption.replace("Bold:", "Bold (*):")
    return "\n".join([*lines, "", fill(caption, max(len(rule), 79)), ""])


def as_csv(table: ReportTable) -> str:
    """Write the data in full precision, one line a row below the names of the columns."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.data)
    return text.getvalue()


def as_markdown(table: ReportTable) -> str:
    """Write a pipe table with the caption below it."""

    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    marks = ("---" if place < table.text_columns else "--:" for place in range(len(table.heads)))
    body = (row(_marked(cell, _markdown, "**{}**") for cell in cells) for cells in table.cells)
    lines = [row(map(_markdown, table.heads)), row(marks), *body, "", _markdown(table.caption)]
    return "\n".join(lines) + "\n"


def as_html(table: ReportTable) -> str:
    """Write a table element that needs no style sheet.

    Returns
    -------
    str
        Lines of HTML in UTF-8, the last one ended; a fragment, not a whole page.
    """

    def row(tag: str, texts: Iterable[str]) -> str:
        cells = []
        for place, text in enumerate(texts):
            side = "left" if place < table.text_columns else "right"
            cells.append(f'<{tag} style="text-align: {side}">{text}</{tag[:2]}>')
        return "<tr>" + "".join(cells) + "</tr>"

    body = [
        row("td", (_marked(cell, html.escape, "<strong>{}</strong>") for cell in cells))
        for cells in table.cells
    ]
    if table.total and len(body) > 1:
        body.insert(len(body) - 1, "</tbody>\n<tbody>")
    lines = [
        "<table>",
        f"<caption>{html.escape(table.caption)}</caption>",
        "<thead>",
        row('th scope="col"', map(html.escape, table.heads)),
        "</thead>",
        "<tbody>",
        *body,
        "</tbody>",
        "</table>",
    ]
    return "\n".join(lines) + "\n"


def as_latex(table: ReportTable) -> str:
    r"""Write a ``table``, or a ``longtable`` where it is longer than a page.

    Returns
    -------
    str
        Lines of LaTeX, the last one ended; needs the packages ``booktabs`` and, for long tables,
        ``longtable``.
    """
    head = " & ".join(map(_latex, table.heads)) + r" \\"
    body = [
        " & ".join(_marked(cell, _latex, r"\textbf{{{}}}") for cell in cells) + r" \\"
        for cells in table.cells
    ]
    if table.total and len(body) > 1:
        body.insert(len(body) - 1, r"\midrule")
    sides = "l" * table.text_columns + "r" * (len(table.heads) - table.text_columns)
    caption = rf"\caption{{{_latex(table.caption)}}}"
    if len(table.cells) > LATEX_PAGE_ROWS:
        opening = [rf"\begin{{longtable}}{{{sides}}}", caption + r" \\"]
        heading = [r"\toprule", head, r"\midrule", r"\endhead"]
        closing = [r"\bottomrule", r"\end{longtable}"]
    else:
        opening = [r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{sides}}}"]
        heading = [r"\toprule", head, r"\midrule"]
        closing = [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join([*opening, *heading, *body, *closing]) + "\n"


def as_frame(table: ReportTable) -> "DataFrame":
    """Give the data as a pandas frame, the caption in ``frame.attrs["caption"]``.

    Returns
    -------
    DataFrame
        Whole numbers and truths stay such where a row has none (``Int64``, ``boolean``).
    """
    from pandas import DataFrame, Series  # noqa: PLC0415 - every other form goes without pandas

    columns = zip(*table.data, strict=True) if table.data else ([] for _ in table.columns)
    frame = DataFrame(
        {
            name: Series(list(values), dtype=_dtype(values))
            for name, values in zip(table.columns, columns, strict=True)
        }
    )
    frame.attrs["caption"] = table.caption
    return frame


FORMATS: Mapping[str, Callable[[ReportTable], str]] = {
    "text": as_text,
    "csv": as_csv,
    "markdown": as_markdown,
    "latex": as_latex,
    "html": as_html,
}
"""The printed forms by name."""


def write(table: ReportTable, form: str) -> str:
    """Write a table in a form by its name.

    Parameters
    ----------
    table : ReportTable
    form : str
        One of `FORMATS`.

    Raises
    ------
    InputError
        If there is no such form.
    """
    if form not in FORMATS:
        raise InputError(
            "no such form of a table",
            where="format",
            value=form,
            remedy=f"Choose one of {', '.join(FORMATS)}",
        )
    return FORMATS[form](table)


def _plain(cell: Cell, star: str = "") -> str:
    text = (star if cell.bold else "") + cell.text + (f" {cell.detail}" if cell.detail else "")
    return plain_text(text)


def plain_text(text: str) -> str:
    """Put a space for what would end a line, or what a terminal would obey, in names from logs."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", text)


def _line(row: Sequence[Cell], widths: Sequence[int], left: int, *, terminal: bool) -> str:
    texts = []
    for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
        plain = _plain(cell, "" if terminal else "*")
        space = " " * (width - len(plain))
        if terminal and cell.bold:
            shown = len(_plain(Cell(cell.text)))
            plain = TERMINAL_BOLD[0] + plain[:shown] + TERMINAL_BOLD[1] + plain[shown:]
        texts.append(plain + space if place < left else space + plain)
    return "  ".join(texts).rstrip()


def _marked(cell: Cell, escape: Callable[[str], str], bold: str) -> str:
    text = escape(_plain(Cell(cell.text)))
    text = bold.format(text) if cell.bold else text
    return f"{text} {escape(cell.detail)}" if cell.detail else text


def _dtype(values: Sequence[Value]) -> str | None:
    """Keep whole numbers and truths what they are beside a missing value."""
    present = {type(value) for value in values if value is not None}
    if present == {bool}:
        return "boolean" if None in values else "bool"
    if present == {int}:
        return "Int64" if None in values else "int64"
    # A column without any value is one of numbers that nobody knows.
    return "float64" if present <= {int, float} else "object"


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", text)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        # Behind the end of a row a bracket would be its optional argument.
        "[": "{[}",
        "]": "{]}",
        "\N{EN DASH}": r"\textendash{}",
        "\N{MINUS SIGN}": "$-$",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
        "\N{RIGHTWARDS ARROW}": r"$\to$",
        "\N{GREEK SMALL LETTER TAU}": r"$\tau$",
        "\N{SUPERSCRIPT TWO}": r"$^2$",
        "\N{GREEK SMALL LETTER CHI}": r"$\chi$",
    }
)


def _latex(text: str) -> str:
    # Two hyphens in a row would become a dash.
    return re.sub(r"-(?=-)", "-{}", text.translate(_LATEX))
