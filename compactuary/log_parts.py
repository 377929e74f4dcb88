"""Logs read in parts by several workers into one ledger that is gone afterwards.

A part is a number of sessions with their sub-agents. Parts whose ledgers have an id in common, as
forks of a session have, are read again together, so that the whole is what one process reads.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Engine

from compactuary.log_ledger import LogPaths
from compactuary.workers import Workers
from ledger.database import open_engine, reading
from ledger.formats import format_of
from ledger.importing import FileReport, ImportOptions, import_logs
from ledger.merging import ledger_ids, merge_ledgers
from ledger.readers.discovery import ENDINGS, is_document, log_files
from ledger.readers.lines import open_log
from ledger.readers.tables import KINDS
from migrations.upgrade import upgrade

__all__ = ["log_parts_ledger"]

#: Parts for each worker: enough that one slow part does not keep the others waiting.
_PARTS = 2
#: Less than this is not worth a ledger of its own.
_LEAST_BYTES = 250_000
#: How many folders above a sub-agent's log may be named like its session.
_NESTED = 2
#: How far into a file its session is named.
_HEAD_BYTES = 64_000
#: Names of the session, and of messages that a fork of it begins with too. What else they match
#: joins more files than need be, and what they miss is found by the ids that parts have in common.
_TELLING = re.compile(rb'"(?:session_?[iI]d|uuid|id)"\s*:\s*"([^"\\]{8,})"')


@dataclass(frozen=True, slots=True)
class _Part:
    """Files to read into a ledger that is told as bytes: to migrate each takes longer."""

    files: tuple[Path, ...]
    options: ImportOptions
    empty: bytes


@dataclass(frozen=True, slots=True)
class _PartLedger:
    """A part's ledger as bytes, its ids, and what became of its files."""

    content: bytes
    ids: frozenset[int]
    reports: tuple[FileReport, ...]

    @property
    def folders(self) -> frozenset[Path]:
        """Folders of files with copies whose originals are not in this part."""
        return frozenset(report.path.parent for report in self.reports if report.recorded.unplaced)


@contextmanager
def log_parts_ledger(
    from_: LogPaths,
    workers: Workers,
    *,
    role_by_project: bool = False,
    skip_corrupt: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
    reported: Callable[[FileReport], None] = lambda _: None,
) -> Iterator[str]:
    """Read log files into a ledger that is gone afterwards, as `log_ledger` does.

    Parameters
    ----------
    from_ : path or sequence of paths
        Log files, or folders to search; the workers have to see them too.
    workers : Workers
    role_by_project, skip_corrupt : bool, default False
        As for `log_ledger`.
    progress : callable
        Called with how many parts were read, of how many.
    reported : callable
        Called with each file's report, in the order of the files.

    Yields
    ------
    str
        The ledger's URL.

    Raises
    ------
    SourceError
        If a path does not exist, or a file can't be read.
    """
    paths = [from_] if isinstance(from_, str | Path) else list(from_)
    named = [Path(path).expanduser() for path in paths]
    options = ImportOptions(role_by_project=role_by_project, skip_corrupt=skip_corrupt)
    files, strange = _readable(log_files(named), {path.absolute() for path in named})
    empty = _empty_ledger()
    parts = [_Part(own, options, empty) for own in _divided(files, workers.count)]
    order = {path: place for place, path in enumerate(files)}
    read = _apart(parts, list(workers.map(_read, parts, progress)), workers, order)
    reports = [report for part in read for report in part.reports]
    for report in [*strange, *sorted(reports, key=lambda one: order[one.path])]:
        if report.error is not None:
            raise report.error
        reported(report)
    with TemporaryDirectory(prefix="compactuary-") as folder:
        yield f"sqlite:///{_merged(Path(folder), read, empty)}"


def _readable(files: Sequence[Path], named: set[Path]) -> tuple[list[Path], list[FileReport]]:
    """Leave out what is no log, unless it was named: reading it then says what is wrong."""
    known = [path for path in files if path in named or format_of(path) is not None]
    kept = set(known)
    others = (path for path in files if path not in kept and not is_document(path))
    return known, [FileReport(path, "unrecognised") for path in others]


def _read(part: _Part) -> _PartLedger:
    """Read a part into a ledger of its own."""
    with TemporaryDirectory(prefix="compactuary-") as folder:
        file = Path(folder, "part.db")
        file.write_bytes(part.empty)
        engine = open_engine(str(file))
        try:
            reports = import_logs(engine, part.files, part.options)
            with reading(engine) as connection:
                ids = ledger_ids(connection)
        finally:
            _settle(engine)
        return _PartLedger(file.read_bytes(), ids, tuple(reports))


