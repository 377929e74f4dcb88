"""An analyst's work: tables, splits and pictures from a ledger, or straight from log files."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
TABLES = (REPO / "docs" / "tables.md").read_text("utf-8")


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", TABLES, re.MULTILINE | re.DOTALL)
    return [text for name, text in fenced if name == language]


@pytest.mark.parametrize(
    "words",
    [
        ["table", "--json"],
        ["table", "--unit", "requests", "--json", "--at", "0,3,70"],
        ["table", "--break-even", "9"],
        ["table", "--by-model", "--format", "csv"],
        ["table", "--decay", "50", "--format", "jsonl"],
        ["table", "--life-table", "--role", "triage", "--json"],
        ["split", "main", "--by", "first_tool", "--json"],
    ],
    ids=" ".join,
)
def test_logs_give_what_their_import_gives(compactuary, example, example_ledger, tmp_path, words):
    straight = compactuary(*words, "--from", example, TMPDIR=str(tmp_path))
    assert straight.code == 0
    assert straight.out == compactuary(*words, "--db", example_ledger).out
    # neither a ledger in the home nor a file that was only needed meanwhile
    assert list(tmp_path.iterdir()) == []


def test_files_can_be_named_one_by_one(compactuary, example):
    logs = sorted(example.rglob("*.csv")) + sorted(example.rglob("*.jsonl"))
    words = [word for log in logs for word in ("--from", log)]
    named = compactuary("table", "--json", *words)
    assert named.out == compactuary("table", "--json", "--from", example).out


def test_a_line_that_is_no_json_refuses_its_file_or_is_told(compactuary, example, tmp_path):
    log = tmp_path / "log.jsonl"
    whole = max((example / "projects").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    log.write_text('{"type": \n' + whole.read_text("utf-8"), "utf-8")
    refused = compactuary("table", "--from", log)
    assert (refused.code, refused.out) == (2, "")
    assert "log.jsonl:1" in refused.err
    assert "--skip-corrupt" in refused.err
    read = compactuary("table", "--from", log, "--skip-corrupt", "--json")
    assert read.code == 0
    assert "log.jsonl:1" in read.err
    assert json.loads(read.out) == json.loads(compactuary("table", "--from", whole, "--json").out)


def test_a_split_by_project_needs_no_import_by_project(compactuary, example):
    told = compactuary("split", "main", "--by", "project", "--from", example / "projects", "--json")
    parts = json.loads(told.out)["parts"]
    assert {part["part"] for part in parts} == {"shop", "stock", "api"}
    assert sum(part["turns"] for part in parts) == 57


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_a_picture_is_saved_in_the_type_its_name_ends_in(
    compactuary, example_ledger, tmp_path, kind
):
    picture = tmp_path / f"m.{kind}"
    words = ["table", "--role", "triage", "--db", example_ledger, "--save", picture]
    done = compactuary(*words, "--json")
    assert json.loads(done.out)[0]["role"] == "triage"
    assert done.err == f"drew {picture}\n"
    head = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert picture.read_bytes().startswith(head[kind])


def imported(*words):
    """Name the packages that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "compactuary", *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPO,
    )
    lines = re.findall(r"^import time: .*\| +(\S+)$", done.stderr, re.MULTILINE)
    return {line.split(".")[0] for line in lines} | set(lines)


def test_a_command_imports_what_its_output_needs(example_ledger, tmp_path):
    slow = {"pandas", "matplotlib", "lifelines", "scipy", "alembic", "genai_prices", "rich.console"}
    table = ["table", "--db", example_ledger]
    assert "numpy" in imported(*table, "--json")
    assert not imported(*table, "--json") & slow
    assert imported(*table) & slow == {"rich.console", "genai_prices"}
    (tmp_path / "t.csv").write_text("turn_id,role,tool_calls\na,dev,2\n")
    ledger = shutil.copy(example_ledger, tmp_path / "l.db")
    found = imported("import", tmp_path / "t.csv", "--db", ledger)
    assert not found & (slow | {"numpy"})


def test_every_command_of_the_guide_runs(compactuary, example, tmp_path):
    (tmp_path / "example").symlink_to(example)
    (tmp_path / "docs").mkdir()
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line[:5] == "compa"]
    assert len(commands) > 5
    for words in commands:
        done = compactuary(*words)
        assert done.code == 0, (words, done.err)
        assert done.out


def test_the_guides_figures_are_those_of_the_example(compactuary, example):
    shown = [line for block in blocks("") for line in block.splitlines() if line.startswith("│")]
    assert len(shown) > 5
    out = compactuary("table", "--from", example, "--role", "triage", "--life-table").out
    out += compactuary("table", "--from", example, "--at", "0,10,40", "--detail").out
    out += compactuary("split", "main", "--by", "project", "--from", example / "projects").out
    # a row stands alone: its column may be narrower where fewer rows are shown
    rows = {re.sub(r"\s+", " ", line) for line in out.splitlines()}
    assert {re.sub(r"\s+", " ", line) for line in shown} <= rows


def test_the_notebook_of_the_guide_runs(example, tmp_path, monkeypatch):
    (tmp_path / "example").symlink_to(example)
    script = "\n".join(blocks("python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPO), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_by_session_keeps_the_estimates_and_says_so(compactuary, example):
    words = ("table", "--from", example, "--role", "main", "--json")
    [plain] = json.loads(compactuary(*words).out)
    [clustered] = json.loads(compactuary(*words, "--by-session").out)
    assert clustered["m"] == plain["m"]
    assert clustered["upper"]["0"] != plain["upper"]["0"]
    told = compactuary("table", "--from", example, "--role", "main", "--by-session").out
    assert "Intervals take turns of one session as alike." in told
