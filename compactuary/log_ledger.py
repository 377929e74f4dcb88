"""A ledger to read: one that exists, or log files read into one that is gone afterwards."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from sqlalchemy import Connection, Engine, insert

from compactuary.errors import InputError, LedgerError
from ledger.database import connect, missing_file, open_engine, reading, writing
from ledger.importing import FileReport, ImportOptions, import_logs
from ledger.schema import ledger_version, metadata
from migrations.upgrade import ensure_current, head

__all__ = ["Database", "LogPaths", "log_ledger", "make_tables", "open_ledger"]

Database: TypeAlias = str | Path | None
"""A ledger: an SQLAlchemy URL or an SQLite file; None for the usual one."""

LogPaths: TypeAlias = str | Path | Sequence[str | Path]
"""Log files, or folders to search."""


@contextmanager
def log_ledger(
    from_: LogPaths,
    *,
    role_by_project: bool = False,
    skip_corrupt: bool = False,
    progress: Callable[[FileReport], None] = lambda _: None,
) -> Iterator[str]:
    """Read log files into a ledger that is gone afterwards.

    Parameters
    ----------
    from_ : path or sequence of paths
        Log files, or folders to search.
    role_by_project : bool, default False
        Prefix roles with the folder the agent worked in, as in ``project/role``.
    skip_corrupt : bool, default False
        Read on behind lines that are not JSON.
    progress : callable
        Called with the report of each file that was read.

    Yields
    ------
    str
        The ledger's URL, for `db`.

    Raises
    ------
    SourceError
        If a path does not exist, or a file can't be read: an estimate from the others would
        not be that of these logs.
    """
    paths = [from_] if isinstance(from_, str | Path) else list(from_)
    options = ImportOptions(role_by_project=role_by_project, skip_corrupt=skip_corrupt)
    with TemporaryDirectory(prefix="compactuary-") as folder:
        url = f"sqlite:///{Path(folder, 'ledger.db')}"
        engine = open_engine(url)
        try:
            make_tables(engine)
            files = [Path(path).expanduser() for path in paths]
            reports = import_logs(engine, files, options, progress=progress)
        finally:
            engine.dispose()
        refused = [report.error for report in reports if report.error is not None]
        if refused:
            raise refused[0]
        yield url


def make_tables(engine: Engine) -> None:
    """Make the tables of an empty SQLite ledger as its migrations leave them.

    For a ledger that is gone afterwards: Alembic takes six times as long.
    """
    with writing(engine) as connection:
        metadata.create_all(connection)
        connection.execute(insert(ledger_version).values(id=1, version=0))
        connection.exec_driver_sql(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"
        )
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (head(),))


@contextmanager
def open_ledger(
    db: Database = None, from_: LogPaths | None = None, *, role_by_project: bool = False
) -> Iterator[Connection]:
    """Open a ledger, or log files as one, to read one consistent state.

    Parameters
    ----------
    db : str or Path, optional
        An SQLAlchemy URL or an SQLite file; by default ``COMPACTUARY_DB``, else the platform's
        data folder.
    from_ : path or sequence of paths, optional
        Log files or folders, instead of a ledger.
    role_by_project : bool, default False
        Of `from_` only: prefix roles with their project.

    Raises
    ------
    InputError
        If both are given.
    LedgerError
        If there is no such ledger, or it is of another version.
    SourceError
        If a log can't be read.
    """
    if from_ is not None:
        if db is not None:
            raise InputError(
                "a ledger and log files are named both",
                where="db, from_",
                value=(str(db), from_),
                remedy="Give one of them",
            )
        with log_ledger(from_, role_by_project=role_by_project) as url:
            with open_ledger(url) as connection:
                yield connection
            return
    _refuse_missing(None if db is None else str(db))
    engine = connect(None if db is None else str(db))
    try:
        ensure_current(engine)
        with reading(engine) as connection:
            yield connection
    finally:
        engine.dispose()


def _refuse_missing(db: str | None) -> None:
    """Refuse an SQLite file that is not there: whoever reads does not mean to make one."""
    if (file := missing_file(db)) is not None:
        raise LedgerError(
            "there is no ledger here",
            where=str(file),
            remedy="Name another one, import logs into it, or read logs directly with from_",
        )
