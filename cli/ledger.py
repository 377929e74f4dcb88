"""The ledger a command works on: opened, at this version's schema, and closed behind it."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine

from ledger.database import connect
from migrations.upgrade import ensure_current

__all__ = ["open_ledger"]


@contextmanager
def open_ledger(db: str | None, *, check: bool = True) -> Iterator[Engine]:
    """Open the ledger that ``--db``, the environment or the data folder names.

    Parameters
    ----------
    db : str or None
        What ``--db`` gave.
    check : bool
        Whether to make the tables of an empty database, and to refuse one of another version.

    Raises
    ------
    LedgerError
        If the database can't be reached, or is of another version.
    """
    engine = connect(db)
    try:
        if check:
            ensure_current(engine)
        yield engine
    finally:
        engine.dispose()