def _empty_ledger() -> bytes:
    with TemporaryDirectory(prefix="compactuary-") as folder:
        file = Path(folder, "empty.db")
        engine = open_engine(str(file))
        try:
            upgrade(engine)
        finally:
            _settle(engine)
        return file.read_bytes()


def _settle(engine: Engine) -> None:
    """Close a ledger so that all of it is in its file."""
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()


def _merged(folder: Path, read: Sequence[_PartLedger], empty: bytes) -> Path:
    target = folder / "ledger.db"
    target.write_bytes(empty)
    for number, part in enumerate(read):
        file = folder / f"part{number}.db"
        file.write_bytes(part.content)
        merge_ledgers(target, [file])
        file.unlink()
    return target


def _divided(files: Sequence[Path], workers: int) -> Iterator[tuple[Path, ...]]:
    """Yield parts of about the same size, each with whole sessions."""
    if any(format_of(path) in KINDS for path in files):
        # Rows of tables may belong to turns of any log.
        yield tuple(files)
        return
    sizes = [_size(path) for path in files]
    most = max(_LEAST_BYTES, sum(sizes) // (_PARTS * workers))
    gathered: list[int] = []
    for own in _sessions(files):
        gathered += own
        if sum(sizes[place] for place in gathered) >= most:
            yield tuple(files[place] for place in sorted(gathered))
            gathered = []
    if gathered:
        yield tuple(files[place] for place in sorted(gathered))


def _sessions(files: Sequence[Path]) -> list[list[int]]:
    """Put files together that name the same session, or lie in a session's own folder."""
    joined = _Joined(len(files))
    stems = {_stem(path): place for place, path in enumerate(files)}
    first: dict[str, int] = {}
    for place, path in enumerate(files):
        for folder in path.parents[:_NESTED]:
            joined.join(stems.get(str(folder), place), place)
        for name in _session_names(path):
            joined.join(first.setdefault(name, place), place)
    return joined.groups()


def _stem(path: Path) -> str:
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), "")
    return str(path).removesuffix(ending)


def _session_names(path: Path) -> set[str]:
    with suppress(OSError, EOFError), open_log(path) as file:
        return {
            name.decode("utf-8", "replace") for name in _TELLING.findall(file.read(_HEAD_BYTES))
        }
    return set()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # gone by now; reading it says so


def _apart(
    parts: Sequence[_Part], read: Sequence[_PartLedger], workers: Workers, order: Mapping[Path, int]
) -> list[_PartLedger]:
    """Return ledgers of parts that have nothing in common: those that have are read together."""
    joined = _Joined(len(parts))
    seen: dict[int, int] = {}
    for place, part in enumerate(read):
        for name in part.ids:
            joined.join(seen.setdefault(name, place), place)
        for other, told in enumerate(parts):
            if any(path.parent in part.folders for path in told.files):
                joined.join(place, other)
    groups = joined.groups()
    together = [own for own in groups if len(own) > 1]
    if not together:
        return list(read)
    again = [
        _Part(
            tuple(
                sorted(
                    (file for place in own for file in parts[place].files), key=order.__getitem__
                )
            ),
            parts[own[0]].options,
            parts[own[0]].empty,
        )
        for own in together
    ]
    alone = [own[0] for own in groups if len(own) == 1]
    return _apart(
        [*(parts[place] for place in alone), *again],
        [*(read[place] for place in alone), *workers.map(_read, again)],
        workers,
        order,
    )


class _Joined:
    """Places that belong together (union and find)."""

    def __init__(self, count: int) -> None:
        self._roots = list(range(count))

    def join(self, one: int, other: int) -> None:
        """Say that two places belong together."""
        low, high = sorted((self._root(one), self._root(other)))
        self._roots[high] = low

    def groups(self) -> list[list[int]]:
        """Return what belongs together, by the first place of each."""
        found: dict[int, list[int]] = {}
        for place in range(len(self._roots)):
            found.setdefault(self._root(place), []).append(place)
        return list(found.values())

    def _root(self, place: int) -> int:
        while self._roots[place] != place:
            self._roots[place] = self._roots[self._roots[place]]
            place = self._roots[place]
        return place
