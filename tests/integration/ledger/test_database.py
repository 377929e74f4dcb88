"""The engine's pool: what is open when the file is taken away does not stay open."""

import sqlite3

from ledger.database import open_engine


def _closed(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def test_a_connection_in_use_while_the_pool_is_disposed_of_is_closed_once_it_is_back(
    sqlite_ledger,
):
    engine = open_engine(sqlite_ledger.url.database)
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        engine.dispose()
        assert not _closed(raw)
    assert _closed(raw)
    with engine.connect() as connection:
        raw = connection.connection.dbapi_connection
    assert not _closed(raw), "one that nobody disposed of is kept for the next"
    engine.dispose()
