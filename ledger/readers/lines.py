"""Bytes of a log file, plain or gzip, as whole lines from an offset on."""

import codecs
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import orjson

from compactuary.errors import SourceError

__all__ = ["fingerprint", "open_log", "unreadable", "whole_lines"]

#: Beginning of a file that tells whether it is still the same file.
FINGERPRINT_BYTES = 1024


def open_log(path: Path) -> IO[bytes]:
    """Open a log for reading bytes; a ``.gz`` is decompressed on the way.

    Raises
    ------
    SourceError
        If the file can't be opened.
    """
    try:
        if path.suffix == ".gz":
            return cast("IO[bytes]", gzip.open(path, "rb"))
        return path.open("rb")
    except OSError as error:
        raise SourceError(
            "can't be opened",
            where=str(path),
            value=error.strerror,
            remedy="Check that the file is there and that you may read it.",
        ) from error


def whole_lines(path: Path, offset: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield each whole line with the offset just behind it, after decompression.

    A last line without its newline is whole if it is a JSON value by itself; else it is torn and
    left for the next time, when the rest of it has been written. A byte order mark is dropped.

    Parameters
    ----------
    path : Path
    offset : int, default 0
        Bytes to pass over, after decompression; the end of an earlier line.

    Raises
    ------
    SourceError
        If a gzip is truncated or damaged, or the file can't be read.
    """
    try:
        with open_log(path) as file:
            if offset:
                offset += _ending_behind(file, offset)
            for line in file:
                whole = line if offset else line.removeprefix(codecs.BOM_UTF8)
                offset += len(line)
                if line.endswith(b"\n") or _is_json(whole):
                    yield whole, offset
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception) -> SourceError:
    """Return the error that says why the bytes of a file can't be had."""
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return SourceError(
            "the gzip is truncated or damaged",
            where=str(path),
            value=str(error),
            remedy="Copy the file again; nothing of it was kept.",
        )
    return SourceError(
        "can't be read",
        where=str(path),
        value=str(error),
        remedy="Check the file and its disk.",
    )


def _ending_behind(file: IO[bytes], offset: int) -> int:
    """Go to an offset; pass over the newline of a line that was read before it had one."""
    file.seek(offset - 1)
    if file.read(1) == b"\n":
        return 0
    ending = file.readline()
    if ending.strip():
        file.seek(offset)
        return 0
    return len(ending)


def fingerprint(path: Path, length: int | None = None) -> str:
    """Return ``length:hash`` of the file's first bytes, :data:`FINGERPRINT_BYTES` at most."""
    size = FINGERPRINT_BYTES if length is None else length
    try:
        with open_log(path) as file:
            head = file.read(min(size, FINGERPRINT_BYTES))
    except (EOFError, zlib.error, OSError):
        return "0:unreadable"
    return f"{len(head)}:{hashlib.sha256(head).hexdigest()[:16]}"


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True
