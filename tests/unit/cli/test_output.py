import csv
import io
import json

import pytest

from cli.options import ages_of
from cli.output import Format, print_rows, say, write_json_array
from compactuary.errors import InputError

COLUMNS = ["name", "calls"]
ROWS = [
    {"name": 'a "quoted", one', "calls": 1},
    {"name": "two\nlines | a pipe", "calls": None},
    {"name": "é 🦊", "calls": 0},
]


def printed(capsys, how, rows=ROWS):
    print_rows(COLUMNS, iter(rows), how)
    return capsys.readouterr().out


def test_csv_quotes_what_would_break_a_line(capsys):
    out = printed(capsys, Format.CSV)
    assert out.startswith('name,calls\n"a ""quoted"", one",1\n')
    read = list(csv.reader(io.StringIO(out)))
    assert read == [
        ["name", "calls"],
        ['a "quoted", one', "1"],
        ["two\nlines | a pipe", ""],
        ["é 🦊", "0"],
    ]


def test_markdown_escapes_pipes_and_keeps_a_row_on_a_line(capsys):
    assert printed(capsys, Format.MARKDOWN).splitlines() == [
        "| name | calls |",
        "| --- | --- |",
        '| a "quoted", one | 1 |',
        "| two lines \\| a pipe |  |",
        "| é 🦊 | 0 |",
    ]


def test_json_is_one_array_a_row_a_line(capsys):
    out = printed(capsys, Format.JSON)
    assert json.loads(out) == ROWS
    assert out.count("\n") == len(ROWS) + 2
    write_json_array([])
    assert json.loads(capsys.readouterr().out) == []


def test_json_lines_are_one_object_a_line(capsys):
    out = printed(capsys, Format.JSONL)
    assert [json.loads(line) for line in out.splitlines()] == ROWS


def test_what_is_said_to_a_person_stays_out_of_the_output(capsys):
    say("found it")
    assert capsys.readouterr() == ("", "found it\n")


@pytest.mark.parametrize(
    ("text", "ages"), [("0", (0,)), ("0,5, 10", (0, 5, 10)), ("40,0,", (40, 0))]
)
def test_ages_are_read_from_a_list(text, ages):
    assert ages_of(text) == ages


@pytest.mark.parametrize("text", ["", ",", "-1", "1.5", "x", "1;2", "²"])
def test_what_is_no_list_of_ages_is_refused(text):
    with pytest.raises(InputError) as refused:
        ages_of(text)
    assert (refused.value.where, refused.value.value) == ("--at", text)
