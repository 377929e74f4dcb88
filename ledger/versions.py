"""The version row: one number that moves with every change an estimate can see."""

from sqlalchemy import Connection, Select, select, update

from compactuary.errors import LedgerError
from ledger.schema import ledger_version

__all__ = ["current_version", "lock_version", "set_version"]

_VERSION = select(ledger_version.c.version)


def current_version(connection: Connection) -> int:
    """Return the version of the ledger's estimates.

    Raises
    ------
    LedgerError
        If the ledger has no version row.
    """
    return _read(connection, _VERSION)


def lock_version(connection: Connection) -> int:
    """Return the version and hold its row: writers of turns take their turns.

    Two writers that close the same turn at once would otherwise both count it.

    Raises
    ------
    LedgerError
        If the ledger has no version row.
    """
    return _read(connection, _VERSION.with_for_update())


def set_version(connection: Connection, version: int) -> None:
    """Move the version."""
    connection.execute(update(ledger_version).values(version=version))


def _read(connection: Connection, statement: Select[int]) -> int:
    version = connection.scalar(statement)
    if version is None:
        raise LedgerError(
            "the ledger has no version row",
            where="ledger_version",
            remedy="Run: compactuary db upgrade",
        )
    return int(version)
