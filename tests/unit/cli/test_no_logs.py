"""Files that are no logs: one sentence that counts them, the same from every command."""

import json

import pytest

from cli.app import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder with a table and two files that are no logs, a document among them."""
    monkeypatch.setenv("COMPACTUARY_DB", str(tmp_path / "ledger.db"))
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "turns.csv").write_text("turn_id,role,tool_calls\na,main,1\n", "utf-8")
    (logs / "x.json").write_text('{"a": 1}', "utf-8")
    (logs / "y.csv").write_text("a,b\n1,2\n", "utf-8")
    return logs


@pytest.mark.parametrize("words", [["import"], ["audit"], ["table", "--from"]])
def test_they_are_counted_with_the_first(folder, words, capsys):
    assert run([*words, str(folder)]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("skipped")]
    assert told == [f"skipped 2 files that are no logs, first {folder / 'x.json'}"]


@pytest.mark.parametrize("words", [["import"], ["audit"], ["table", "--from"]])
def test_a_single_one_is_named(folder, words, capsys):
    (folder / "y.csv").unlink()
    assert run([*words, str(folder)]) == 0
    assert f"skipped 1 file that is no log: {folder / 'x.json'}\n" in capsys.readouterr().err


def test_json_counts_them_too(folder, capsys):
    assert run(["import", "--json", str(folder)]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == {"read": 1, "unrecognised": 2}
