"""A folder of logs in, a table and a decision out; and what went in comes out again."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_example_gives_the_notes_figures(compactuary, example_ledger):
    words = ["table", "--db", example_ledger, "--role", "dev-front", "--role", "dev-back"]
    done = compactuary(*words, "--role", "triage", "--at", "10,30", "--json")
    m = {row["role"]: row["m"] for row in json.loads(done.out)}
    assert round(m["dev-front"]["30"], 1) == 34.8
    assert round(m["dev-back"]["10"], 1) == 46.4
    assert round(m["triage"]["10"], 1) == 8.1


def test_a_decision_says_why(compactuary, example_ledger):
    words = ["decide", "--db", example_ledger, "--role", "dev-front", "--calls", "30"]
    done = compactuary(*words, "--cost", "60000", "--saving", "3500", "--explain")
    assert done.code == 0
    told = re.match(
        r"compact: dev-front turns that have made 30 calls make ([\d.]+) more", done.out
    )
    assert told
    # the note's interval for its 34.8; a decision borrows a little from other roles
    assert 31.1 < float(told[1]) < 38.9
    assert "compacting pays from 17.1" in done.out  # 60,000 / 3,500
    assert "{" not in done.out
    assert all(len(line) == len(line.rstrip()) for line in done.out.splitlines())
    # Nobody gave the context, so the hard limit could not act.
    assert "window_tokens" in done.out


def test_beyond_the_tail_the_text_does_not_claim_turns_of_that_age(compactuary, example_ledger):
    words = ["decide", "--db", example_ledger, "--role", "dev-front", "--calls", "5000"]
    done = compactuary(*words, "--cost", "60000", "--saving", "3500")
    assert "412 turns of dev-front" in done.out
    assert "past the open tail" in done.out
    assert "seen at this age" not in done.out


FORMS = {"turns": "csv", "requests": "jsonl", "compactions": "csv"}


def test_what_was_exported_can_be_imported_and_is_the_same(compactuary, example_ledger, tmp_path):
    first, files = {}, []
    for kind, form in FORMS.items():
        words = ["export", kind, "--format", form]
        first[kind] = compactuary(*words, "--db", example_ledger).out
        files.append(tmp_path / f"{kind}.{form}")
        files[-1].write_text(first[kind])
    again = tmp_path / "again.db"
    done = compactuary("import", *reversed(files), "--db", again)
    assert done.out == "3 files read, 0 unchanged: 3,415 new turns, 491 requests, 6 compactions.\n"
    for kind, form in FORMS.items():
        assert compactuary("export", kind, "--format", form, "--db", again).out == first[kind]
    table = ["table", "--json", "--db"]
    assert compactuary(*table, again).out == compactuary(*table, example_ledger).out


def test_exports_hold_the_columns_that_are_promised(compactuary, example_ledger):
    promised = {
        "turns": "source, session_id, turn_id, role, model, started_at, ended_at, status, "
        "tool_calls, requests",
        "requests": "session_id, turn_id, index, at, uncached, cache_read, cache_write, output",
        "compactions": "compaction_id, session_id, turn_id, context_before, context_after, "
        "calls_before, calls_after",
    }
    counts = {"turns": 3415, "requests": 491, "compactions": 6}
    for kind, columns in promised.items():
        rows = list(
            csv.DictReader(io.StringIO(compactuary("export", kind, "--db", example_ledger).out))
        )
        assert len(rows) == counts[kind]
        assert set(columns.split(", ")) <= set(rows[0])
    turns = json.loads(compactuary("export", "turns", "--json", "--db", example_ledger).out)
    assert {row["status"] for row in turns} == {"ended", "cut", "open"}
    markdown = compactuary("export", "compactions", "--format", "markdown", "--db", example_ledger)
    assert markdown.out.count("\n") == 6 + 2


def test_a_second_import_reads_nothing(compactuary, example, example_ledger, tmp_path):
    db = shutil.copy(example_ledger, tmp_path / "copy.db")
    before = compactuary("export", "turns", "--db", db).out
    done = compactuary("import", example, "--db", db, "--json")
    told = json.loads(done.out)
    assert told["files"] == {"unchanged": 25}
    assert (told["turns"], told["requests"], told["compactions"]) == (0, 0, 0)
    assert compactuary("export", "turns", "--db", db).out == before


def test_import_finds_the_usual_folders(compactuary, example, tmp_path):
    nothing = compactuary("import")
    assert nothing.code == 2
    assert nothing.err.count("\n") == 1
    assert "CLAUDE_CONFIG_DIR" in nothing.err
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").symlink_to(example / "projects")
    at_home = compactuary("import", "--db", tmp_path / "a.db", "--json")
    assert f"found {tmp_path / '.claude' / 'projects'}" in at_home.err
    assert json.loads(at_home.out)["turns"] == 69
    configured = compactuary(
        "import", "--db", tmp_path / "b.db", "--json", CLAUDE_CONFIG_DIR=str(example)
    )
    assert f"found {example / 'projects'}" in configured.err
    assert json.loads(configured.out)["turns"] == 69  # the same logs twice are the same turns


def test_roles_can_be_told_apart_by_project(compactuary, example, tmp_path):
    db = tmp_path / "ledger.db"
    done = compactuary("import", example / "projects", "--db", db, "--role-by", "project")
    assert done.code == 0
    turns = json.loads(compactuary("export", "turns", "--json", "--db", db).out)
    assert len(turns) == 69
    assert all(row["role"].count("/") >= 1 for row in turns)
    assert {row["role"].rsplit("/", 1)[1] for row in turns} >= {"main", "Explore"}


def test_if_empty_leaves_a_filled_ledger_alone(compactuary, example, tmp_path):
    db = tmp_path / "ledger.db"
    first = compactuary("import", "--if-empty", example / "projects", "--db", db, "--json")
    assert json.loads(first.out)["turns"] == 69
    second = compactuary("import", "--if-empty", example, "--db", db, "--json")
    assert second.code == 0
    assert json.loads(second.out)["turns"] == 0
    assert "already" in second.err


def test_the_ledger_is_found_by_option_then_variable_then_data_folder(compactuary, tmp_path):
    for words, variables, file in [
        (["--db", "here.db"], {"COMPACTUARY_DB": "there.db"}, tmp_path / "here.db"),
        ([], {"COMPACTUARY_DB": "there.db"}, tmp_path / "there.db"),
        ([], {"XDG_DATA_HOME": str(tmp_path / "data")}, tmp_path / "data/compactuary/ledger.db"),
    ]:
        done = compactuary("db", "upgrade", "--json", *words, **variables)
        assert json.loads(done.out)["ledger"] == f"sqlite:///{file}"
        assert Path(file).is_file()


def test_output_that_no_disk_holds_is_told_in_one_line(example_ledger):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    words = [sys.executable, "-m", "compactuary", "export", "turns", "--db", str(example_ledger)]
    with full.open("w") as output:
        done = subprocess.run(
            words,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=ROOT,
        )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error_to_talk_about(example_ledger):
    words = [sys.executable, "-m", "compactuary", "export", "turns", "--db", str(example_ledger)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout.readline().startswith("source,session_id,")
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_a_read_only_ledger_is_read_and_not_written(compactuary, example_ledger, tmp_path):
    db = shutil.copy(example_ledger, tmp_path / "kept.db")
    url = f"sqlite:///file:{db}?mode=ro&uri=true"
    assert compactuary("table", "--role", "qa", "--db", url).code == 0
    (tmp_path / "new.csv").write_text("turn_id,role,tool_calls\nz,main,2\n")
    done = compactuary("import", "new.csv", "--db", url)
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 1
    assert "read-only" in done.err
    assert "writable" in done.err
