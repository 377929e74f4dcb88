"""Logs read in parts make the ledger that one process makes, whoever dies on the way."""

import os
import signal
import sqlite3
from contextlib import closing
from itertools import combinations, count

import numpy as np
import pytest

from compactuary import log_parts
from compactuary.errors import InputError, SourceError
from compactuary.log_ledger import log_ledger
from compactuary.log_parts import log_parts_ledger
from compactuary.workers import HERE, Workers, workers
from examples.claude_code_tree import write_tree
from tests.conftest import SHARED, needs_shared_data

TABLES = (
    *("turns", "requests", "tool_calls", "compactions", "threads", "sources"),
    *("histogram", "request_pace"),
)


def rows(url):
    """Every row of a ledger, without the versions that say in how many steps it was made."""
    found = {}
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        for table in TABLES:
            told = connection.execute(f"PRAGMA table_info({table})")
            names = [f'"{row[1]}"' for row in told if row[1] != "version"]
            every = connection.execute(f"SELECT {', '.join(names)} FROM {table}")
            found[table] = sorted(every, key=repr)
    return found


def whole(path):
    with log_ledger(path, role_by_project=True) as url:
        return rows(url)


def in_parts(path, by, **more):
    with log_parts_ledger(path, by, role_by_project=True, **more) as url:
        return rows(url)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    write_tree(folder, sessions=16)
    return folder


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(log_parts, "_LEAST_BYTES", 1)


def test_parts_with_an_id_in_common_are_joined():
    draw = np.random.default_rng(2)
    for _ in range(50):
        sets = [set(draw.integers(0, 60, draw.integers(0, 8)).tolist()) for _ in range(7)]
        joined = log_parts._Joined(len(sets))
        for one, other in log_parts._alike([np.array(sorted(own), np.uint64) for own in sets]):
            assert sets[one] & sets[other]
            joined.join(one, other)
        expected = [{place} for place in range(len(sets))]
        for one, other in combinations(range(len(sets)), 2):
            if sets[one] & sets[other]:
                union = expected[one] | expected[other]
                for place in union:
                    expected[place] = union
        assert {frozenset(own) for own in joined.groups()} == set(map(frozenset, expected))


def test_parts_make_the_same_ledger(tree, small_parts):
    done = []
    reports = []
    found = in_parts(
        tree, Workers(count=4), progress=lambda *told: done.append(told), reported=reports.append
    )
    assert found == whole(tree)
    assert done == [(number, len(done)) for number in range(1, len(done) + 1)]
    assert len(done) > 3
    assert len(reports) == len(found["sources"])


def test_forks_in_different_parts_are_read_again_together(tree, small_parts, monkeypatch):
    # Every file for itself: sub-agents without their parents, forks without their origin.
    monkeypatch.setattr(log_parts, "_session_names", lambda _: set())
    monkeypatch.setattr(log_parts, "_NESTED", 0)
    calls = []
    read = log_parts._read
    monkeypatch.setattr(log_parts, "_read", lambda part: calls.append(part) or read(part))
    assert in_parts(tree, Workers(count=200)) == whole(tree)
    files = [file for part in calls for file in part.files]
    assert len(files) > len(set(files)) > 20


@needs_shared_data
def test_real_logs_in_parts(small_parts):
    logs = SHARED / "data" / "logs"
    assert in_parts(logs, Workers(count=3)) == whole(logs)


def test_rows_of_tables_are_read_with_the_turns_they_belong_to(tmp_path):
    (tmp_path / "a.csv").write_text("turn_id,uncached,output\nt1,5,1\n", "utf-8")
    (tmp_path / "b.csv").write_text("turn_id,role,tool_calls\nt1,dev,2\n", "utf-8")
    found = in_parts(tmp_path, Workers(count=2))
    assert found == whole(tmp_path)
    assert len(found["requests"]) == 1


def test_a_broken_file_is_told_of_as_by_one_process(tree, tmp_path):
    write_tree(tmp_path, sessions=3)
    file = min(tmp_path.rglob("*.jsonl"))
    file.write_text('{"type": "user"\n{}\n' + file.read_text("utf-8"), "utf-8")
    (tmp_path / "odd.jsonl").write_text('{"a": 1}\n', "utf-8")
    told = []
    for read in (lambda: whole(tmp_path), lambda: in_parts(tmp_path, HERE)):
        with pytest.raises(SourceError) as error:
            read()
        told.append(str(error.value))
    assert told[0] == told[1]
    reports = []
    in_parts(tmp_path, HERE, skip_corrupt=True, reported=reports.append)
    assert [one.path.name for one in reports if one.outcome == "unrecognised"] == ["odd.jsonl"]


def test_a_worker_killed_half_way_changes_nothing(tree, small_parts):
    distributed = pytest.importorskip("distributed")
    local = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**local) as cluster,
        distributed.Client(cluster) as client,
    ):
        victims = iter(client.run(os.getpid).values())
        told = count()

        def kill(_done, _of):
            if next(told) == 1:
                os.kill(next(victims), signal.SIGKILL)

        assert in_parts(tree, Workers(client, 4), progress=kill) == whole(tree)
        assert next(told) > 3


def test_nobody_at_the_address_is_told(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("compactuary.workers._PATIENCE", "1s")
    for address in ("nonsense", "tcp://127.0.0.1:9"):
        with pytest.raises(InputError, match="no scheduler answers here"), workers(address):
            pass
    with workers(None) as here:
        assert list(here.map(abs, [-1, 2])) == [1, 2]
