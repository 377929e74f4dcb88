"""Importers at work at the same time leave what one of them would have."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from examples.claude_code_tree import write_tree
from ledger.database import open_engine
from ledger.importing import import_logs
from migrations.upgrade import upgrade
from tests.integration.ledger.rows import imported, kept, recounted, rows_of

REPOSITORY = Path(__file__).parents[3]
PROGRAM = """
import sys
from pathlib import Path
from ledger.database import open_engine
from ledger.importing import import_logs
reports = import_logs(open_engine(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
sys.exit(any(report.error for report in reports))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    write_tree(root, sessions=4, body_chars=20)
    return root


@pytest.fixture
def expected(tree, tmp_path):
    engine = open_engine(str(tmp_path / "alone.db"))
    upgrade(engine)
    assert imported(engine, tree) == []
    yield rows_of(engine)
    engine.dispose()


def url_of(engine):
    return engine.url.render_as_string(hide_password=False)


def test_threads_on_the_same_tree(ledger, tree, expected):
    start = Barrier(3)

    def work(_):
        engine = open_engine(url_of(ledger))
        start.wait()
        try:
            return [report.error for report in import_logs(engine, [tree]) if report.error]
        finally:
            engine.dispose()

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, range(3))) == [[], [], []]
    assert rows_of(ledger) == expected
    assert kept(ledger) == recounted(ledger)


def test_processes_on_the_same_tree_in_opposite_orders(ledger, tree, expected):
    files = sorted(map(str, tree.rglob("*.jsonl")))
    arguments = [sys.executable, "-c", PROGRAM, url_of(ledger)]
    running = [
        subprocess.Popen([*arguments, *order], cwd=REPOSITORY, stderr=subprocess.PIPE)
        for order in (files, files[::-1])
    ]
    for process in running:
        _, told = process.communicate(timeout=60)
        assert (process.returncode, told) == (0, b"")
    assert kept(ledger) == recounted(ledger)
    turns = {row["turn_id"]: row for row in rows_of(ledger)["turns"]}
    assert turns == {row["turn_id"]: row for row in expected["turns"]}
    assert rows_of(ledger)["tool_calls"] == expected["tool_calls"]
