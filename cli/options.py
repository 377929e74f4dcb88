"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["AsJson", "Db", "ages_of"]

from compactuary.errors import InputError

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        help="Ledger: an SQLAlchemy URL or an SQLite file. Default: COMPACTUARY_DB, else a file in "
        "the platform's data folder.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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
