"""A report as one HTML file that needs nothing else: tables, pictures inline, fit for print."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from estimator.report_table import ReportTable, as_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Section", "as_page", "as_svg"]

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin-bottom: 0.3rem; text-wrap: balance; }
h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #bbb; }
p.when { color: #555; margin-top: 0; }
figure { margin: 1rem 0; }
figure div { overflow-x: auto; }
/* Smaller, nobody reads what stands in a picture: it scrolls as tables do. */
figure svg { display: block; max-width: 100%; min-width: 34rem; height: auto; }
figcaption, caption { color: #444; font-size: 0.85rem; text-align: left; }
div.wide { overflow-x: auto; margin: 1rem 0 1.6rem; container-type: inline-size; }
/* No wider than what is seen of the table, and seen wherever that is. */
caption { caption-side: bottom; padding-top: 0.4rem; position: sticky; left: 0;
  min-width: min(100cqw, 26rem); max-width: 100cqw; overflow-wrap: anywhere; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th { border-bottom: 1px solid #555; vertical-align: bottom; }
th, td { padding: 0.15rem 0.7rem 0.15rem 0; }
td { vertical-align: top; }
td[style*="right"] { white-space: nowrap; }
tbody + tbody { border-top: 1px solid #555; }
tr:hover td { background: #f2f6fa; }
@media print {
  body { font-size: 10pt; max-width: none; margin: 0; padding: 0; }
  h2, p { break-after: avoid; }
  figure, tr { break-inside: avoid; }
  figure div, div.wide { overflow: visible; container-type: normal; }
  figure svg { min-width: 0; max-height: 220mm; }
  table { font-size: 8pt; }
  caption { position: static; min-width: 26rem; max-width: none; }
  caption, li { break-inside: avoid; }
  thead { display: table-header-group; }
  /* A table leaves no few rows behind on a page, nor a few to the next. */
  tbody tr:nth-child(-n+3) { break-after: avoid; }
  tbody tr:nth-last-child(-n+3), tbody + tbody { break-before: avoid; }
  tr:hover td { background: none; }
}
@page { margin: 15mm; }
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report.

    Parameters
    ----------
    title : str
    told : sequence of str
        Sentences, one a paragraph.
    pictures : sequence of (str, Figure)
        With what each shows.
    tables : sequence of ReportTable
    """

    title: str
    told: Sequence[str] = ()
    pictures: "Sequence[tuple[str, Figure]]" = ()
    tables: Sequence[ReportTable] = ()


def as_page(title: str, when: str, sections: Sequence[Section], assumed: Sequence[str]) -> str:
    """Write the whole page.

    Parameters
    ----------
    title, when : str
        Heading, and the line below it.
    sections : sequence of Section
    assumed : sequence of str
        What has to be known before believing the figures.

    Returns
    -------
    str
        HTML in UTF-8 that loads nothing and runs nothing.
    """
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        # Nothing is ever loaded, whatever a name might try.
        (
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "style-src 'unsafe-inline'\">"
        ),
        f"<title>{html.escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        f"<h1>{html.escape(title)}</h1>",
        f'<p class="when">{html.escape(when)}</p>',
    ]
    for section in sections:
        lines += _section(section)
    lines += ["<h2>Assumed</h2>", "<ul>"]
    lines += [f"<li>{html.escape(line)}</li>" for line in assumed]
    lines += ["</ul>", "</body>", "</html>"]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield f"<h2>{html.escape(section.title)}</h2>"
    for line in section.told:
        yield f"<p>{html.escape(line)}</p>"
    for shows, figure in section.pictures:
        told = html.escape(shows)
        yield f'<figure role="img" aria-label="{told}"><div>{as_svg(figure)}'
        yield f"</div><figcaption>{told}</figcaption></figure>"
    for table in section.tables:
        yield f'<div class="wide">{as_html(table)}</div>'


def as_svg(figure: "Figure") -> str:
    """Return a picture as an SVG element: text stays text, and nothing tells who drew it when."""
    import matplotlib as mpl  # noqa: PLC0415 - slow, and only a page with pictures needs it

    target = StringIO()
    # The salt makes ids of clips the same in every run.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "compactuary"}):
        figure.savefig(target, format="svg", metadata={"Date": None})
    drawn = target.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    return re.sub(r"<metadata>.*?</metadata>\s*", "", drawn, flags=re.DOTALL).strip()
