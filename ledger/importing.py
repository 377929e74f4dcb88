"""Log files → ledger: a file lands whole or not at all, and costs a stat when it is unchanged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, bindparam, select

from compactuary.errors import InputError, SourceError
from ledger.collector import collector_paused
from ledger.database import reading, writing
from ledger.formats import DOCUMENTS, EMPTY, format_of
from ledger.log_file import ImportOptions, LogFile
from ledger.readers.discovery import is_document, log_files
from ledger.readers.tables import KINDS
from ledger.recording import Recorded, record, record_each
from ledger.schema import threads
from ledger.sources import (
    Source,
    known_sources,
    refuse_replaced,
    refuse_unnameable,
    remember,
    stat_of,
    unchanged,
)
from ledger.upsert import upsert
from ledger.versions import lock_version

__all__ = ["FileReport", "ImportOptions", "import_logs"]

#: Events recorded at a time: enough to spread the cost of a statement, few enough to keep in hand.
BATCH_EVENTS = 4000
#: Bytes of small files that share a transaction: enough to spread the cost of a commit, few enough
#: that other writers need not wait long.
GROUP_BYTES = 16_000_000
UNCHANGED = "unchanged"
AS_USUAL = ImportOptions()
_SAVED_STATE = select(threads.c.state).where(threads.c.thread_id == bindparam("thread_id"))


@dataclass(frozen=True, slots=True)
class FileReport:
    """What became of one file: ``read``, ``unchanged``, ``unrecognised`` or ``refused``."""

    path: Path
    outcome: str
    recorded: Recorded = field(default_factory=Recorded)
    lines: int = 0
    skipped: tuple[str, ...] = ()
    unknown_types: Mapping[str, int] = field(default_factory=dict)
    error: InputError | None = None


def import_logs(
    engine: Engine,
    paths: Sequence[Path],
    options: ImportOptions = AS_USUAL,
    *,
    progress: Callable[[FileReport], None] = lambda _: None,
) -> list[FileReport]:
    """Read logs into the ledger.

    A file that can't be read leaves the ledger as it was and does not stop the others. Small files
    share a transaction.

    Parameters
    ----------
    engine : Engine
    paths : sequence of Path
        Files, or folders to search.
    options : ImportOptions
    progress : callable
        Called with each file's report once its transaction is through.

    Returns
    -------
    list of FileReport
        In the order read.

    Raises
    ------
    SourceError
        If a path does not exist or a folder holds no log.
    LedgerError
        If the database fails; files reported before stay done.
    """
    files = log_files(paths)
    with reading(engine) as connection:
        known = known_sources(connection)
    reports: list[FileReport] = []
    named = {path.absolute() for path in paths}
    for group in _groups(_in_reading_order(files, known)):
        for report in _import_group(engine, group, options):
            if report.outcome == "unrecognised" and report.path in named:
                error = _unrecognised(report.path)
                report = replace(report, outcome="refused", error=error)  # noqa: PLW2901
            progress(report)
            # Much in a folder is JSON, and no log: nothing to tell of.
            if report.outcome != "unrecognised" or not is_document(report.path):
                reports.append(report)
    return reports


def _in_reading_order(
    files: Sequence[Path], known: Mapping[str, Source]
) -> Iterator[tuple[Path, str | None]]:
    """Yield files with their format: transcripts, then tables, each kind behind what it needs."""
    later: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in files:
        source = known.get(str(path))
        if source is not None and unchanged(path, source):
            yield path, UNCHANGED
            continue
        kind = format_of(path)
        if kind in later:
            later[kind].append(path)
        else:
            yield path, kind
    for kind, tables in later.items():
        for path in tables:
            yield path, kind


def _groups(
    files: Iterator[tuple[Path, str | None]],
) -> Iterator[list[tuple[Path, str | None]]]:
    """Gather files until there is enough to read for a transaction."""
    group: list[tuple[Path, str | None]] = []
    size = 0
    for path, kind in files:
        group.append((path, kind))
        if kind not in _NOTHING_TO_READ:
            with suppress(OSError):  # a file that is gone by now is refused when it is read
                size += path.stat().st_size
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


_NOTHING_TO_READ = (UNCHANGED, EMPTY, None)


def _unrecognised(path: Path) -> SourceError:
    return SourceError(
        "neither a log of a known agent nor a table of turns, requests or compactions",
        where=str(path),
        remedy="A table of turns needs the columns role and tool_calls.",
    )


def _import_group(
    engine: Engine, group: Sequence[tuple[Path, str | None]], options: ImportOptions
) -> list[FileReport]:
    to_read: dict[Path, str | None] = {}
    read: dict[Path, FileReport] = {}
    for path, kind in group:
        if kind not in _NOTHING_TO_READ:
            try:
                refuse_unnameable(path)
                to_read[path] = kind
            except InputError as error:
                read[path] = FileReport(path, "refused", error=error)
    if to_read:
        with collector_paused(), writing(engine) as connection:
            # Held until the commit, so that importers take turns on every database.
            lock_version(connection)
            transaction = _Transaction(
                connection, options, known_sources(connection, list(to_read))
            )
            for path, kind in to_read.items():
                transaction.take(path, kind or "")
            transaction.settle()
            read |= transaction.reports()
    return [
        read.get(path) or FileReport(path, UNCHANGED if kind else "unrecognised")
        for path, kind in group
    ]


@dataclass(slots=True)
class _Transaction:
    """Files read inside one transaction; those that fit in memory are recorded together."""

    connection: Connection
    options: ImportOptions
    known: Mapping[str, Source]
    done: list[FileReport] = field(default_factory=list)
    files: list[LogFile] = field(default_factory=list)
    #: Files read to their end and not yet recorded, and the threads as they leave them.
    waiting: list[LogFile] = field(default_factory=list)
    states: dict[str, dict[str, str]] = field(default_factory=dict)

    def take(self, path: Path, kind: str) -> None:
        """Read a file; if it has to be refused, nothing of it stays."""
        try:
            file = self._opened(path, kind)
            if file is not None:
                self._read(file)
                self.files.append(file)
        except InputError as error:
            self.done.append(FileReport(path, "refused", error=error))

    def settle(self) -> None:
        """Record the files that wait."""
        tellings = [file.events for file in self.waiting]
        for file, recorded in zip(
            self.waiting, record_each(self.connection, tellings), strict=True
        ):
            file.recorded += recorded
            file.events = []
        upsert(self.connection, threads, list(self.states.values()), replace=("state",))
        remember(self.connection, ((file.path, file.source()) for file in self.waiting))
        self.waiting, self.states = [], {}

    def reports(self) -> dict[Path, FileReport]:
        """Return a report of each file that was taken."""
        read = (
            FileReport(
                file.path,
                "read",
                file.recorded,
                file.lines,
                tuple(file.skipped),
                file.unknown_types,
            )
            for file in self.files
        )
        return {report.path: report for report in (*self.done, *read)}

    def _opened(self, path: Path, kind: str) -> LogFile | None:
        stat = stat_of(path)
        known = self.known.get(str(path))
        if known and unchanged(path, known):
            return None  # another importer was faster
        if known and not self.options.reread and kind not in DOCUMENTS:
            refuse_replaced(path, stat.st_size, known)
        if self.options.reread:
            known = None
        return LogFile(path, kind, stat.st_size, stat.st_mtime_ns, known)

    def _read(self, file: LogFile) -> None:
        batches = file.batches(self._saved_thread, self.options, BATCH_EVENTS)
        first = next(batches, None)
        if first is None and file.kind not in KINDS:
            self.waiting.append(file)
            self.states |= file.states
            if sum(len(waiting.events) for waiting in self.waiting) >= BATCH_EVENTS:
                self.settle()
            return
        # Too long, or a table, which is checked only as it is recorded.
        self.settle()
        savepoint = self.connection.begin_nested()
        try:
            for events in chain([first or []], batches):
                file.recorded += record(self.connection, events)
            self.waiting, self.states = [file], file.states
            self.settle()
            _refuse_unplaced(file)
        except InputError:
            self.waiting, self.states = [], {}
            savepoint.rollback()
            raise
        savepoint.commit()

    def _saved_thread(self, thread_id: str) -> Mapping[str, Any] | None:
        waiting = self.states.get(thread_id)
        if waiting is not None:
            state: str | None = waiting["state"]
        else:
            state = self.connection.scalar(_SAVED_STATE, {"thread_id": thread_id})
        return None if state is None else orjson.loads(state)


def _refuse_unplaced(file: LogFile) -> None:
    unplaced = file.recorded.unplaced
    if file.kind == "requests" and unplaced:
        raise SourceError(
            f"{unplaced} requests belong to turns the ledger does not know",
            where=str(file.path),
            remedy="Import the table of turns first, or together with this one.",
        )
