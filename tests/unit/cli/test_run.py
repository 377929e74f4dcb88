"""Exit codes and messages: one line that names what is wrong and what to do, never a traceback."""

import csv
import io
import json
import re

import pytest
from sqlalchemy import text

from cli.app import COMMANDS, run
from compactuary.version import VERSION
from ledger.database import open_engine
from migrations.upgrade import upgrade


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    for name in ("COMPACTUARY_DB", "COMPACTUARY_REFRESH_SECONDS", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def turns(own_folder, capsys):
    """Import turns of 1, 2 and 3 calls, and return the ledger's path."""
    (own_folder / "t.csv").write_text(
        "turn_id,role,tool_calls,model\n"
        "a,main,1,claude-opus-4-8\nb,main,2,claude-opus-4-8\nc,main,3,claude-opus-4-8\n"
    )
    assert run(["import", "t.csv", "--db", "l.db"]) == 0
    assert capsys.readouterr().out.startswith("1 file read, 0 unchanged: 3 new turns, 0 requests")
    return "l.db"


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["db", "upgrade"]])
def test_every_command_explains_itself(capsys, command):
    assert run([*command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: compactuary")
    if command:
        leaf = command not in (["db"], ["keys"], ["prompt"])
        assert (" --json" in out) == leaf
        assert (" --db" in out) == leaf


def test_version_and_no_words(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"compactuary {VERSION}\n"
    assert run([]) == 2
    assert "Usage: compactuary" in capsys.readouterr().err


CASES = [
    (["tabel"], 2, "tabel"),
    (["table", "--bogus"], 2, "--bogus"),
    (["table", "--at", "x"], 2, "--at"),
    (["table", "--unit", "turns"], 2, "--unit"),
    (["table", "--role", "nobody"], 2, "'nobody'"),
    (["table", "--break-even", "nan"], 2, "--break-even"),
    (["table", "--break-even", "inf"], 2, "--break-even"),
    (["table", "--context", "-5"], 2, "--context"),
    (["table", "--format", "xml"], 2, "'xml'"),
    (["table", "--at", "1,1"], 2, "[1, 1]"),
    (["table", "--decay", "0"], 2, "decay"),
    (["table", "--decay", "nan"], 2, "decay"),
    (["table", "--life-table"], 2, "--life-table"),
    (["table", "--life-table", "--role", "main", "--role", "other"], 2, "--life-table"),
    (["table", "--life-table", "--role", "main", "--at", "5"], 2, "--at"),
    (["table", "--life-table", "--role", "main", "--by-model"], 2, "--by-model"),
    (["table", "--save", "picture.gif"], 2, "'picture.gif'"),
    (["table", "--save", "no/picture.png"], 2, "no/picture.png"),
    (["table", "--from", "t.csv", "--db", "l.db"], 2, "--from, --db"),
    (["table", "--from", "nothing-here"], 2, "nothing-here"),
    (["split"], 2, "ROLE"),
    (["split", "nobody"], 2, "'nobody'"),
    (["split", "main", "--by", "mood"], 2, "--by"),
    (["split", "main", "--by", "project"], 2, "--role-by project"),
    (["split", "main", "--by", "trigger"], 2, "trigger"),
    (["export", "agents"], 2, "'agents'"),
    (["import", "nothing-here"], 2, "nothing-here"),
    (["import"], 2, "CLAUDE_CONFIG_DIR"),
    (["import", ""], 2, "PATH: is empty"),
    (["import", "t.csv", ""], 2, "PATH: is empty"),
    (["audit", ""], 2, "PATH: is empty"),
    (["backtest", ""], 2, "PATH: is empty"),
    (["report", ""], 2, "PATH: is empty"),
    (["table", "--from", ""], 2, "PATH: is empty"),
    (["split", "main", "--from", ""], 2, "PATH: is empty"),
    (["import", ".", "--role-by", "mood"], 2, "--role-by"),
    (["prices", "no-such-model"], 2, "'no-such-model'"),
    (["prices", "claude-opus-4-8", "--at", "noon"], 2, "--at"),
    (["decide", "--role", "main"], 2, "--calls"),
    (["decide", "--role", "main", "--calls", "-1", "--cost", "1", "--saving", "1"], 2, "calls"),
    (["decide", "--role", "main", "--calls", "1"], 2, "model"),
    (["decide", "--role", "main", "--calls", "1", "--model", "claude-opus-4-8"], 2,
     "context_tokens"),
    (["decide", "--role", "main", "--calls", "1", "--context", "9", "--model", "no-such"], 2,
     "'no-such'"),
    (["decide", "--role", "main", "--calls", "1", "--weight", "output"], 2, "--weight"),
    (["decide", "--role", "", "--calls", "1", "--cost", "1", "--saving", "1"], 2, "role"),
    (["decide", "--role", "main", "--calls", "1", "--cost", "1", "--saving", "1",
      "--idle-seconds", "5"], 2, "--at idle"),
    (["thresholds", "main", "--model", "claude-opus-4-8", "--kind", "foo"], 2,
     "Known: summary, clear, server_side"),
    (["thresholds", "main", "--model", "no-such"], 2, "COMPACTUARY_PRICES"),
    (["serve", "--host", "0.0.0.0"], 2, "--host"),
    (["serve", "--port", "65536"], 2, "--port"),
    (["serve", "--refresh-seconds", "0"], 2, "--refresh-seconds"),
    (["table", "--db", "nowhere://x"], 2, "nowhere://x"),
    (["table", "--db", "text.db"], 1, "text.db"),
    (["export", "turns", "--db", "text.db"], 1, "text.db"),
    (["import", "t.csv", "--db", "text.db"], 1, "text.db"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "named"), CASES)
def test_what_is_wrong_is_told_in_one_line(turns, own_folder, capsys, words, code, named):
    (own_folder / "text.db").write_text("this is no database\n" * 100)
    if words[0] in ("table", "split", "decide") and not {"--db", "--from"} & set(words):
        words = [*words, "--db", turns]
    assert run(words) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert named in err
    # Behind what is wrong comes what to do about it.
    assert ". " in err.removeprefix("error: ")


def test_an_older_schema_is_refused_with_the_remedy(own_folder, capsys):
    engine = open_engine("old.db")
    upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '2000_01_01_0001'"))
    engine.dispose()
    assert run(["table", "--db", "old.db"]) == 1
    err = capsys.readouterr().err
    assert "2000_01_01_0001" in err
    assert "compactuary db upgrade" in err


def test_a_refused_file_fails_the_command_and_leaves_the_rest(own_folder, turns, capsys):
    (own_folder / "more.csv").write_text("turn_id,role,tool_calls\nd,main,2\ne,main,-2\n")
    (own_folder / "good.csv").write_text("turn_id,role,tool_calls\nf,main,6\n")
    assert run(["import", "more.csv", "good.csv", "--db", turns]) == 1
    out, err = capsys.readouterr()
    assert "1 new turn," in out
    assert "more.csv:3" in err
    assert "tool_calls" in err
    assert run(["table", "--json", "--at", "0", "--db", turns]) == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert (row["turns"], row["m"]["0"]) == (4, pytest.approx(3))  # (1 + 2 + 3 + 6) / 4


def test_a_table_of_an_empty_ledger_says_what_to_do(capsys):
    assert run(["table"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "compactuary import" in err
    assert run(["table", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_table_in_every_format(turns, capsys):
    def printed(*words):
        assert run(["table", "--db", turns, "--at", "0,9", *words]) == 0
        return capsys.readouterr().out

    row = json.loads(printed("--json"))[0]
    assert {"role", "turns", "mean", "p50", "m"} <= set(row)
    assert (row["role"], row["turns"], row["m"]) == ("main", 3, {"0": 2.0, "9": 2.0})
    assert row["extrapolated"] == [9]
    table = list(csv.DictReader(io.StringIO(printed("--format", "csv", "--break-even", "2"))))
    assert [(row["role"], row["turns"], row["m_0"], row["pays_0"]) for row in table] == [
        ("main", "3", "2.0", "False")
    ]
    assert json.loads(printed("--format", "jsonl"))["m_0"] == 2.0
    # 2 calls remain: more than 1.5, not more than 2.
    assert "| main | 3 | 2.0 | 2 | **2.0** | **2.0\\~** |" in printed(
        "--format", "markdown", "--break-even", "1.5"
    )
    assert "| main | 3 | 2.0 | 2 | 2.0 | 2.0\\~ |" in printed(
        "--format", "markdown", "--break-even", "2"
    )
    told = printed("--break-even", "1.5")
    assert "Compacting pays above the break-even of 1.5 requests.\n" in told
    assert all(line == line.rstrip() for line in told.splitlines())


def test_a_name_that_looks_like_markup_is_printed_as_it_is(turns, capsys, own_folder):
    (own_folder / "m.csv").write_text("turn_id,role,tool_calls\nm,[bold]x[/y],2\n")
    assert run(["import", "m.csv", "--db", turns]) == 0
    assert run(["table", "--db", turns]) == 0
    assert "[bold]x[/y]" in capsys.readouterr().out
    assert run(["table", "--db", turns, "--model", "[/z]"]) == 2
    assert "no price is known for this model (got '[/z]')" in capsys.readouterr().err


def test_a_name_that_is_no_text_is_told_in_one_line(own_folder, capsys):
    (own_folder / "logs").mkdir()
    try:
        (own_folder / "logs" / "caf\udce9.csv").write_text("turn_id,role,tool_calls\nz,main,2\n")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert run(["import", "logs", "--db", "l.db"]) == 1
    err = capsys.readouterr().err
    assert "caf" in err
    assert "Rename" in err
    assert "Traceback" not in err


def test_a_narrow_terminal_loses_no_digit(turns, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["table", "--db", turns, "--at", "0,1", "--break-even", "1.5"]) == 0
    out = capsys.readouterr().out
    assert "…" not in out
    assert out.count("2.0") >= 2
    assert "Bold: above the break-even of 1.5 requests." in " ".join(out.split())


def test_a_break_even_nobody_can_compute_is_said(turns, own_folder, capsys):
    logs = own_folder / "unpriced.csv"
    logs.write_text("turn_id,role,tool_calls,model\na,main,1,no-such-model\n")
    assert run(["table", "--from", str(logs)]) == 0
    assert "No price is known for no-such-model: give --break-even." in capsys.readouterr().out
    assert run(["table", "--db", turns, "--context", "100"]) == 0
    assert "A compaction of 100 tokens saves nothing" in capsys.readouterr().out


def test_a_decision_in_requests_is_told_in_requests(turns, capsys, own_folder):
    (own_folder / "r.csv").write_text(
        "turn_id,role,tool_calls,requests\n" + "".join(f"r{n},Plan,4,2\n" for n in range(5))
    )
    assert run(["import", "r.csv", "--db", turns]) == 0
    capsys.readouterr()
    words = ["decide", "--db", turns, "--role", "Plan", "--calls", "0", "--cost", "4"]
    assert run([*words, "--saving", "4", "--unit", "requests"]) == 0
    told = capsys.readouterr().out
    # 2 by its own turns, more by what it borrows
    more = re.match(r"compact: Plan turns that have made 0 requests make (\d\.\d) more", told)
    assert more
    assert 2 <= float(more[1]) < 4
    assert f"remaining   {more[1]} requests [" in told
    assert "5 turns of Plan" in told
    assert run([*words, "--saving", "4", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["basis"]["requests_per_call"] == pytest.approx(0.5)
    # Told in tool calls, they are read from the same turns' table in requests.
    assert answer["expected_remaining_requests"] == pytest.approx(float(more[1]), abs=0.05)


def test_prices_are_told_with_source_and_date(capsys):
    assert run(["prices", "claude-opus-4-8", "--at", "2026-10-01"]) == 0
    told = capsys.readouterr().out
    assert "as of 2026-10-01" in told
    assert [line.split() for line in told.splitlines() if line.startswith("cache_read")] == [
        ["cache_read", "0.1", "0.5"]
    ]
