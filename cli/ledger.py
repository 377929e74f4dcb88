"""The ledger a command works on: opened, at this version's schema, and closed behind it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, select

from compactuary.errors import LedgerError
from ledger.database import DB_VARIABLE, connect, missing_file, open_engine, reading
from ledger.schema import turns
from migrations.upgrade import ensure_current

__all__ = ["has_turns", "open_ledger"]


@contextmanager
def open_ledger(db: str | None, *, check: bool = True, make: bool = False) -> Iterator[Engine]:
    """Open the ledger that ``--db``, the environment or the data folder names.

    Parameters
    ----------
    db : str or None
        What ``--db`` gave.
    check : bool
        Whether to make the tables of an empty database, and to refuse one of another version.
    make : bool, default False
        Whether to make a file that is not there. Without it one that was named is an error, and
        the usual one is taken for empty: what is read is held in memory, and no file is made.

    Raises
    ------
    LedgerError
        If the database can't be reached, is of another version, or is no file that is there.
    """
    engine = connect(db) if make or not _missing(db) else _in_memory()
    try:
        if check:
            ensure_current(engine)
        yield engine
    finally:
        engine.dispose()


def _missing(db: str | None) -> bool:
    """Say whether the usual ledger is not there.

    Raises
    ------
    LedgerError
        If another one is named, and not there: its name is mistyped, or nothing was imported.
    """
    file = missing_file(db)
    if file is not None and (db or os.environ.get(DB_VARIABLE)):
        raise LedgerError(
            "there is no such ledger",
            # Whole, not as a value: what is mistyped may stand at its end.
            where=f"--db {file}" if db else f"{DB_VARIABLE}={file}",
            remedy="Check the path, or make the ledger first: compactuary import PATH"
            + (f" --db {db}" if db else ""),
        )
    return file is not None


def _in_memory() -> Engine:
    from compactuary.log_ledger import make_tables  # noqa: PLC0415 - most ledgers are there

    engine = open_engine("sqlite://")
    make_tables(engine)
    return engine


def has_turns(engine: Engine) -> bool:
    """Say whether a ledger holds any turn."""
    with reading(engine) as connection:
        return connection.scalar(select(turns.c.turn_id).limit(1)) is not None
