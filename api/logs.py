"""The process's own log: a line an event, as text or as JSON, on standard error."""

import json
import logging
import time
from collections.abc import Mapping
from typing import Any, Literal, get_args

from compactuary.errors import InputError

__all__ = [
    "LOG_FORMATS",
    "LOG_FORMAT_VARIABLE",
    "LOG_LEVELS",
    "LOG_LEVEL_VARIABLE",
    "JsonLines",
    "TextLines",
    "log_config",
]

LOG_FORMAT_VARIABLE = "COMPACTUARY_LOG_FORMAT"
LOG_LEVEL_VARIABLE = "COMPACTUARY_LOG_LEVEL"
LogFormat = Literal["text", "json"]
LOG_FORMATS: tuple[LogFormat, ...] = get_args(LogFormat)
LOG_LEVELS = ("warning", "info", "debug", "error")
#: What every record has; the rest is what the caller added.
_OF_EVERY_RECORD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "color_message"}


def _added(record: logging.LogRecord) -> dict[str, Any]:
    return {name: at for name, at in record.__dict__.items() if name not in _OF_EVERY_RECORD}


def _time(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, what was added, and any traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line."""
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_added(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """Time, level, message, and what was added as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and below it any traceback."""
        added = "".join(f" {name}={at!s}" for name, at in _added(record).items())
        line = f"{_time(record)} {record.levelname.lower()} {record.getMessage()}{added}"
        # A value must not forge a line of its own.
        line = line.replace("\n", "\\n").replace("\r", "\\r")
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def log_config(
    given_format: str | None, given_level: str | None, environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return what ``logging.config.dictConfig`` takes, for this process and every worker.

    Parameters
    ----------
    given_format : {'text', 'json'}, optional
        Default: ``COMPACTUARY_LOG_FORMAT``, else text.
    given_level : {'debug', 'info', 'warning', 'error'}, optional
        Of this service's events. Default: ``COMPACTUARY_LOG_LEVEL``, else warning. Libraries speak
        up from warnings on at most: the SQL that they would tell at lower levels holds values.

    Raises
    ------
    InputError
        Naming the option or the variable whose value is unknown.
    """
    form = _chosen(LOG_FORMATS, given_format, "--log-format", environment, LOG_FORMAT_VARIABLE)
    level = _chosen(LOG_LEVELS, given_level, "--log-level", environment, LOG_LEVEL_VARIABLE).upper()
    ours = __name__.rpartition(".")[0]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": JsonLines if form == "json" else TextLines}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": "ERROR" if level == "ERROR" else "WARNING"},
        "loggers": {ours: {"level": level}},
    }


def _chosen(
    known: tuple[str, ...],
    given: str | None,
    option: str,
    environment: Mapping[str, str],
    variable: str,
) -> str:
    where, chosen = (option, given) if given else (variable, environment.get(variable))
    if chosen and chosen not in known:
        remedy = f"Set it to {' or '.join(known)}."
        raise InputError("is not known", where=where, value=chosen, remedy=remedy)
    return chosen or known[0]
