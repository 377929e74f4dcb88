"""Opening the ledger: engines, pragmas, transactions, and database faults in plain words."""

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from platformdirs import user_data_path
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from compactuary.errors import InputError, LedgerError, MissingExtraError

__all__ = [
    "DB_VARIABLE",
    "connect",
    "database_url",
    "missing_file",
    "open_engine",
    "reading",
    "shown_url",
    "writing",
]

DB_VARIABLE = "COMPACTUARY_DB"
#: How long a writer waits for another one before it gives up.
BUSY_SECONDS = 30
#: Parameters of a URL that libpq takes and nobody else may see.
_SECRETS = ("password", "sslpassword")


def database_url(given: str | None = None) -> str:
    """Return the ledger's URL: what was given, else ``COMPACTUARY_DB``, else the data folder.

    Parameters
    ----------
    given : str, optional
        An SQLAlchemy URL, or the path of an SQLite file.
    """
    chosen = given or os.environ.get(DB_VARIABLE)
    if not chosen:
        return f"sqlite:///{user_data_path('compactuary', appauthor=False) / 'ledger.db'}"
    if "://" not in chosen:
        return f"sqlite:///{Path(chosen).expanduser().absolute()}"
    if chosen.startswith(("postgres://", "postgresql://")):
        return "postgresql+psycopg://" + chosen.split("://", 1)[1]
    return chosen


def missing_file(given: str | None = None) -> Path | None:
    """Return the SQLite file that a ledger would be in, if it is not there.

    Parameters
    ----------
    given : str, optional
        As `database_url` takes it.

    Returns
    -------
    Path or None
        None where there is a file, and for whatever is no file: a server, or a ledger in memory.
    """
    url = database_url(given)
    if not url.startswith("sqlite"):
        return None
    try:
        file = make_url(url).database
    except ArgumentError:
        return None
    # SQLite's own URIs name a file with parameters behind it.
    if not file or file == ":memory:" or file.startswith("file:") or Path(file).exists():
        return None
    return Path(file)


def open_engine(given: str | None = None) -> Engine:
    """Open the ledger's engine; the folder of an SQLite file is made if it is missing.

    Raises
    ------
    InputError
        If the URL is none.
    MissingExtraError
        If the URL asks for PostgreSQL and the driver is not installed.
    LedgerError
        If the folder can't be made.
    """
    url_text = database_url(given)
    try:
        url = make_url(url_text)
        if url.get_backend_name() == "sqlite":
            return _sqlite_engine(url_text, url.database)
        if url.get_backend_name() != "postgresql":
            raise _no_database(url_text)
        return create_engine(url, pool_pre_ping=True)
    except (ArgumentError, NoSuchModuleError) as error:
        raise _no_database(url_text) from error
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"the database {url_text.split(':', 1)[0]!r} needs a driver that is not installed",
            where="db",
            remedy='Install it with: pip install "compactuary[postgres]"',
        ) from error


def shown_url(engine: Engine) -> str:
    """Return the database's URL without its passwords, wherever in it they stand."""
    url = engine.url.difference_update_query(_SECRETS)
    return url.render_as_string(hide_password=True)


def _no_database(url: str) -> InputError:
    # What stands before the @ may be a password, even where the rest is no URL.
    head, at, tail = url.rpartition("@")
    return InputError(
        "not a database URL this project can open",
        where="db",
        value=f"{head.partition('://')[0]}://***@{tail}" if at else url,
        remedy="Use sqlite:///PATH or postgresql://USER@HOST/NAME.",
    )


