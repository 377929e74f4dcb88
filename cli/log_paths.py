"""Which logs a report reads: those named, else the usual folders while the ledger is empty."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from cli.ledger import has_turns, open_ledger
from cli.options import log_path
from cli.output import say
from compactuary.errors import InputError
from ledger.database import DB_VARIABLE, missing_file
from ledger.readers.discovery import usual_folders

__all__ = ["LogPaths", "paths_to_read"]


LogPaths: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(
        help="Log files or folders, of which nothing is kept. Default: the ledger, or the "
        "usual folders while it is empty.",
        show_default=False,
        parser=log_path,
        metavar="[PATHS]...",
    ),
]


def paths_to_read(paths: Sequence[Path] | None, db: str | None) -> list[Path]:
    """Return the logs to read; none means the ledger.

    Parameters
    ----------
    paths : sequence of Path or None
        What was named.
    db : str or None
        What ``--db`` gave.

    Raises
    ------
    InputError
        If both are given.
    """
    if paths:
        if db is not None:
            raise InputError(
                "logs are read beside a ledger, not into it",
                where="PATH, --db",
                value=f"{paths[0]}, {db}",
                remedy="Give one of them, or import the logs into the ledger first",
            )
        return list(paths)
    if db is not None or os.environ.get(DB_VARIABLE):
        return []
    found = usual_folders()
    if not found:
        return []
    why = "no ledger yet"
    if missing_file() is None:
        with open_ledger(None) as engine:
            if has_turns(engine):
                return []
        why = "the ledger is empty"
    say(f"{why}, so logs are read: {', '.join(map(str, found))}")
    return found
