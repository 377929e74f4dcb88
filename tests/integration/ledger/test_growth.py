"""Logs imported while they grow end where logs imported whole do."""

import gzip
import os
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from examples.claude_code_tree import write_tree
from ledger.database import open_engine
from migrations.upgrade import upgrade
from tests.conftest import SHARED, needs_shared_data
from tests.integration.ledger.rows import everything, imported, kept, recounted, rows_of
from tests.unit.ledger.transcript import START_MS, Transcript, said, use

LOGS = SHARED / "data" / "logs"
SNAPSHOTS = SHARED / "data" / "snapshots"


def opened(path):
    engine = open_engine(str(path))
    upgrade(engine)
    return engine


@pytest.fixture
def fresh(tmp_path):
    """Return a function that opens one more empty SQLite ledger."""
    engines = []

    def make():
        engines.append(opened(tmp_path / f"ledger-{len(engines)}.db"))
        return engines[-1]

    yield make
    for engine in engines:
        engine.dispose()


def plain(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def grow(engine, sources, target, seed, steps):
    """Copy prefixes of the files, longer each time, and import after each step."""
    rng = Random(seed)
    whole = dict(sorted(sources.items()))
    cuts = {
        name: [*sorted(rng.randrange(len(data) + 1) for _ in range(steps)), len(data)]
        for name, data in whole.items()
    }
    for step in range(steps + 1):
        for name, data in whole.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data[: cuts[name][step]])
            os.utime(path, ns=(step * 10**9, step * 10**9))
        assert imported(engine, target) == []


def tree_of(folder):
    return {
        str(path.relative_to(folder)).removesuffix(".gz"): plain(path)
        for path in folder.rglob("*.jsonl*")
    }


@pytest.mark.parametrize("seed", range(6))
def test_a_generated_tree_cut_at_any_byte(fresh, tmp_path, seed):
    write_tree(tmp_path / "tree", sessions=5, seed=seed, body_chars=20)
    whole, grown = fresh(), fresh()
    assert imported(whole, tmp_path / "tree") == []
    grow(grown, tree_of(tmp_path / "tree"), tmp_path / "growing", seed, steps=5)
    assert rows_of(grown) == rows_of(whole)
    assert kept(grown) == recounted(grown)


def test_growth_on_both_databases(ledger, fresh, tmp_path):
    write_tree(tmp_path / "tree", sessions=3, body_chars=20)
    whole = fresh()
    assert imported(whole, tmp_path / "tree") == []
    grow(ledger, tree_of(tmp_path / "tree"), tmp_path / "growing", 1, steps=3)
    assert rows_of(ledger) == rows_of(whole)


def real_sessions():
    """Return sessions with their sub-agents: a small part of the real logs, spread over them."""
    groups = defaultdict(list)
    for folder in ("spotter", "entireio+cli/claude-code"):
        for path in sorted((LOGS / folder).rglob("*.jsonl*")):
            session = path.relative_to(LOGS / folder).parts[0].split(".")[0]
            groups[f"{folder}/{session}"].append(path)
    return [groups[name] for name in sorted(groups)]


@needs_shared_data
def test_real_logs_cut_at_any_byte(fresh, tmp_path):
    sample = Random(5).sample(real_sessions(), 12)
    sources = {
        str(path.relative_to(LOGS)).removesuffix(".gz"): plain(path)
        for session in sample
        for path in session
    }
    for name, data in sources.items():
        path = tmp_path / "whole" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    whole, grown = fresh(), fresh()
    assert imported(whole, tmp_path / "whole") == []
    grow(grown, sources, tmp_path / "growing", 7, steps=6)
    assert rows_of(grown) == rows_of(whole)
    assert kept(grown) == recounted(grown)


def slices():
    return sorted(path for path in SNAPSHOTS.glob("*/*/*") if path.is_dir())


