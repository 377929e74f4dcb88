"""What a report reads: the ledger, or log files that ``--from`` names and nothing keeps."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from cli.ledger import open_ledger
from cli.no_logs import told_no_logs
from cli.output import say
from compactuary.errors import InputError
from ledger.database import reading

if TYPE_CHECKING:
    from compactuary.workers import PartReaders, Workers
    from ledger.importing import FileReport

__all__ = ["open_report"]


@contextmanager
def open_report(
    db: str | None,
    from_: Sequence[Path] | None,
    *,
    role_by_project: bool = False,
    skip_corrupt: bool = False,
    workers: "Workers | None" = None,
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
    workers : Workers, optional
        Who reads the logs; by default this process.

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
    options = {"role_by_project": role_by_project, "skip_corrupt": skip_corrupt}
    reports: list[FileReport] = []
    with _read_logs(from_, reports, workers, options) as url:
        _tell_skipped(reports)
        with open_ledger(url) as engine, reading(engine) as connection:
            yield connection


def _read_logs(
    paths: Sequence[Path],
    reports: "list[FileReport]",
    workers: "Workers | None",
    options: Mapping[str, bool],
) -> AbstractContextManager[str]:
    readers: PartReaders | None = workers
    if workers is None or workers.client is None:
        # A ledger needs no readers.
        from compactuary.log_ledger import log_ledger  # noqa: PLC0415
        from compactuary.log_processes import log_processes  # noqa: PLC0415

        readers = log_processes(paths)
    if readers is None:
        return log_ledger(paths, progress=_counter(reports, paths), **options)
    from compactuary.log_parts import log_parts_ledger  # noqa: PLC0415 - as above

    return log_parts_ledger(
        paths, readers, progress=_count_parts, reported=reports.append, **options
    )


def _count_parts(done: int, parts: int) -> None:
    if sys.stderr.isatty():
        told = f"reading logs {done:,}/{parts:,} parts" if done < parts else ""
        sys.stderr.write(f"\r{told:<40}\r")


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
    """Say what is not in the tables: unreadable lines, empty files, files that are no logs."""
    lines = [where for report in reports for where in report.skipped]
    if lines:
        say(f"skipped {len(lines):,} lines that are no records, first {lines[0]}")
    # Nothing was read before into a ledger of their own, so nothing is there that could be known.
    empty = [report.path for report in reports if report.outcome == "unchanged"]
    if empty:
        say(f"skipped {len(empty):,} empty files, first {empty[0]}")
    strange = [report.path for report in reports if report.outcome == "unrecognised"]
    if strange:
        say(told_no_logs(strange))
