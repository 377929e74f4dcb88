"""Real logs of every format against the tables that another reader made of them.

Where they differ it is known why: the other reader leaves reasoning out of the output where it
stands beside it, and takes a word said while the agent works (``steering``) for a turn.
"""

import csv
import gzip
import json
from collections import Counter, defaultdict
from typing import NamedTuple

import pytest
from sqlalchemy import select

from ledger.database import open_engine
from ledger.schema import compactions, requests, turns
from migrations.upgrade import upgrade
from tests.conftest import SHARED, needs_shared_data
from tests.integration.ledger.rows import everything, imported, kept, recounted

pytestmark = needs_shared_data

DATA = SHARED / "data"
LOGS = DATA / "logs"


class Other(NamedTuple):
    """A turn as the other reader has it."""

    calls: int
    role: str
    ended: bool


FOLDERS = {
    "codex": "*/codex",
    "opencode": "*/opencode",
    "pi": "*/pi",
    "ohmypi": "*/ohmypi",
    "gemini-cli": "*/gemini",
    "tau-bench": "tau-bench",
    "swe-agent": "multi-swe-bench",
}
#: Turns that called a tool: so many the other reader has, before words while working are joined.
WITH_CALLS = {
    "codex": 52,
    "opencode": 99,
    "pi": 11,
    "ohmypi": 50,
    "gemini-cli": 3,
    "tau-bench": 569,
    "swe-agent": 448,
}