@needs_shared_data
@pytest.mark.parametrize("number", [0, 1])
def test_slices_in_order_equal_their_concatenation(fresh, tmp_path, number):
    folder = slices()[number]
    # A folder named like the session, as the slices have: excerpts go by sessionId.
    joined = tmp_path / f"{folder.name}.jsonl"
    joined.write_bytes(b"".join(plain(path) for path in sorted(folder.glob("*.jsonl.gz"))))
    whole, sliced, one_by_one = fresh(), fresh(), fresh()
    assert imported(whole, joined) == []
    assert imported(sliced, folder) == []
    for path in sorted(folder.glob("*.jsonl.gz")):
        assert imported(one_by_one, path) == []
    assert rows_of(whole)["turns"]
    assert rows_of(sliced) == rows_of(whole)
    assert rows_of(one_by_one) == rows_of(whole)
    # The concatenation tells nothing that the slices had not told.
    assert imported(sliced, joined) == []
    assert rows_of(sliced) == rows_of(whole)


def test_an_unchanged_tree_is_not_opened(sqlite_ledger, tmp_path, monkeypatch):
    write_tree(tmp_path / "tree", sessions=2, body_chars=20)
    assert imported(sqlite_ledger, tmp_path / "tree") == []
    before = everything(sqlite_ledger)
    opened_files = []
    original = Path.open

    def watched(self, *args, **kwargs):
        opened_files.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", watched)
    assert imported(sqlite_ledger, tmp_path / "tree") == []
    assert opened_files == []
    assert everything(sqlite_ledger) == before


def agent_and_parent():
    """A sub-agent's own file and its parent's, which tells a second later that it is done."""
    agent = Transcript(agent="a1", seconds=2)
    agent.user("Look around.")
    agent.answer("a1-m1", use("a1-t1"))
    agent.result("a1-t1")
    agent.answer("a1-m2", said("Found."))
    parent = Transcript()
    parent.user("Fix it.", uuid="p1")
    parent.answer("m1", use("call", "Task", subagent_type="Explore"))
    parent.seconds = 6
    told = {"agentId": "a1", "status": "completed", "totalToolUseCount": 1}
    parent.result("call", toolUseResult=told)
    parent.answer("m2", said())
    return agent, parent


def test_a_parent_tells_the_end_only_where_the_agent_does_not(fresh, tmp_path):
    agent, parent = agent_and_parent()
    ended = ("ended", "final_text", START_MS + 5000, "Explore", "p1", 1, 2)
    results = []
    for order in ("agent parent", "parent agent", "half parent agent", "half parent"):
        engine, folder = fresh(), tmp_path / order
        for name in order.split():
            if name == "half":
                half = Transcript(agent="a1", lines=agent.lines[:2])
                half.write(folder, "agent-a1")
            elif name == "agent":
                agent.write(folder, "agent-a1")
            else:
                parent.write(folder, "s1")
            assert imported(engine, folder) == []
        rows = {row["turn_id"]: row for row in rows_of(engine)["turns"]}
        row = rows["s1/agent-a1"]
        names = ("status", "reason", "last_ms", "role", "parent_turn_id", "tool_calls", "requests")
        results.append(tuple(row[name] for name in names))
        assert kept(engine) == recounted(engine)
    assert results[:3] == [ended] * 3
    assert results[3] == ("ended", "parent_told", START_MS + 6000, "Explore", "p1", 1, 1)


@pytest.mark.parametrize("order", ["agent parent", "parent agent"])
def test_a_request_was_made_when_its_first_line_was_written(ledger, tmp_path, order):
    agent, parent = agent_and_parent()
    parent.lines[2:2] = [
        parent.progress("call", "a1", line | {"timestamp": "2026-07-01T12:00:04.700Z"})
        for line in agent.lines
        if line["type"] == "assistant"
    ]
    parent.lines[-2:] = []
    for name in order.split():
        log = agent if name == "agent" else parent
        assert imported(ledger, log.write(tmp_path, name)) == []
    rows = rows_of(ledger)
    times = {row["request_id"]: row["at_ms"] for row in rows["requests"]}
    assert (times["a1-m1"], times["a1-m2"]) == (START_MS + 3000, START_MS + 4700)
    (call,) = [row for row in rows["tool_calls"] if row["tool_call_id"] == "a1-t1"]
    assert call["at_ms"] == START_MS + 3000
