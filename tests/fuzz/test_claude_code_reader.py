"""Damaged Claude Code logs are read or refused: the reader never crashes, an import never halves.

FUZZ_INPUTS (`make fuzz`) is how many logs are made up for the reader; a 500th as many go through
a whole import, too. FUZZ_SEED begins elsewhere.
"""

import os
import sqlite3
from contextlib import closing
from dataclasses import fields, is_dataclass
from io import BytesIO
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from compactuary.errors import SourceError
from ledger.database import open_engine
from ledger.importing import import_logs
from ledger.log_file import ImportOptions, LogFile
from ledger.readers.claude_code import HARNESS
from migrations.upgrade import upgrade
from tests.fuzz.damage import PLACES, damaged_logs
from tests.integration.ledger.rows import everything, kept, recounted, rows_of
from tests.integration.ledger.test_fuzz import shaped_like_real

INPUTS = int(os.environ.get("FUZZ_INPUTS", "2000"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
#: Hypothesis remembers what it has tried: more at once would not fit in memory.
ROUND = 20_000
IMPORTS = max(20, INPUTS // 500)
PHASES = (Phase.generate, Phase.shrink)
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
LARGEST = 2**63 - 1


def rounds(total):
    """So many inputs in rounds, each a seed and how many."""
    starts = enumerate(range(0, total, ROUND), SEED)
    return [(number, min(ROUND, total - start)) for number, start in starts]


def run(check, number, count):
    """Run a check on so many inputs, the same ones for the same number."""
    made = 0

    def each(logs):
        nonlocal made
        for data in logs:
            made += 1
            check(data)

    limits = settings(
        max_examples=max(1, count // PLACES),
        deadline=None,
        database=None,
        phases=PHASES,
        suppress_health_check=CHECKS,
    )
    seed(number)(limits(given(damaged_logs())(each)))()
    assert made >= count // PLACES * PLACES


class InMemory(type(Path())):
    """A file's name, with bytes that stand nowhere: to open a file costs as much as to read it."""

    data = b""

    def open(self, *_args, **_kwargs):
        return BytesIO(self.data)


def refused_well(error, path):
    assert isinstance(error, SourceError)
    assert error.where.startswith(str(path))
    assert error.problem
    assert error.remedy


def storable(value):
    """Say whether both databases can keep a value."""
    if isinstance(value, str):
        return "\0" not in value and _encodes(value)
    if isinstance(value, int):
        return -LARGEST - 1 <= value <= LARGEST
    if isinstance(value, tuple):
        return all(map(storable, value))
    if is_dataclass(value):
        return all(storable(getattr(value, one.name)) for one in fields(value))
    return value is None


def _encodes(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize(("number", "count"), rounds(INPUTS))
def test_reader(number, count):
    path = InMemory("logs/s0.jsonl")
    options = ImportOptions(role_by_project=True)

    def check(data):
        path.data = data
        file = LogFile(path, HARNESS, len(data), 0)
        try:
            told = [one for some in file.batches({}.get, options, 5) for one in some]
        except SourceError as error:
            refused_well(error, path)
            return
        assert all(map(storable, [*told, *file.events]))
        for thread_id, row in file.states.items():
            assert row["thread_id"] == thread_id
            assert storable(tuple(row.values()))
            assert orjson.loads(row["state"])["session_id"] == row["session_id"]
        assert file.offset <= len(data)

    run(check, number, count)


@pytest.fixture
def memory(tmp_path):
    """A ledger in memory that has a log, and what brings it back to that."""
    engine = open_engine("sqlite://")
    upgrade(engine)
    known = tmp_path / "known.jsonl"
    known.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in shaped_like_real(0)))
    (report,) = import_logs(engine, [known])
    assert report.error is None
    with closing(sqlite3.connect(":memory:")) as copy, engine.connect() as connection:
        database = connection.connection.driver_connection
        database.backup(copy)
        yield engine, lambda: copy.backup(database)
    engine.dispose()


def test_import(memory, tmp_path):
    engine, put_back = memory
    path = tmp_path / "logs" / "s0.jsonl"
    path.parent.mkdir()
    before = everything(engine)

    def check(data):
        put_back()
        path.write_bytes(data)
        (report,) = import_logs(engine, [path])
        if report.error is not None:
            refused_well(report.error, path)
            assert everything(engine) == before
            return
        assert kept(engine) == recounted(engine)
        whole = rows_of(engine)
        (again,) = import_logs(engine, [path], ImportOptions(reread=True))
        assert again.error is None
        assert rows_of(engine) == whole

    run(check, SEED, IMPORTS)
