"""``compactuary backup`` and ``compactuary restore``: copies of an SQLite ledger."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson, Db
from cli.output import print_json, say
from compactuary.errors import LedgerError
from ledger.backup import backup, ledger_file, restore, verified
from migrations.upgrade import head

__all__ = ["backup_command", "restore_command"]

Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]


def backup_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    force: Force = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Copy an SQLite ledger, while the service runs too.

    The copy is the ledger of one moment; it is verified before it gets its name.
    """
    ledger = ledger_file(db)
    revision = backup(ledger, file, force=force)
    size = file.stat().st_size
    if as_json:
        print_json({"ledger": str(ledger), "file": str(file), "revision": revision, "bytes": size})
    else:
        sys.stdout.write(f"{file}: {size:,} bytes, verified, at revision {revision}.\n")


def restore_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A copy that backup made.")],
    force: Force = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Put a copy in the place of an SQLite ledger that nobody has open.

    The copy is verified first, and the ledger is the old one or the new one, whatever happens.
    """
    ledger = ledger_file(db)
    revision = verified(file)
    if revision > head():
        raise LedgerError(
            f"the copy is at revision {revision}, this version knows {head()}",
            where=str(file),
            remedy="Use a newer compactuary.",
        )
    restore(file, ledger, force=force)
    if as_json:
        print_json({"ledger": str(ledger), "file": str(file), "revision": revision})
    else:
        sys.stdout.write(f"{ledger} is what {file} was, at revision {revision}.\n")
    if revision != head():
        say("It is of an older version. Run: compactuary db upgrade")
