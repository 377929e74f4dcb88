import csv
from io import StringIO

import pytest

from compactuary.errors import InputError
from estimator.report_table import (
    FORMATS,
    Cell,
    ReportTable,
    as_csv,
    as_frame,
    as_html,
    as_latex,
    as_markdown,
    as_text,
    write,
)

NASTY = "a_b & <c>|$5%"


def small(**changes):
    given = {
        "columns": ("role", "turns", "m_0", "pays_0"),
        "data": ((NASTY, 12, 3.25, True), ("other", 1234, None, None)),
        "heads": ("role", "turns", "m(0)"),
        "cells": (
            (Cell(NASTY), Cell("12"), Cell("3.2", "(1–5)", bold=True)),
            (Cell("other"), Cell("1,234"), Cell("")),
        ),
        "caption": "Bold: above 17 & <more>, m ≥ 1.",
    }
    return ReportTable(**(given | changes))


def test_latex_is_escaped_and_bold():
    assert as_latex(small()) == (
        "\\begin{table}\n"
        "\\centering\n"
        "\\caption{Bold: above 17 \\& \\textless{}more\\textgreater{}, m $\\geq$ 1.}\n"
        "\\begin{tabular}{lrr}\n"
        "\\toprule\n"
        "role & turns & m(0) \\\\\n"
        "\\midrule\n"
        "a\\_b \\& \\textless{}c\\textgreater{}\\textbar{}\\$5\\% & 12 & "
        "\\textbf{3.2} (1\\textendash{}5) \\\\\n"
        "other & 1,234 &  \\\\\n"
        "\\bottomrule\n"
        "\\end{tabular}\n"
        "\\end{table}\n"
    )


@pytest.mark.parametrize(
    ("name", "written"),
    [
        # behind the end of a row a bracket would be an argument, and two hyphens a dash
        ("[x]", "{[}x{]}"),
        ("a---b", "a-{}-{}-b"),
        ("\\{~^}", r"\textbackslash{}\{\textasciitilde{}\textasciicircum{}\}"),
        ("#1\n2", r"\#1 2"),
        ("Größe", "Größe"),
    ],
)
def test_latex_keeps_names_what_they_are(name, written):
    table = small(data=((name, 1, 1.0, False),), cells=((Cell(name), Cell("1"), Cell("1")),))
    assert f"\n{written} & 1 & 1 \\\\\n" in as_latex(table)


def test_long_latex_tables_go_over_pages():
    rows = 41
    table = small(data=small().data[1:] * rows, cells=small().cells[1:] * rows, caption="long")
    text = as_latex(table)
    assert text.startswith("\\begin{longtable}{lrr}\n\\caption{long} \\\\\n\\toprule\n")
    assert text.endswith("\\bottomrule\n\\end{longtable}\n")
    assert text.count("\\endhead") == 1
    assert "tabular" not in text


def test_html_is_escaped_and_bold():
    left, right = 'style="text-align: left"', 'style="text-align: right"'
    assert as_html(small()) == (
        "<table>\n"
        "<caption>Bold: above 17 &amp; &lt;more&gt;, m ≥ 1.</caption>\n"
        "<thead>\n"
        f'<tr><th scope="col" {left}>role</th><th scope="col" {right}>turns</th>'
        f'<th scope="col" {right}>m(0)</th></tr>\n'
        "</thead>\n"
        "<tbody>\n"
        f"<tr><td {left}>a_b &amp; &lt;c&gt;|$5%</td><td {right}>12</td>"
        f"<td {right}><strong>3.2</strong> (1–5)</td></tr>\n"
        f"<tr><td {left}>other</td><td {right}>1,234</td><td {right}></td></tr>\n"
        "</tbody>\n"
        "</table>\n"
    )


def test_html_attributes_can_not_be_broken_out_of():
    quoted = '"><script>alert(1)</script>'
    table = small(
        heads=(quoted, "", ""),
        data=((quoted, 1, 1.0, False),),
        cells=((Cell(quoted, bold=True), Cell(quoted, quoted), Cell("")),),
        caption=quoted,
    )
    text = as_html(table)
    assert "<script" not in text
    assert text.count("&lt;script&gt;") == 5


def test_markdown_is_escaped_and_bold():
    assert as_markdown(small()) == (
        "| role | turns | m(0) |\n"
        "| --- | --: | --: |\n"
        "| a\\_b & \\<c\\>\\|$5% | 12 | **3.2** (1–5) |\n"
        "| other | 1,234 |  |\n"
        "\n"
        "Bold: above 17 & \\<more\\>, m ≥ 1.\n"
    )


def test_text_marks_bold_with_a_star():
    assert as_text(small(total=True)) == (
        "role           turns        m(0)\n"
        "--------------------------------\n"
        "a_b & <c>|$5%     12  *3.2 (1–5)\n"
        "--------------------------------\n"
        "other          1,234\n"
        "\n"
        "Bold (*): above 17 & <more>, m ≥ 1.\n"
    )


def test_a_terminal_shows_bold_in_columns_of_the_same_width():
    lines = as_text(small(), terminal=True).splitlines()
    assert lines[2] == "a_b & <c>|$5%     12  \x1b[1m3.2\x1b[0m (1–5)"
    assert lines[0] == "role           turns       m(0)"


def test_a_name_gives_no_orders_to_a_terminal():
    table = small(
        data=(("x", 1, 1.0, False),), cells=((Cell("a\x1b[31m\r\nb\x07"), Cell("1"), Cell("1")),)
    )
    assert as_text(table).splitlines()[2].startswith("a [31m b ")


def test_the_total_stands_below_a_rule():
    assert as_latex(small(total=True)).count("\\midrule") == 2
    assert as_html(small(total=True)).count("<tbody>") == 2


def test_csv_has_every_digit_and_every_column():
    rows = list(csv.reader(StringIO(as_csv(small()))))
    assert rows == [
        ["role", "turns", "m_0", "pays_0"],
        [NASTY, "12", "3.25", "True"],
        ["other", "1234", "", ""],
    ]


def test_frame_keeps_types_beside_missing_values():
    frame = as_frame(small())
    assert frame.dtypes.astype(str).to_dict() == {
        "role": "object",
        "turns": "int64",
        "m_0": "float64",
        "pays_0": "boolean",
    }
    assert frame.loc[0].tolist() == [NASTY, 12, 3.25, True]
    assert frame["m_0"].isna().tolist() == [False, True]
    assert frame.attrs["caption"] == small().caption


def test_an_empty_table_is_written_in_every_form():
    table = small(data=(), cells=())
    assert as_frame(table).shape == (0, 4)
    assert as_csv(table) == "role,turns,m_0,pays_0\n"
    for form in FORMATS:
        assert "role" in write(table, form)


def test_records_are_rows_by_name():
    assert small().records()[1] == {"role": "other", "turns": 1234, "m_0": None, "pays_0": None}


def test_unknown_forms_are_refused():
    with pytest.raises(InputError, match=r"format: no such form .*got 'docx'.*latex"):
        write(small(), "docx")


@pytest.mark.parametrize(
    "wrong", [{"data": (("x",),), "cells": small().cells[:1]}, {"cells": small().cells[:1]}]
)
def test_rows_must_match_columns(wrong):
    with pytest.raises(InputError, match="do not match"):
        small(**wrong)
