"""Settings of the service, from the environment or from ``compactuary serve``."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from compactuary.errors import InputError
from ledger.database import DB_VARIABLE

__all__ = ["DEFAULT_PORT", "REFRESH_VARIABLE", "Settings", "seconds_of"]

DEFAULT_PORT = 8338
REFRESH_VARIABLE = "COMPACTUARY_REFRESH_SECONDS"
DEFAULT_REFRESH_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker of the service needs to know.

    Parameters
    ----------
    db : str or None
        URL or path of the ledger; None is the platform's data folder.
    refresh_seconds : float
        How often a worker looks whether the ledger moved. A turn recorded through any worker is
        in every worker's answers after this time and that of one refresh.
    """

    db: str | None = None
    refresh_seconds: float = DEFAULT_REFRESH_SECONDS

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read ``COMPACTUARY_DB`` and ``COMPACTUARY_REFRESH_SECONDS``.

        Raises
        ------
        InputError
            If the seconds are no positive number.
        """
        given = environment.get(REFRESH_VARIABLE)
        seconds = seconds_of(given, REFRESH_VARIABLE) if given else DEFAULT_REFRESH_SECONDS
        return cls(environment.get(DB_VARIABLE), seconds)


def seconds_of(given: str, where: str) -> float:
    """Return the seconds between two looks at the ledger.

    Raises
    ------
    InputError
        Naming ``where``, if they are no positive number up to 3600.
    """
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise InputError(
            "not a number of seconds up to 3600",
            where=where,
            value=given,
            remedy="Set it to a positive number such as 0.5.",
        )
    return seconds
