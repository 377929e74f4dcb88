"""Rows on a terminal, as CSV, as Markdown or as JSON."""

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

import orjson

__all__ = ["Format", "print_json", "print_rows", "say", "write_json_array"]


class Format(StrEnum):
    """How rows are printed."""

    TEXT = "text"
    CSV = "csv"
    MARKDOWN = "markdown"
    JSON = "json"
    JSONL = "jsonl"


def say(text: str) -> None:
    """Tell a person something, aside from the output itself."""
    sys.stderr.write(f"{text}\n")


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def write_json_array(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print rows as a JSON array, one row a line, without holding them all."""
    sys.stdout.write("[")
    for number, row in enumerate(rows):
        sys.stdout.write((",\n" if number else "\n") + orjson.dumps(dict(row)).decode())
    sys.stdout.write("\n]\n")


def print_rows(columns: Sequence[str], rows: Iterable[Mapping[str, Any]], how: Format) -> None:
    """Print rows in a format that needs no layout: CSV, Markdown, JSON or JSON lines."""
    if how is Format.JSON:
        write_json_array(rows)
    elif how is Format.JSONL:
        for row in rows:
            sys.stdout.write(orjson.dumps(dict(row)).decode() + "\n")
    elif how is Format.CSV:
        writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
    else:
        print_markdown(columns, ([_text(row.get(name)) for name in columns] for row in rows))


def print_markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a Markdown table."""
    sys.stdout.write("| " + " | ".join(columns) + " |\n")
    sys.stdout.write("|" + " --- |" * len(columns) + "\n")
    for row in rows:
        cells = (cell.replace("|", "\\|").replace("\n", " ") for cell in row)
        sys.stdout.write("| " + " | ".join(cells) + " |\n")


def _text(value: object) -> str:
    return "" if value is None else str(value)
