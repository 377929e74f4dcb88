"""What the ledger remembers of the files it read: how far, and how each looked then."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, select

from compactuary.errors import SourceError
from ledger.among import among
from ledger.readers.lines import fingerprint
from ledger.schema import sources
from ledger.upsert import upsert

__all__ = [
    "Source",
    "known_sources",
    "refuse_replaced",
    "refuse_unnameable",
    "remember",
    "stat_of",
    "unchanged",
]


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read: ``offset`` bytes and ``lines`` of it, counted after decompression."""

    size: int
    mtime_ns: int
    offset: int
    lines: int
    fingerprint: str


def known_sources(connection: Connection, paths: Sequence[Path] | None = None) -> dict[str, Source]:
    """Return the files read before by path: those named, or all."""
    wanted = select(sources)
    if paths is not None:
        wanted = wanted.where(among(connection, sources.c.path, map(str, paths)))
    return {row.path: _source(row) for row in connection.execute(wanted)}


def _source(row: Row[Any]) -> Source:
    return Source(row.size, row.mtime_ns, row.offset, row.lines, row.fingerprint)


def unchanged(path: Path, source: Source) -> bool:
    """Tell by size and time whether a file is as it was when it was read."""
    try:
        stat = path.stat()
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (source.size, source.mtime_ns)


def stat_of(path: Path) -> os.stat_result:
    """Return a file's size and time.

    Raises
    ------
    SourceError
        If the file is gone or out of reach.
    """
    try:
        return path.stat()
    except OSError as error:
        raise SourceError(
            "can't be read",
            where=str(path),
            value=error.strerror,
            remedy="Check that the file is there and that you may read it.",
        ) from error


def refuse_unnameable(path: Path) -> None:
    """Refuse a file whose name no database can keep.

    Raises
    ------
    SourceError
        If the name is not UTF-8.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            "its name is not UTF-8",
            where=os.fsencode(path).decode("utf-8", "replace"),
            remedy="Rename it.",
        ) from error


def refuse_replaced(path: Path, size: int, source: Source) -> None:
    """Refuse a file that is not the one that was read, grown.

    Raises
    ------
    SourceError
        If it shrank or begins with other bytes.
    """
    remedy = "If the new file is right, read it again from the beginning with --reread."
    if size < source.size:
        raise SourceError(
            f"the file shrank since it was read: it had {source.size:,} bytes",
            where=str(path),
            value=size,
            remedy=remedy,
        )
    length = int(source.fingerprint.split(":")[0])
    if fingerprint(path, length) != source.fingerprint:
        raise SourceError("the file was replaced by another one", where=str(path), remedy=remedy)


def remember(connection: Connection, files: Iterable[tuple[Path, Source]]) -> None:
    """Keep how far files have been read."""
    rows = [
        {
            "path": str(path),
            "size": source.size,
            "mtime_ns": source.mtime_ns,
            "offset": source.offset,
            "lines": source.lines,
            "fingerprint": source.fingerprint,
        }
        for path, source in files
    ]
    upsert(
        connection,
        sources,
        rows,
        replace=("size", "mtime_ns", "offset", "lines", "fingerprint"),
    )
