"""Dirty logs: what can't be used is told by count and cause, and the rest is analysed."""

import json
import re
import shutil

import pytest

from examples.claude_code_tree import write_tree

TURNS = """turn_id,session_id,role,tool_calls,model,started_at
silent,silent,main,4,claude-opus-4-6,2026-07-02T09:00:00Z
back,back,main,2,claude-opus-4-6,2026-07-02T10:00:00Z
"""
#: The second request is older than the first, the third is not older than the second.
REQUESTS = """turn_id,index,at,uncached,output
back,0,2026-07-02T10:00:00Z,20000,100
back,1,2026-07-02T09:30:00Z,21000,100
back,2,2026-07-02T10:01:00Z,22000,100
"""


@pytest.fixture
def clean(tmp_path):
    write_tree(tmp_path / "clean", sessions=14)
    return tmp_path / "clean"


@pytest.fixture
def dirty(tmp_path, clean):
    folder = tmp_path / "dirty"
    shutil.copytree(clean, folder)
    (folder / "empty.jsonl").touch()
    (folder / "strange.jsonl").write_text('{"a": 1}\n', "utf-8")
    shutil.copy(min(clean.rglob("*.jsonl")), folder / "again.jsonl")
    (folder / "turns.csv").write_text(TURNS, "utf-8")
    (folder / "requests.csv").write_text(REQUESTS, "utf-8")
    return folder


def told(compactuary, *words):
    done = compactuary(*words, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out), done.err


def test_the_audit_is_that_of_the_clean_logs(compactuary, clean, dirty):
    expected, quiet = told(compactuary, "audit", clean)
    found, said = told(compactuary, "audit", dirty)
    assert quiet == ""
    assert "skipped 1 empty files, first " in said
    assert "skipped 1 file that is no log: " in said
    assert "strange.jsonl" in said
    assert len(expected["compactions"]) > 3
    # The growth that is usual for a role knows the requests of the tables, too.
    for one in (*expected["compactions"], *found["compactions"]):
        del one["rework_tokens"], one["rework_cost"]
    assert found["compactions"] == expected["compactions"]


def test_the_backtest_counts_what_it_leaves_out(compactuary, clean, dirty):
    words = ("--rules", "eoq", "--split", "random")
    expected, _ = told(compactuary, "backtest", clean, *words)
    found, _ = told(compactuary, "backtest", dirty, *words)
    assert found["requests"] == expected["requests"] + 3
    assert found["sessions"] == expected["sessions"] + 1
    before, after = (" ".join(run["assumptions"]) for run in (expected, found))
    left = re.search(r"Left out: 1 of \d+ turns, .* 1 of (\d+) sessions\.", after)
    assert int(left[1]) == expected["sessions"] + 2
    assert "Requests older than the one before them in their turn: 1." in after
    assert "Left out" not in before
    assert "Requests older" not in before
