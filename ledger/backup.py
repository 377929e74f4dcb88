"""Copies of an SQLite ledger: taken while it is in use, verified, and put in place whole."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from compactuary.errors import InputError, LedgerError
from ledger.database import BUSY_SECONDS, database_url

__all__ = ["backup", "ledger_file", "restore", "verified"]

_BESIDE = ("-wal", "-shm", "-journal")


def ledger_file(given: str | None) -> Path:
    """Return the file of the ledger that ``--db``, the environment or the data folder names.

    Raises
    ------
    InputError
        If it is no SQLite file: PostgreSQL has tools of its own.
    """
    url_text = database_url(given)
    try:
        url = make_url(url_text)
    except ArgumentError:
        url = None
    if url is None or url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        shown = url_text if url is None else url.render_as_string(hide_password=True)
        raise InputError(
            "only an SQLite file can be copied like this",
            where="--db",
            value=shown,
            remedy="For PostgreSQL use pg_dump --format=custom, and pg_restore.",
        )
    return Path(str(url.database))


def verified(file: Path) -> str:
    """Check every page and reference of a ledger's file, and return its revision.

    Raises
    ------
    InputError
        If the file is missing, damaged, or no ledger.
    """
    if not file.is_file():
        raise InputError("no such file", where=str(file), remedy="Name a file that backup made.")
    try:
        with closing(sqlite3.connect(file, timeout=BUSY_SECONDS)) as connection:
            damage = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
            dangling = connection.execute("PRAGMA foreign_key_check").fetchone()
            revision = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.DatabaseError as error:
        raise _no_ledger(file, str(error)) from error
    if damage != ["ok"] or dangling is not None or revision is None:
        raise _no_ledger(file, "; ".join(damage))
    return str(revision[0])


def _no_ledger(file: Path, told: str) -> InputError:
    return InputError(
        "the file is damaged or no ledger",
        where=str(file),
        value=told,
        remedy="Take another copy; nothing was changed.",
    )


def backup(ledger: Path, file: Path, *, force: bool = False) -> str:
    """Copy a ledger as it stands at one moment; others may write to it meanwhile.

    Parameters
    ----------
    ledger, file : Path
        From and to. The copy takes its place only when it is whole and verified.
    force : bool
        Whether it may replace a file.

    Returns
    -------
    str
        The revision of the copy.

    Raises
    ------
    InputError
        If the copy would replace a file and ``force`` is not set, or the ledger itself, or its
        folder does not exist.
    LedgerError
        If the ledger can't be read, or the copy not be written.
    """
    if not ledger.is_file():
        raise LedgerError(
            "there is no ledger", where=str(ledger), remedy="Name another one with --db."
        )
    if not file.parent.is_dir():
        raise InputError(
            "no such folder", where=str(file.parent), remedy="Make it, or name another file."
        )
    _refuse_existing(file, force=force)
    if file.exists() and file.samefile(ledger):
        raise InputError(
            "is the ledger itself", where="FILE", value=str(file), remedy="Name another file."
        )
    with _part_of(file) as part:
        _copy(ledger, part)
        revision = verified(part)
        _put(part, file, force=force)
    return revision


def restore(file: Path, ledger: Path, *, force: bool = False) -> None:
    """Put a copy in the place of a ledger that nobody has open.

    Parameters
    ----------
    file, ledger : Path
        From and to.
    force : bool
        Whether a ledger may be replaced.

    Raises
    ------
    InputError
        If there is a ledger and ``force`` is not set.
    LedgerError
        If another process has the ledger open, or it can't be replaced.
    """
    verified(file)
    _refuse_existing(ledger, force=force)
    if ledger.exists() and ledger.samefile(file):
        raise InputError(
            "is the ledger itself", where="FILE", value=str(file), remedy="Name a copy of it."
        )
    ledger.parent.mkdir(parents=True, exist_ok=True)
    with _part_of(ledger) as part:
        _copy(file, part)
        verified(part)
        with _nobody_else_in(ledger):
            for suffix in _BESIDE:
                ledger.with_name(ledger.name + suffix).unlink(missing_ok=True)
            _put(part, ledger, force=force)


def _refuse_existing(file: Path, *, force: bool) -> None:
    if file.exists() and not force:
        raise InputError(
            "the file exists",
            where=str(file),
            remedy="Name another one, or replace it with --force.",
        )


@contextmanager
def _part_of(file: Path) -> Iterator[Path]:
    """Yield a name beside a file for what is not whole yet, and leave nothing under it."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        yield part
    finally:
        for suffix in ("", *_BESIDE):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    """Copy page by page inside one read transaction, into a file that stands alone."""
    try:
        with (
            closing(sqlite3.connect(source, timeout=BUSY_SECONDS)) as read,
            closing(sqlite3.connect(target)) as written,
        ):
            read.backup(written)
            # The copy inherits WAL, and would need a second file beside it.
            written.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise LedgerError(
            "the ledger could not be copied",
            where=str(source),
            value=str(error),
            remedy="Check the disk's free space and rights; nothing was changed.",
        ) from error


def _put(part: Path, file: Path, *, force: bool) -> None:
    """Give a whole file its name in one step, for good."""
    if file.exists():
        shutil.copymode(file, part)
    with part.open("rb") as opened:
        os.fsync(opened.fileno())
    if force:
        part.replace(file)
    else:
        try:
            os.link(part, file)  # unlike a rename, it replaces nothing
        except FileExistsError:
            _refuse_existing(file, force=False)
        except OSError:  # a file system without links
            part.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _nobody_else_in(ledger: Path) -> Iterator[None]:
    """Hold a ledger alone: whoever had it open would go on with the file that is gone."""
    if not ledger.exists():
        yield
        return
    with closing(sqlite3.connect(ledger, timeout=0)) as connection:
        try:
            # Leaving WAL needs the whole file, and takes what lies beside it in.
            connection.execute("PRAGMA journal_mode=DELETE")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise LedgerError(
                "another process has the ledger open",
                where=str(ledger),
                value=str(error),
                remedy="Stop the service and other commands, then restore.",
            ) from error
        except sqlite3.DatabaseError:
            pass  # so damaged that it is no database any more: a copy is what it needs
        yield
