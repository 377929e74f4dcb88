"""Stored thresholds: on disk, so that a process that starts while the server is away has some."""

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.json_bytes import json_bytes
from compactuary.local_thresholds import LocalThresholds, thresholds_from

__all__ = ["Asked", "Held", "cache_folder", "file_of", "held_from", "load", "store", "touch"]

_FORMAT = 1
_LARGEST_BYTES = 1 << 23
_REMEDY = "Delete the file; it is made again"


class Asked(NamedTuple):
    """What thresholds were asked for.

    Parameters
    ----------
    role, model : str
    given : tuple of (str, value)
        What else the question said of a compaction, in the order of its names.
    """

    role: str
    model: str
    given: tuple[tuple[str, Any], ...] = ()


class Held(NamedTuple):
    """Thresholds as a client holds them.

    Parameters
    ----------
    thresholds : LocalThresholds
    document : mapping
        What they were read from.
    etag : str or None
    confirmed_at : float
        When the server last served or confirmed them, in seconds since 1970.
    mode : str
        The role's mode as the server last told it.
    """

    thresholds: LocalThresholds
    document: dict[str, Any]
    etag: str | None
    confirmed_at: float
    mode: str


def cache_folder() -> Path:
    """Return the folder for caches of this platform's user."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "compactuary" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "compactuary"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "compactuary"


def file_of(folder: Path, endpoint: Endpoint, asked: Asked) -> Path:
    """Return the file of some thresholds: one a service, key and question."""
    service = _digest([endpoint.url, endpoint.key])
    return folder / "thresholds" / service / f"{_digest(asked)}.json"


def held_from(
    document: Any, etag: str | None, mode: str, confirmed_at: float | None = None
) -> Held:
    """Return thresholds as they were served, confirmed now unless a time is given.

    Raises
    ------
    InputError
        They are no thresholds.
    """
    when = time.time() if confirmed_at is None else confirmed_at
    return Held(thresholds_from(document), document, etag, when, mode)


def load(file: Path, asked: Asked) -> Held | None:
    """Return what a file holds, None where there is no file.

    Raises
    ------
    InputError
        It holds anything else, such as half of what was written.
    OSError
        It can't be read.
    """
    try:
        with file.open("rb") as opened:
            text = opened.read(_LARGEST_BYTES)
            confirmed_at = os.fstat(opened.fileno()).st_mtime
    except FileNotFoundError:
        return None
    try:
        kept = json.loads(text)
        right = kept["format"] == _FORMAT and kept["asked"] == json.loads(json_bytes(asked))
        etag, mode, document = kept["etag"], kept["mode"], kept["document"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError("holds no thresholds", where=str(file), remedy=_REMEDY) from error
    if not right or not isinstance(mode, str) or not isinstance(etag, str | None):
        raise InputError("holds other thresholds", where=str(file), remedy=_REMEDY)
    return held_from(document, etag, mode, confirmed_at)


def store(file: Path, asked: Asked, held: Held) -> None:
    """Write thresholds, so that readers find the old ones or the new ones, whole.

    Raises
    ------
    OSError
        The folder can't be written.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = {"format": _FORMAT, "asked": asked, "etag": held.etag, "mode": held.mode}
    # Of this process alone: two clients may write the same thresholds at once.
    part = file.with_suffix(f".{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        part.write_bytes(json_bytes(kept | {"document": held.document}))
        os.utime(part, (held.confirmed_at, held.confirmed_at))
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def touch(file: Path, confirmed_at: float) -> None:
    """Note that the server confirmed what a file holds: its time is that of the confirmation.

    Raises
    ------
    OSError
        The file is gone, or can't be written.
    """
    os.utime(file, (confirmed_at, confirmed_at))


def _digest(value: Any) -> str:
    return hashlib.sha256(json_bytes(value)).hexdigest()[:32]
