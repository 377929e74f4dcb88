"""The log's lines, and who may write how much of it."""

import json
import logging
import logging.config
import sys

import pytest

from api.logs import JsonLines, TextLines, log_config
from compactuary.errors import InputError


def _record(message, *args, **added):
    record = logging.LogRecord("api.x", logging.WARNING, "f.py", 1, message, args, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    record.__dict__.update(added)
    return record


def test_a_json_line_holds_what_was_added():
    line = JsonLines().format(_record("took %d", 3, decision_id="d1", odd={1, 2} - {2}))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "logger": "api.x",
        "message": "took 3",
        "decision_id": "d1",
        "odd": "{1}",
    }


def test_a_text_line_does_too():
    line = TextLines().format(_record("took %d", 3, decision_id="d1"))
    assert line == "2023-11-14T22:13:20.250Z warning took 3 decision_id=d1"


@pytest.mark.parametrize("lines", [JsonLines(), TextLines()])
def test_no_value_can_forge_a_line(lines):
    line = lines.format(_record("x", role="a\n2023 warning all is well\r\n"))
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize("lines", [JsonLines(), TextLines()])
def test_a_traceback_is_told(lines):
    record = _record("failed")
    try:
        float("why")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert "ValueError: could not convert" in lines.format(record)


def test_options_come_before_the_environment():
    given = {"COMPACTUARY_LOG_FORMAT": "json", "COMPACTUARY_LOG_LEVEL": "debug"}
    config = log_config(None, None, given)
    assert config["formatters"]["lines"]["()"] is JsonLines
    assert config["loggers"]["api"]["level"] == "DEBUG"
    config = log_config("text", "error", given)
    assert config["formatters"]["lines"]["()"] is TextLines
    assert config["loggers"]["api"]["level"] == config["root"]["level"] == "ERROR"
    config = log_config(None, None, {})
    assert config["formatters"]["lines"]["()"] is TextLines
    assert config["loggers"]["api"]["level"] == "WARNING"


def test_at_debug_no_library_tells_its_values():
    config = log_config(None, "debug", {})
    assert config["root"]["level"] == "WARNING"
    assert set(config["loggers"]) == {"api"}


@pytest.mark.parametrize(
    ("given", "where", "value"),
    [
        ((("xml", None), {}), "--log-format", "xml"),
        (((None, "loud"), {}), "--log-level", "loud"),
        (((None, None), {"COMPACTUARY_LOG_FORMAT": "xml"}), "COMPACTUARY_LOG_FORMAT", "xml"),
        (((None, None), {"COMPACTUARY_LOG_LEVEL": "loud"}), "COMPACTUARY_LOG_LEVEL", "loud"),
    ],
)
def test_an_unknown_format_or_level_is_refused_by_name(given, where, value):
    options, environment = given
    with pytest.raises(InputError) as refused:
        log_config(*options, environment)
    assert (refused.value.where, refused.value.value) == (where, value)
