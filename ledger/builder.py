"""Who builds: of several processes on one ledger, one at a time makes the next snapshot."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, func, select

from ledger.database import reading

__all__ = ["sole_builder"]

#: Names the lock among PostgreSQL's advisory ones: "compact" in ASCII.
_LOCK = int.from_bytes(b"compact", "big")


@contextmanager
def sole_builder(engine: Engine) -> Iterator[Connection | None]:
    """Open a transaction that reads, for the one process that may build; else yield None.

    On PostgreSQL an advisory lock decides, which ends with the transaction, whatever ends that. On
    SQLite everybody may: its processes share one machine, a build takes milliseconds, and the write
    lock lets the first one's be stored and the others find it.
    """
    with reading(engine) as connection:
        if engine.dialect.name != "postgresql":
            yield connection
            return
        alone = connection.scalar(select(func.pg_try_advisory_xact_lock(_LOCK)))
        yield connection if alone else None
