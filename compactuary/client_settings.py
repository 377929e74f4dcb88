"""Settings of a client: what a caller may set, with what it is otherwise."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from compactuary.endpoint import Endpoint, endpoint_of
from compactuary.errors import InputError
from compactuary.stored_thresholds import cache_folder

__all__ = ["ClientSettings", "settings_from"]


class ClientSettings(NamedTuple):
    """Everything a client goes by, checked.

    Parameters
    ----------
    endpoint : Endpoint
    budget_seconds : float
        How long `should_compact` may take in all.
    refresh_seconds : float
        How often thresholds are compared with the server's.
    folder : Path or None
        Where thresholds are kept on disk; None is not at all.
    queue_capacity : int
        Records that may wait to be delivered.
    exit_seconds : float
        How long the end of the process may wait for them.
    breaker_seconds : float
        How often a server that keeps failing is asked.
    """

    endpoint: Endpoint
    budget_seconds: float
    refresh_seconds: float
    folder: Path | None
    queue_capacity: int
    exit_seconds: float
    breaker_seconds: float


def settings_from(
    url: str | None,
    key: str | None,
    cache: bool | str | os.PathLike[str],
    numbers: dict[str, Any],
) -> ClientSettings:
    """Return checked settings.

    Parameters
    ----------
    cache : bool or path
        A folder; True is the platform's own, False is none.
    numbers : dict
        The other settings by name, all of them.

    Raises
    ------
    InputError
        Naming the setting that is wrong.
    """
    for name, value in numbers.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        least = 0 if name == "exit_seconds" else 1e-3
        if not number or not least <= value <= 1e6:
            remedy = f"Give a number from {least:g} to 1,000,000"
            raise InputError("is out of range", where=name, value=value, remedy=remedy)
    return ClientSettings(endpoint_of(url, key), folder=_folder(cache), **numbers)


def _folder(cache: bool | str | os.PathLike[str]) -> Path | None:
    if cache is False:
        return None
    if cache is not True:
        if not isinstance(cache, str | os.PathLike) or "\0" in str(cache):
            remedy = "Give a folder, True for the usual one or False for none"
            raise InputError("is no folder", where="cache", value=cache, remedy=remedy)
        return Path(cache)
    try:
        return cache_folder()
    except RuntimeError:
        return None  # nobody's home: thresholds are kept in memory only
