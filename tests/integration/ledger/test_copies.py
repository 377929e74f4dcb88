"""Several copies of a session, at several stages, are one session."""

from random import Random

import pytest

from examples.claude_code_tree import write_tree
from ledger.database import open_engine
from migrations.upgrade import upgrade
from tests.integration.ledger.rows import imported, kept, recounted, rows_of
from tests.unit.ledger.transcript import Transcript, said, use


def two_turns():
    log = Transcript("s1")
    for turn in (1, 2):
        log.user("Fix it.", uuid=f"p{turn}")
        for number in (1, 2, 3):
            log.answer(f"m{turn}{number}", use(f"t{turn}{number}"))
            log.result(f"t{turn}{number}")
        log.answer(f"m{turn}4", said())
    return log


def part(log, lines):
    return Transcript(log.session, lines=log.lines[:lines])


def test_an_older_copy_does_not_set_the_session_back(ledger, tmp_path):
    log = two_turns()
    assert imported(ledger, part(log, 13).write(tmp_path / "now")) == []
    assert imported(ledger, part(log, 4).write(tmp_path / "backup")) == []
    assert imported(ledger, log.write(tmp_path / "now")) == []
    turns = {row["turn_id"]: row for row in rows_of(ledger)["turns"]}
    shown = {key: (row["status"], row["tool_calls"], row["requests"]) for key, row in turns.items()}
    assert shown == {"p1": ("ended", 3, 4), "p2": ("ended", 3, 4)}
    assert {row["position"] for row in rows_of(ledger)["requests"]} == {0, 1, 2, 3}


def test_an_older_copy_that_grows_opens_no_ended_turn(ledger, tmp_path):
    log = two_turns()
    assert imported(ledger, part(log, 4).write(tmp_path / "backup")) == []
    assert imported(ledger, log.write(tmp_path / "now")) == []
    before = rows_of(ledger)
    for lines in (6, 11, 13, 16):
        assert imported(ledger, part(log, lines).write(tmp_path / "backup")) == []
        assert rows_of(ledger) == before


@pytest.mark.parametrize("seed", range(4))
def test_copies_that_grow_at_different_paces(tmp_path, sqlite_ledger, seed):
    write_tree(tmp_path / "tree", sessions=3, seed=seed, body_chars=20)
    files = {path: path.read_bytes() for path in (tmp_path / "tree").rglob("*.jsonl")}
    whole = open_engine(str(tmp_path / "whole.db"))
    upgrade(whole)
    assert imported(whole, tmp_path / "tree") == []
    rng = Random(seed)
    lengths = {(path, copy): 0 for path in files for copy in "abc"}
    for step in range(8):
        copy = rng.choice("abc") if step < 5 else "abc"[step - 5]
        for path, data in sorted(files.items()):
            shown = len(data) if step >= 5 else rng.randrange(lengths[path, copy], len(data) + 1)
            lengths[path, copy] = shown
            target = tmp_path / copy / path.relative_to(tmp_path / "tree")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data[:shown])
        assert imported(sqlite_ledger, tmp_path / copy) == []
        assert kept(sqlite_ledger) == recounted(sqlite_ledger)
    found, expected = rows_of(sqlite_ledger), rows_of(whole)
    whole.dispose()
    for name in ("turns", "tool_calls", "histogram", "request_pace"):
        assert found[name] == expected[name], name
    # Positions order a turn's requests; between copies their numbers may have gaps.
    for name, own in (("requests", "position"), ("compactions", "calls_before")):
        for row in (*found[name], *expected[name]):
            del row[own]
        assert found[name] == expected[name], name