def rows_of_table(name, harness):
    with gzip.open(DATA / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if name == "turns":
        return [row for row in rows if row["harness"] == harness]
    sessions = {(row["source"], row["session"]) for row in rows_of_table("turns", harness)}
    return [row for row in rows if (row["source"], row["session"]) in sessions]


@pytest.fixture(scope="module", params=FOLDERS)
def harness(request):
    return request.param


@pytest.fixture(scope="module")
def engine(harness, tmp_path_factory):
    engine = open_engine(str(tmp_path_factory.mktemp("real") / "ledger.db"))
    upgrade(engine)
    assert imported(engine, *sorted(LOGS.glob(FOLDERS[harness]))) == []
    yield engine
    engine.dispose()


def id_of(harness, row, times):
    """Return the ledger's id of the other reader's turn."""
    session, turn = row["session"], row["turn_id"]
    if harness == "codex":
        return turn if "-" in turn else f"{session}/{turn}"
    if harness in ("pi", "ohmypi"):
        return f"{turn}-{times[session, turn]}"
    if harness == "tau-bench":
        return f"gpt-4o-airline/{session.removeprefix('airline-')}/{turn}"
    return session.removesuffix(".traj") if harness == "swe-agent" else turn


def steering():
    """Return the entries of Oh My Pi that a user wrote while the agent was at work."""
    found, standing = set(), None
    for path in sorted(LOGS.glob(FOLDERS["ohmypi"] + "/*")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            entry = json.loads(line)
            message = entry.get("message") or {}
            if message.get("role") == "assistant":
                standing = message["stopReason"]
            elif message.get("steering") and standing == "toolUse":
                found.add(entry["id"])
    return found


def other_turns(harness, ours):
    """Return the other reader's turns by the ledger's ids, those of steering joined."""
    times = {}
    for turn in ours:
        name, _, at_ms = turn.turn_id.partition("-")
        times[turn.session_id, name] = at_ms
    joined = steering() if harness == "ohmypi" else set()
    found: dict[str, Other] = {}
    last = ""
    rows = rows_of_table("turns", harness)
    assert sum(float(row["n_tool_calls"] or 0) > 0 for row in rows) == WITH_CALLS[harness]
    for row in rows:
        told = Other(int(float(row["n_tool_calls"] or 0)), row["role"], row["ended"] == "True")
        if row["turn_id"] in joined:
            found[last] = told._replace(calls=found[last].calls + told.calls)
        elif row["end_reason"] != "error":  # a prompt that came to nothing caused no request
            last = id_of(harness, row, times)
            found[last] = told
    return found


def test_turns_agree_on_calls_role_and_end(harness, engine):
    with engine.connect() as connection:
        rows = connection.execute(select(turns)).all()
    ours = {row.turn_id: Other(row.tool_calls, row.role, row.status == "ended") for row in rows}
    other = other_turns(harness, rows)
    assert {key: ours.get(key) for key in other} == other
    # The five trajectories told twice, as examples, are not in the other's table.
    assert {key.split("/")[-1][:8] for key in ours.keys() - other.keys()} <= {"example_"}


def test_requests_and_tokens_agree(harness, engine):
    calls = rows_of_table("calls", harness)
    with engine.connect() as connection:
        made = connection.execute(select(requests)).all()
    ours: Counter[str] = Counter()
    for row in made:
        ours["input_tokens"] += row.uncached
        ours["cache_read"] += row.cache_read
        ours["cache_write"] += row.cache_write_1h + row.cache_write_other
        beside = row.reasoning if harness in ("opencode", "gemini-cli") else 0
        ours["output_tokens"] += row.output - beside
    theirs = {name: sum(int(float(row[name] or 0)) for row in calls) for name in ours}
    assert dict(ours) == theirs
    # What the other reader has of requests without tokens came to nothing, or was cut short.
    used = [row for row in calls if any(float(row[name] or 0) for name in theirs)]
    assert len(made) == len(used)


def test_compactions_agree(harness, engine):
    with (DATA / "compactions.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["harness"] == harness]
    with engine.connect() as connection:
        found = {row.turn_id: row for row in connection.execute(select(compactions))}
        of_turns = {row.turn_id: row for row in connection.execute(select(turns))}
    assert len(found) == len(rows)
    for row in rows:
        ours, turn = found[row["turn_id"]], of_turns[row["turn_id"]]
        assert (ours.trigger, ours.context_before) == (row["trigger"], float(row["pre_tokens"]))
        assert ours.context_after == float(row["ctx_first_call_after"])
        assert ours.calls_before == float(row["tool_calls_before"])
        assert turn.tool_calls - ours.calls_before == float(row["tool_calls_after"])
        assert turn.requests - ours.requests_before == float(row["llm_calls_after"])


def test_told_again_nothing_changes(harness, engine):
    assert kept(engine) == recounted(engine)
    before = everything(engine)
    paths = sorted(LOGS.glob(FOLDERS[harness]))
    assert imported(engine, *paths) == []
    assert everything(engine) == before
    facts = {name: rows for name, rows in before.items() if name not in ("sources", "threads")}
    assert imported(engine, *paths, reread=True) == []
    again = everything(engine)
    assert {name: again[name] for name in facts} == facts


@pytest.mark.parametrize("kind", ["codex", "pi", "ohmypi"])
def test_real_logs_that_grow(kind, tmp_path):
    sources = defaultdict(bytes)
    for path in sorted(LOGS.glob(FOLDERS[kind] + "/*"))[:6]:
        sources[path.name.removesuffix(".gz")] = gzip.decompress(path.read_bytes())[:400_000]
    folder = tmp_path / "logs"
    folder.mkdir()
    ledgers = []
    for cuts in ([0.13, 0.41, 0.42, 0.77, 1], [1]):
        engine = open_engine(str(tmp_path / f"{len(cuts)}.db"))
        upgrade(engine)
        for cut in cuts:
            for name, data in sources.items():
                (folder / name).write_bytes(data[: int(len(data) * cut)])
            assert imported(engine, folder) == []
        assert kept(engine) == recounted(engine)
        with engine.connect() as connection:
            ledgers.append(
                [
                    sorted(map(tuple, connection.execute(select(table))), key=repr)
                    for table in (turns, requests, compactions)
                ]
            )
        engine.dispose()
    assert ledgers[0] == ledgers[1]