def _sqlite_engine(url: str, file: str | None) -> Engine:
    if file and file != ":memory:" and not file.startswith("file:"):
        try:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(
                "the folder of the database can't be made",
                where=file,
                value=error.strerror,
                remedy="Name another place with --db or COMPACTUARY_DB.",
            ) from error
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    _close_left_over(engine)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _close_left_over(engine: Engine) -> None:
    """Close what comes back to a pool that was disposed of while the connection was in use.

    It would stay open until the garbage is collected, and while one is open, SQLite has all
    others of the process share its index of the log, which may have been taken away with the file.
    """

    def came_from(_connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        record.info["pool"] = weakref.ref(engine.pool)

    def came_back(connection: sqlite3.Connection | None, record: ConnectionPoolEntry) -> None:
        if connection is not None and record.info["pool"]() is not engine.pool:
            record.invalidate()

    event.listen(engine, "connect", came_from)
    event.listen(engine, "checkin", came_back)


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Python's own transaction handling would begin DEFERRED, and upgrade too late to wait.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000}")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA cache_size=-8000")
    try:
        cursor.execute("PRAGMA journal_mode=WAL")
    except sqlite3.OperationalError as error:
        # A read-only file can be read in whatever mode it is in.
        if "readonly" not in str(error):
            raise
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that writes; all of it lands, or nothing.

    Raises
    ------
    LedgerError
        If the database is locked, read-only, full, gone or without the ledger's tables.
    """
    with _plain_faults(engine), engine.connect() as connection:
        connection.execution_options(write=True)
        with connection.begin():
            yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that reads one consistent state."""
    with _plain_faults(engine), engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            # Its default lets every statement see a state of its own.
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


def connect(given: str | None = None) -> Engine:
    """Open the ledger and make sure that it can be reached."""
    engine = open_engine(given)
    with _plain_faults(engine), engine.connect():
        return engine


_FAULTS = (
    ("locked", "another process holds the database", "Wait for it to finish, then try again."),
    ("readonly", "the database is read-only", "Make the file and its folder writable."),
    ("read-only", "the database is read-only", "Use a role that may write."),
    ("disk is full", "the disk is full", "Free some space; nothing was half-written."),
    ("disk full", "the disk is full", "Free some space; nothing was half-written."),
    ("disk i/o", "the disk could not be read or written", "Check the disk and its free space."),
    ("no such table", "the ledger has no tables of this version", "Run: compactuary db upgrade"),
    ("no such column", "the ledger is of an older version", "Run: compactuary db upgrade"),
    ("does not exist", "the ledger has no tables of this version", "Run: compactuary db upgrade"),
    ("not a database", "the file is no SQLite database", "Name another file with --db."),
    ("unable to open", "the database file can't be opened", "Check the path and its rights."),
    ("malformed", "the database file is damaged", "Restore it from a backup."),
    (
        "connection",
        "the database can't be reached",
        "Check that it runs and that the URL is right.",
    ),
)


@contextmanager
def _plain_faults(engine: Engine) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        _forget_lost_file(str(error.orig), engine)
        raise _ledger_error(str(error.orig), engine) from error
    except SQLAlchemyError as error:
        raise _ledger_error(str(error), engine) from error


#: What SQLite says where the file is another one than when it was opened, or none any more.
_LOST = (
    "disk i/o",
    "not a database",
    "malformed",
    "unable to open",
    "readonly",
    # Of the empty file that is made where there is none, until the ledger is put in its place.
    "no such table",
)


def _forget_lost_file(message: str, engine: Engine) -> None:
    """Have the next transaction open the file anew: an open one stays lost though it is back."""
    if engine.dialect.name == "sqlite" and any(sign in message.lower() for sign in _LOST):
        engine.dispose()


def _ledger_error(message: str, engine: Engine) -> LedgerError:
    where = shown_url(engine)
    lowered = message.lower()
    for sign, problem, remedy in _FAULTS:
        if sign in lowered:
            return LedgerError(problem, where=where, remedy=remedy)
    first_line: Any = message.strip().splitlines()[0] if message.strip() else "no message"
    return LedgerError(
        "the database refused",
        where=where,
        value=first_line,
        remedy="Nothing was half-written; see the database's own log.",
    )
