"""Which format a file has is told by what is in it, whatever it is called."""

import gzip
import json

import pytest

from ledger import formats
from ledger.formats import EMPTY, format_of
from tests.unit.ledger.test_codex import whole_rollout
from tests.unit.ledger.test_gemini_cli import whole_gemini
from tests.unit.ledger.test_opencode import whole_export
from tests.unit.ledger.test_otel import whole_trace, whole_traces
from tests.unit.ledger.test_pi import whole_session
from tests.unit.ledger.test_swe_agent import whole_trajectories, whole_trajectory
from tests.unit.ledger.test_tau_bench import whole_results
from tests.unit.ledger.transcript import Transcript

DOCUMENTS = {
    "gemini-cli": whole_gemini(),
    "opencode": whole_export(),
    "otel": whole_trace(),
    "swe-agent": whole_trajectory(),
    "tau-bench": whole_results(),
}
LINES = {
    "codex": whole_rollout(),
    "pi": whole_session(),
    "otel": whole_traces(),
    "swe-agent": whole_trajectories(),
    "tau-bench": whole_results(),
}


@pytest.mark.parametrize("name", ["log", "a.json", "a.jsonl", "a.traj", "a.json.gz"])
@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize("indent", [None, 2])
def test_one_document(tmp_path, name, kind, indent):
    data = json.dumps(DOCUMENTS[kind], indent=indent).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert format_of(path) == kind


@pytest.mark.parametrize("name", ["log", "a.json", "a.jsonl", "a.traj"])
@pytest.mark.parametrize("kind", LINES)
def test_lines(tmp_path, name, kind):
    path = tmp_path / name
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES[kind]))
    assert format_of(path) == kind


@pytest.mark.parametrize("line", range(len(LINES["pi"])))
def test_a_slice_of_a_session(tmp_path, line):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(LINES["pi"][line]) + "\n")
    kind = LINES["pi"][line]["type"]
    assert format_of(path) == (None if kind in ("custom", "label") else "pi")


def test_a_transcript_is_one_whatever_its_name(tmp_path):
    log = Transcript()
    log.user("Fix it.")
    path = tmp_path / "a.json"
    path.write_bytes(log.text)
    assert format_of(path) == "claude-code"


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        [[]],
        ["traj"],
        {"info": {"title": "API"}, "paths": {}},
        {"info": {"id": "ses_1"}, "messages": {}},
        {"sessionId": 7, "messages": [], "startTime": 0},
        {"type": "session"},
        {"type": "message", "message": "x"},
        {"type": "event_msg"},
        {"type": ["event_msg"], "payload": {}},
        {"traj": {"trajectory": 7, "info": {}}},
        {"resourceSpans": {}},
        7,
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_json_that_is_no_log(tmp_path, value, indent):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value, indent=indent))
    assert format_of(path) is None


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_half_a_document_is_still_of_its_kind(tmp_path, kind):
    data = json.dumps(DOCUMENTS[kind], indent=2)
    path = tmp_path / "a.json"
    path.write_text(data[: len(data) * 3 // 4])
    assert format_of(path) == kind


@pytest.mark.parametrize("text", ["{\n // a comment\n}\n", "{\n", "not\nJSON\n"])
def test_half_of_anything_else_is_nothing(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert format_of(path) is None


def test_nothing_yet(tmp_path):
    path = tmp_path / "a.json"
    path.touch()
    assert format_of(path) == EMPTY


def test_a_large_document_is_not_read_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "HEAD_BYTES", 100)
    monkeypatch.setattr(formats.orjson, "loads", None)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"rows": [1] * 1_000}))
    assert format_of(path) is None
