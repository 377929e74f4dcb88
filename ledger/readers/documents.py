"""JSON documents of a log that is read as a whole: one over many lines, or one a line."""

import codecs
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from compactuary.errors import SourceError
from ledger.readers.lines import open_log, unreadable

__all__ = ["documents"]


def documents(
    path: Path, broken: Callable[[Exception, bytes, int], None]
) -> Iterator[tuple[int, Any]]:
    """Yield each document with the number of its line, or 0 where it goes over many.

    A last line that is torn is left for the next time.

    Parameters
    ----------
    path : Path
    broken : callable
        Called with the error, the line and its number where a line is no JSON; raises, or passes
        over it.

    Raises
    ------
    SourceError
        If the file can't be read, or a document over many lines is no JSON.
    """
    try:
        with open_log(path) as file:
            first = file.readline().removeprefix(codecs.BOM_UTF8)
            try:
                value = orjson.loads(first)
            except orjson.JSONDecodeError:
                rest = file.read()
                if rest or first.endswith(b"\n"):
                    yield 0, _whole(path, first + rest)
                return
            yield 1, value
            for number, line in enumerate(file, 2):
                if not line.strip():
                    continue
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    if line.endswith(b"\n"):
                        broken(error, line, number)
                    continue
                yield number, value
    except (EOFError, OSError, zlib.error) as error:
        raise unreadable(path, error) from error


def _whole(path: Path, data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise SourceError(
            "not valid JSON, or half of a document",
            where=f"{path}:{error.lineno}",
            value=error.msg,
            remedy="Import it again once it has been written whole, or repair it.",
        ) from error
