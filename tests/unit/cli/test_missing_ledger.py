"""A ledger that is not there: reading makes none, writing does, and logs stand in for it."""

import json
from pathlib import Path

import pytest

from cli.app import run

MODEL = ("--model", "claude-opus-4-8")
READING = [
    ["table"],
    ["split", "main"],
    ["drift"],
    ["audit"],
    ["backtest"],
    ["report"],
    ["learn"],
    ["decide", "--role", "main", "--calls", "3", "--cost", "6", "--saving", "3"],
    ["thresholds", "main", *MODEL],
    ["decisions"],
    ["export", "turns"],
    ["prune", "--older-than", "90d"],
    ["keys", "list"],
    ["keys", "revoke", "agent"],
    ["backup", "copy.db"],
]
#: What has nothing to say where there is nothing.
REFUSED = {"split", "backtest", "revoke", "backup"}


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    for name in ("COMPACTUARY_DB", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", READING, ids=lambda words: " ".join(words[:2]))
@pytest.mark.parametrize("how", ["option", "variable", "url"])
def test_reading_a_mistyped_ledger_is_an_error(home, monkeypatch, capsys, words, how):
    # Relative, for a message cuts what is long.
    file = Path("typo") / "deep" / "x.db"
    if how == "variable":
        monkeypatch.setenv("COMPACTUARY_DB", str(file))
    else:
        words = [*words, "--db", f"sqlite:///{file}" if how == "url" else str(file)]
    assert run(words) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "there is no" in err
    assert str(file) in err
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("words", READING, ids=lambda words: " ".join(words[:2]))
def test_reading_the_usual_ledger_makes_none(home, capsys, words):
    expected = 0 if REFUSED.isdisjoint(words) else 1 if words[0] == "backup" else 2
    assert run(words) == expected, capsys.readouterr().err
    assert list(home.rglob("*.db")) == []
    assert not (home / "data").exists()


@pytest.mark.parametrize("words", READING, ids=lambda words: " ".join(words[:2]))
def test_an_empty_name_is_not_the_usual_ledger(home, capsys, words):
    assert run([*words, "--db", ""]) == 2
    assert capsys.readouterr().err.startswith("error: --db: is empty")


def test_a_decision_without_a_ledger_rests_on_the_standard_table(capsys):
    words = ["decide", "--role", "main", "--calls", "3", "--cost", "6", "--saving", "3", "--json"]
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out)["basis"]["source"] == "standard"


@pytest.mark.parametrize(
    "words",
    [["db", "upgrade"], ["import", "t.csv"], ["keys", "create", "agent", "--scope", "read"]],
    ids=lambda words: words[0],
)
def test_writing_makes_it(home, capsys, words):
    (home / "t.csv").write_text("turn_id,role,tool_calls\na,main,1\n")
    assert run([*words, "--db", "new/deep/l.db"]) == 0
    assert (home / "new/deep/l.db").is_file()
    assert run(words) == 0
    assert (home / "data/compactuary/ledger.db").is_file()
    capsys.readouterr()
    assert run(["table", "--db", "new/deep/l.db"]) == 0


def test_an_empty_ledger_does_not_hide_the_logs(home, capsys):
    rows = [{"type": "user", "message": {"role": "user", "content": "hello"}}]
    rows.append({"type": "assistant", "message": {"id": "m1", "role": "assistant",
        "model": "claude-opus-4-8", "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 1}}})  # fmt: skip
    folder = home / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    lines = [
        json.dumps(
            row | {"uuid": f"u{n}", "sessionId": "s", "timestamp": f"2026-01-15T12:00:0{n}Z"}
        )
        for n, row in enumerate(rows)
    ]
    (folder / "s.jsonl").write_text("\n".join(lines) + "\n")

    def told():
        assert run(["report"]) == 0
        out, err = capsys.readouterr()
        return out.splitlines()[0], err

    first, why = told()
    assert "no ledger yet, so logs are read" in why
    assert run(["db", "upgrade"]) == 0
    capsys.readouterr()
    again, why = told()
    assert again == first
    assert "the ledger is empty, so logs are read" in why
    # Once it holds a turn, the ledger is what is read.
    (home / "t.csv").write_text("turn_id,role,tool_calls\na,main,1\nb,main,1\n")
    assert run(["import", "t.csv"]) == 0
    capsys.readouterr()
    last, why = told()
    assert last.startswith("2 turns with a call")
    assert "logs are read" not in why
