"""``compactuary export``: the ledger's rows, in columns that ``import`` takes back."""

from enum import StrEnum
from typing import Annotated

import typer

from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import Format, print_rows
from ledger.database import reading
from ledger.exports import export_columns, export_rows

__all__ = ["export_command"]


class Kind(StrEnum):
    """What can be exported."""

    TURNS = "turns"
    REQUESTS = "requests"
    COMPACTIONS = "compactions"


def export_command(
    kind: Annotated[Kind, typer.Argument(help="What to export.")],
    db: Db = None,
    as_json: AsJson = False,
    how: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.CSV,
) -> None:
    """Print turns, requests or compactions.

    Times are UTC, and token classes never overlap.
    """
    chosen = Format.JSON if as_json else Format.CSV if how is Format.TEXT else how
    with open_ledger(db) as engine, reading(engine) as connection:
        print_rows(export_columns(kind), export_rows(connection, kind), chosen)
