"""Real logs against the tables that another reader made of them."""

import csv
import gzip
from collections import Counter, defaultdict
from random import Random

import pytest
from sqlalchemy import select

from ledger.clock import milliseconds
from ledger.database import open_engine
from ledger.readers.discovery import log_files
from ledger.schema import requests, turns
from migrations.upgrade import upgrade
from tests.conftest import SHARED, needs_shared_data
from tests.integration.ledger.rows import everything, imported, kept, recounted, token_sums

pytestmark = needs_shared_data

DATA = SHARED / "data"
FOLDERS = [DATA / "logs" / "spotter", DATA / "logs" / "entireio+cli" / "claude-code"]
SOURCES = ("spotter", "entireio+cli")


def table(name):
    with gzip.open(DATA / f"{name}.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["source"] in SOURCES]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    engine = open_engine(str(tmp_path_factory.mktemp("real") / "ledger.db"))
    upgrade(engine)
    assert imported(engine, *FOLDERS) == []
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def other():
    """The other reader's turns of Claude Code that called a tool."""
    return [row for row in table("turns") if row["harness"] == "claude-code"]


def test_turns_agree_on_calls_role_and_end(engine, other):
    ours, agents = defaultdict(list), defaultdict(list)
    with engine.connect() as connection:
        for row in connection.execute(select(turns)):
            ours[row.started_ms].append(row)
            agents[row.thread_id.partition("/agent-")[2]].append(row)
    wanted = [row for row in other if float(row["n_tool_calls"] or 0) > 0]
    assert len(wanted) > 1_500
    agreed, taken = 0, set()
    for row in wanted:
        expected = (int(float(row["n_tool_calls"])), row["role"], row["ended"] == "True")
        # The other table knows a sub-agent by its id where it does not know its beginning.
        named = agents[row["turn_id"].split(":")[0].removeprefix("agent-")]
        for turn in [*ours[milliseconds(row["started_at"])], *named]:
            if turn.turn_id not in taken and expected == (
                turn.tool_calls,
                turn.role,
                turn.status == "ended",
            ):
                taken.add(turn.turn_id)
                agreed += 1
                break
    assert agreed / len(wanted) >= 0.98


def test_tokens_agree(engine, other):
    sessions = {row["session"] for row in other}
    calls = [row for row in table("calls") if row["session"] in sessions]
    columns = {
        "input_tokens": "uncached",
        "cache_read": "cache_read",
        "cache_write": "cache_write",
        "output_tokens": "output",
    }
    with engine.connect() as connection:
        summaries = connection.execute(
            select(requests).where(requests.c.kind == "compaction")
        ).all()
    ours = token_sums(engine)
    for theirs, name in columns.items():
        expected = sum(float(row[theirs] or 0) for row in calls)
        of_compactions = sum(getattr(row, name, 0) for row in summaries)
        if name == "cache_write":
            of_compactions = sum(row.cache_write_5m + row.cache_write_1h for row in summaries)
        assert ours[name] - of_compactions == pytest.approx(expected, rel=0.005), name


def test_the_histogram_is_that_of_the_turns(engine):
    assert kept(engine) == recounted(engine)


def test_importing_again_changes_nothing(engine):
    before = everything(engine)
    assert imported(engine, *FOLDERS) == []
    assert everything(engine) == before


def test_the_order_of_files_does_not_matter_for_sums(engine, tmp_path):
    paths = log_files(FOLDERS)
    Random(3).shuffle(paths)
    shuffled = open_engine(str(tmp_path / "shuffled.db"))
    upgrade(shuffled)
    for chunk in range(0, len(paths), 50):
        assert imported(shuffled, *paths[chunk : chunk + 50]) == []
    assert token_sums(shuffled) == token_sums(engine)
    names = (requests.c.request_id, requests.c.output, requests.c.cache_read)
    with engine.connect() as one, shuffled.connect() as two:
        assert Counter(one.execute(select(*names)).all()) == Counter(
            two.execute(select(*names)).all()
        )
    assert kept(shuffled) == recounted(shuffled)
    shuffled.dispose()
