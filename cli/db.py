"""``compactuary db``: the ledger's schema."""

import sys

import typer

from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json
from ledger.database import reading, shown_url
from migrations.upgrade import revision_of, upgrade

__all__ = ["db_app"]

db_app = typer.Typer(help="Look after the ledger's schema.", no_args_is_help=True)


@db_app.callback()
def db_command() -> None:
    """Look after the ledger's schema."""


@db_app.command("upgrade")
def upgrade_command(db: Db = None, as_json: AsJson = False) -> None:
    """Make the ledger's tables, or bring them to this version's schema."""
    with open_ledger(db, check=False, make=True) as engine:
        upgrade(engine)
        with reading(engine) as connection:
            revision = revision_of(connection)
    where = shown_url(engine)
    if as_json:
        print_json({"ledger": where, "revision": revision})
    else:
        sys.stdout.write(f"{where} is at revision {revision}.\n")
