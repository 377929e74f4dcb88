"""Logs read in parts by several workers into one ledger that is gone afterwards.

A part is a number of sessions with their sub-agents. Parts whose ledgers have an id in common, as
forks of a session have, are read again together, so that the whole is what one process reads.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from compactuary.log_ledger import LogPaths, make_tables
from compactuary.workers import PartReaders
from ledger.database import open_engine, reading
from ledger.formats import format_of
from ledger.importing import FileReport, ImportOptions, import_logs
from ledger.merging import ledger_ids, merge_ledgers
from ledger.readers.discovery import ENDINGS, is_document, log_files
from ledger.readers.lines import open_log
from ledger.readers.tables import KINDS

__all__ = ["log_parts_ledger"]

#: Parts for each worker: enough that one slow part does not keep the others waiting.
_PARTS = 2
#: Less than this is not worth a ledger of its own, and of more nobody hears for long.
_LEAST_BYTES = 250_000
_MOST_BYTES = 250_000_000
#: How many folders above a sub-agent's log may be named like its session.
_NESTED = 2
#: How far into a file its session is named.
_HEAD_BYTES = 64_000
#: Names of the session, and of messages that a fork of it begins with too. What else they match
#: joins more files than need be, and what they miss is found by the ids that parts have in common.
_TELLING = re.compile(rb'"(?:session_?[iI]d|uuid|id)"\s*:\s*"([^"\\]{8,})"')


@dataclass(frozen=True, slots=True)
class _Part:
    """Files to read into a ledger of their own, left in a folder, or sent back without one."""

    files: tuple[Path, ...]
    options: ImportOptions
    folder: Path | None


@dataclass(frozen=True, slots=True)
class _PartLedger:
    """A part's ledger as a file or its bytes, hashes of its ids, and what became of its files."""

    content: Path | bytes
    ids: NDArray[np.uint64]
    reports: tuple[FileReport, ...]

    @property
    def folders(self) -> frozenset[Path]:
        """Folders of files with copies whose originals are not in this part."""
        return frozenset(report.path.parent for report in self.reports if report.recorded.unplaced)


@contextmanager
def log_parts_ledger(
    from_: LogPaths,
    workers: PartReaders,
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
    workers : PartReaders
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
    order = {path: place for place, path in enumerate(files)}
    with TemporaryDirectory(prefix="compactuary-") as folder:
        own = Path(folder)
        parts = [
            _Part(some, options, own if workers.local else None)
            for some in _divided(files, workers.count)
        ]
        read = _apart(parts, list(workers.map(_read, parts, progress)), workers, order)
        reports = [report for part in read for report in part.reports]
        for report in [*strange, *sorted(reports, key=lambda one: order[one.path])]:
            if report.error is not None:
                raise report.error
            reported(report)
        yield f"sqlite:///{_merged(own, read)}"


def _readable(files: Sequence[Path], named: set[Path]) -> tuple[list[Path], list[FileReport]]:
    """Leave out what is no log, unless it was named: reading it then says what is wrong."""
    known = [path for path in files if path in named or format_of(path) is not None]
    kept = set(known)
    others = (path for path in files if path not in kept and not is_document(path))
    return known, [FileReport(path, "unrecognised") for path in others]


def _read(part: _Part) -> _PartLedger:
    """Read a part into a ledger of its own."""
    if part.folder is not None:
        return _read_into(Path(mkdtemp(dir=part.folder), "part.db"), part)
    with TemporaryDirectory(prefix="compactuary-") as folder:
        found = _read_into(file := Path(folder, "part.db"), part)
        return replace(found, content=file.read_bytes())


def _read_into(file: Path, part: _Part) -> _PartLedger:
    engine = open_engine(str(file))
    try:
        make_tables(engine)
        reports = import_logs(engine, part.files, part.options)
        with reading(engine) as connection:
            # As a set they would take ten times the memory, of all parts together.
            ids = np.fromiter(ledger_ids(connection), dtype=np.uint64)
    finally:
        _settle(engine)
    return _PartLedger(file, ids, tuple(reports))


def _settle(engine: Engine) -> None:
    """Close a ledger so that all of it is in its file."""
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()


def _merged(folder: Path, read: Sequence[_PartLedger]) -> Path:
    """Add up ledgers: the first one becomes that of all."""
    target, sent = folder / "ledger.db", folder / "part.db"
    if not read:
        _make_empty(target)
    for place, part in enumerate(read):
        file = sent if place else target
        if isinstance(part.content, bytes):
            file.write_bytes(part.content)
        else:
            part.content.replace(file)
        if place:
            merge_ledgers(target, [file])
    return target


def _make_empty(file: Path) -> None:
    engine = open_engine(str(file))
    try:
        make_tables(engine)
    finally:
        _settle(engine)


def _divided(files: Sequence[Path], workers: int) -> Iterator[tuple[Path, ...]]:
    """Yield parts of about the same size, each with whole sessions."""
    if any(format_of(path) in KINDS for path in files):
        # Rows of tables may belong to turns of any log.
        yield tuple(files)
        return
    sizes = [_size(path) for path in files]
    most = min(max(_LEAST_BYTES, sum(sizes) // (_PARTS * workers)), _MOST_BYTES)
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
    parts: Sequence[_Part],
    read: Sequence[_PartLedger],
    workers: PartReaders,
    order: Mapping[Path, int],
) -> list[_PartLedger]:
    """Return ledgers of parts that have nothing in common: those that have are read together."""
    joined = _Joined(len(parts))
    for one, other in _alike([part.ids for part in read]):
        joined.join(one, other)
    for place, part in enumerate(read):
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
            parts[own[0]].folder,
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


def _alike(ids: Sequence[NDArray[np.uint64]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of places that have an id in common; each place that shares one is in a pair."""
    if not ids:
        return
    owner = np.repeat(np.arange(len(ids)), [own.size for own in ids])
    every = np.concatenate(ids)
    order = np.argsort(every, kind="stable")
    every, owner = every[order], owner[order]
    same = every[1:] == every[:-1]
    pairs = np.unique(np.stack([owner[:-1][same], owner[1:][same]], axis=1), axis=0)
    yield from ((int(one), int(other)) for one, other in pairs)


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
