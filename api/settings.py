"""Settings of the service, from the environment or from ``compactuary serve``."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from api.limits import Limits, limits_of
from api.modes import MODES_VARIABLE, Modes, modes_of
from compactuary.errors import InputError
from ledger.database import DB_VARIABLE

__all__ = [
    "DEFAULT_PORT",
    "LOG_DURABILITY_VARIABLE",
    "LOG_QUEUE_VARIABLE",
    "LOG_VARIABLE",
    "METRICS_VARIABLE",
    "REFRESH_VARIABLE",
    "TRACES_VARIABLE",
    "Durability",
    "Settings",
    "seconds_of",
]

DEFAULT_PORT = 8338
REFRESH_VARIABLE = "COMPACTUARY_REFRESH_SECONDS"
DEFAULT_REFRESH_SECONDS = 0.5
LOG_VARIABLE = "COMPACTUARY_LOG"
LOG_QUEUE_VARIABLE = "COMPACTUARY_LOG_QUEUE"
LOG_DURABILITY_VARIABLE = "COMPACTUARY_LOG_DURABILITY"
METRICS_VARIABLE = "COMPACTUARY_METRICS_DIR"
TRACES_VARIABLE = "COMPACTUARY_TRACES"
#: Where OpenTelemetry itself is told who collects traces.
_COLLECTOR_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
DEFAULT_LOG_QUEUE = 10_000
# About 700 bytes each.
_LONGEST_QUEUE = 1_000_000

Durability = Literal["drop", "block"]


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
    log : bool
        Whether decisions are logged in the ledger.
    log_queue : int
        Decisions that may wait to be written.
    log_durability : {'drop', 'block'}
        Whether a full queue loses its oldest decisions, or answers wait for room.
    modes : Modes
        For which roles answers are enforced, shadowed or off.
    limits : Limits
        How large a body may be, and how often one caller may ask.
    metrics_dir : str or None
        Folder through which workers show each other their metrics; None where there is but one.
    traces : bool or None
        Whether requests and refreshes are traced with OpenTelemetry; None is where its own
        variables name a collector and it is installed.
    """

    db: str | None = None
    refresh_seconds: float = DEFAULT_REFRESH_SECONDS
    log: bool = True
    log_queue: int = DEFAULT_LOG_QUEUE
    log_durability: Durability = "drop"
    modes: Modes = field(default_factory=Modes)
    limits: Limits = field(default_factory=Limits)
    metrics_dir: str | None = None
    traces: bool | None = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Read ``COMPACTUARY_DB`` and the other variables that docs/api.md lists.

        Raises
        ------
        InputError
            Naming the variable, if the seconds are no positive number, the log is neither on nor
            off, its queue no whole number from 1 on, its durability or a mode unknown, or a limit
            no number.
        """
        given = environment.get(REFRESH_VARIABLE)
        seconds = seconds_of(given, REFRESH_VARIABLE) if given else DEFAULT_REFRESH_SECONDS
        log = _one_of(("on", "off"), environment.get(LOG_VARIABLE), LOG_VARIABLE)
        durability: Durability = _one_of(
            get_args(Durability), environment.get(LOG_DURABILITY_VARIABLE), LOG_DURABILITY_VARIABLE
        )
        queue = _rows_of(environment.get(LOG_QUEUE_VARIABLE))
        modes = modes_of(environment.get(MODES_VARIABLE))
        traces = _one_of(("auto", "on", "off"), environment.get(TRACES_VARIABLE), TRACES_VARIABLE)
        collected = any(environment.get(name) for name in _COLLECTOR_VARIABLES)
        return cls(
            environment.get(DB_VARIABLE),
            seconds,
            log == "on",
            queue,
            durability,
            modes,
            limits_of(environment),
            environment.get(METRICS_VARIABLE) or None,
            (None if collected else False) if traces == "auto" else traces == "on",
        )


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


def _one_of(known: tuple[Any, ...], given: str | None, where: str) -> Any:
    """Return what was given, or the first of what is known where nothing was."""
    if given and given not in known:
        remedy = f"Set it to {' or '.join(known)}."
        raise InputError("is not known", where=where, value=given, remedy=remedy)
    return given or known[0]


def _rows_of(given: str | None) -> int:
    if not given:
        return DEFAULT_LOG_QUEUE
    if not (given.isascii() and given.isdecimal()) or not 1 <= int(given[:9]) <= _LONGEST_QUEUE:
        raise InputError(
            f"not a whole number from 1 to {_LONGEST_QUEUE:,}",
            where=LOG_QUEUE_VARIABLE,
            value=given,
            remedy=f"Set it to decisions that may wait, such as {DEFAULT_LOG_QUEUE}.",
        )
    return int(given)
