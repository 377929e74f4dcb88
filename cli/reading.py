"""What a report reads: the ledger, or log files that ``--from`` names and nothing keeps."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from cli.ledger import open_ledger
from cli.output import say
from compactuary.errors import InputError
from ledger.database import reading

if TYPE_CHECKING:
    from ledger.importing import FileReport

__all__ = ["open_report"]


@contextmanager
def open_report(
    db: str | None,
    from_: Sequence[Path] | None,
    *,
    role_by_project: bool = False,
    skip_corrupt: bool = False,
) -> Iterator[Connection]:
    """Open the ledger, or the logs as one, to read one consistent state.

    Parameters
    ----------
    db : str or None
        What ``--db`` gave.
    from_ : sequence of Path or None
        What ``--from`` gave; none or empty means the ledger.
    role_by_project, skip_corrupt : bool, default False
        Of the logs only, as ``import`` takes them.

    Raises
    ------
    InputError
        If both are given.
    LedgerError
        If the ledger can't be read.
    SourceError
        If a log can't be read.
    """
    if not from_:
        with open_ledger(db) as engine, reading(engine) as connection:
            yield connection
        return
    if db is not None:
        raise InputError(
            "logs are read beside a ledger, not into it",
            where="--from, --db",
            value=f"{from_[0]}, {db}",
            remedy="Give one of them, or import the logs into the ledger first",
        )
    from compactuary.log_ledger import log_ledger  # noqa: PLC0415 - a ledger needs no readers

    reports: list[FileReport] = []
    with log_ledger(
        from_,
        role_by_project=role_by_project,
        skip_corrupt=skip_corrupt,
        progress=_counter(reports, from_),
    ) as url:
        _tell_skipped(reports)
        with open_ledger(url) as engine, reading(engine) as connection:
            yield connection


def _counter(reports: "list[FileReport]", paths: Sequence[Path]) -> "Callable[[FileReport], None]":
    """Return what keeps each file's report, and counts the files on a terminal."""
    if not sys.stderr.isatty():
        return reports.append
    from ledger.readers.discovery import log_files  # noqa: PLC0415 - a ledger needs no readers

    files = len(log_files([path.expanduser() for path in paths]))

    def count(report: "FileReport") -> None:
        reports.append(report)
        # The last count wipes itself out: the table comes next.
        told = f"reading logs {len(reports):,}/{files:,}" if len(reports) < files else ""
        sys.stderr.write(f"\r{told:<40}\r")

    return count


def _tell_skipped(reports: "Sequence[FileReport]") -> None:
    """Say what is not in the tables: unreadable lines, and files of no known format."""
    lines = [where for report in reports for where in report.skipped]
    if lines:
        say(f"skipped {len(lines):,} lines that are no records, first {lines[0]}")
    strange = [report.path for report in reports if report.outcome == "unrecognised"]
    if strange:
        say(f"skipped {len(strange):,} files of an unknown format, first {strange[0]}")
