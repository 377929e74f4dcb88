"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from compactuary.errors import InputError

__all__ = ["AsJson", "Db", "From", "SkipCorrupt", "ages_of", "log_path"]


def _ledger_named(given: str | None) -> str | None:
    """Refuse an empty name, as a variable is that nobody set: it is not the usual ledger."""
    if given == "":
        remedy = "Name a ledger, or leave the option out for the usual one"
        raise InputError("is empty", where="--db", value=given, remedy=remedy)
    return given


Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        callback=_ledger_named,
        help="Ledger: an SQLAlchemy URL or an SQLite file. Default: COMPACTUARY_DB, else a file in "
        "the platform's data folder.",
        show_default=False,
    ),
]


def log_path(given: str) -> Path:
    """Return the path of logs that a word names.

    Raises
    ------
    InputError
        If it is empty, as a variable is that nobody set: `Path` takes it for the current folder.
    """
    if not given:
        raise InputError(
            "is empty", where="PATH", value=given, remedy="Name a file or folder; . is this one"
        )
    return Path(given)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
From = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        help="Read this log file or folder instead of a ledger, and keep nothing of it; may be "
        "repeated.",
        show_default=False,
        parser=log_path,
        metavar="PATH",
    ),
]
SkipCorrupt = Annotated[
    bool, typer.Option("--skip-corrupt", help="Read on behind lines that are not JSON.")
]


def ages_of(text: str) -> tuple[int, ...]:
    """Return ages written like ``0,5,10``.

    Raises
    ------
    InputError
        If one of them is no non-negative integer.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = next((part for part in parts if not part.isdecimal()), None)
    if wrong is not None or not parts:
        raise InputError(
            "not a list of ages",
            where="--at",
            value=text,
            remedy="Write calls made so far, like 0,5,10,20,40.",
        )
    return tuple(int(part) for part in parts)
