"""Killed at random moments: what was acknowledged is there, once, and the histogram is right."""

import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from examples.claude_code_tree import write_tree
from ledger.database import open_engine
from ledger.importing import import_logs
from ledger.schema import ledger_version, metadata
from migrations.upgrade import upgrade
from tests.e2e.conftest import ROOT, environment
from tests.faults.writers import ROUNDS, SEED, Acknowledged, Fleet, check
from tests.integration.ledger.rows import rows_of

pytestmark = pytest.mark.enable_socket

WRITER = """
import sys
from ledger.database import open_engine, writing
from ledger.events import RequestMade, TurnReached, TurnStarted
from ledger.recording import record
from ledger.usage import Usage
url, prefix = sys.argv[1:]
engine = open_engine(url)
for number in range(10**6):
    turn_id = f"{prefix}-{number}"
    made = number % 7 + 1
    asked = [
        RequestMade(f"{turn_id}:{place}", turn_id, turn_id, place, None, None, Usage(output=1),
                    (("c", "read"),))
        for place in range(made)
    ]
    with writing(engine) as connection:
        record(connection, [TurnStarted(turn_id, turn_id, turn_id, "test", "main"), *asked[:3]])
    with writing(engine) as connection:
        record(connection, [*asked[3:], TurnReached(turn_id, turn_id, "ended", None, None)])
    sys.stdout.write(f"{turn_id} {made}\\n")
    sys.stdout.flush()
"""


def test_a_worker_is_killed(database, serve):
    draw = random.Random(SEED)
    service = serve(database.url, "--workers", "2")
    told = []
    for number in range(ROUNDS):
        with Fleet(service.address, SEED + number, prefix=f"r{number}-") as fleet:
            for _ in range(2):
                time.sleep(draw.uniform(0.1, 1.0))
                for victim in draw.sample(workers := service.workers(), min(1, len(workers))):
                    with suppress(psutil.NoSuchProcess):
                        victim.kill()
            time.sleep(draw.uniform(0.1, 0.5))
        told += fleet.told
        assert check(database.url, told) > 0
    assert all(one.ended for one in told[:1])
    service.until_ready()


def test_the_whole_service_is_killed(database, serve):
    draw = random.Random(SEED)
    service = serve(database.url)
    told = []
    for number in range(ROUNDS):
        with Fleet(service.address, SEED + number, prefix=f"r{number}-") as fleet:
            time.sleep(draw.uniform(0.1, 1.0))
            service.kill()
            service.start()
            time.sleep(draw.uniform(0.1, 0.3))
        told += fleet.told
        assert check(database.url, told) > 0


def test_a_writer_is_killed(database, tmp_path):
    draw = random.Random(SEED)
    told = Acknowledged()
    for number in range(ROUNDS):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, database.url, f"r{number}{name}"],
                cwd=ROOT,
                env=environment(tmp_path),
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in "ab"
        ]
        first = [writer.stdout.readline() for writer in writers]
        for writer in writers:
            time.sleep(draw.uniform(0.0, 0.5))
            writer.send_signal(signal.SIGKILL)
        for line, writer in zip(first, writers, strict=True):
            for said in [line, *writer.communicate()[0].splitlines()]:
                turn_id, _, made = said.strip().partition(" ")
                if made:
                    told.ended[turn_id] = int(made)
        assert check(database.url, [told]) > 0
    assert len(told.ended) >= 2 * ROUNDS


def test_an_importer_is_killed_and_started_again(database, tmp_path):
    draw = random.Random(SEED)
    write_tree(tmp_path / "logs", sessions=30, body_chars=200)
    alone = open_engine(str(tmp_path / "alone.db"))
    upgrade(alone)
    begun = time.monotonic()
    import_logs(alone, [tmp_path / "logs"])
    took = time.monotonic() - begun
    expected = rows_of(alone)
    alone.dispose()
    words = [sys.executable, "-m", "compactuary", "import", str(tmp_path / "logs"), "--db"]
    words += [database.url]
    told_of = {"cwd": ROOT, "env": environment(tmp_path), "stderr": subprocess.DEVNULL}
    for number in range(ROUNDS):
        if number:
            _emptied(database.url)
        for _ in range(3):
            importer = subprocess.Popen(words, stdout=subprocess.DEVNULL, **told_of)
            with suppress(subprocess.TimeoutExpired):
                # Most of a start is Python's own; what follows is what matters.
                importer.wait(0.6 + draw.uniform(0, 2 * took))
            importer.kill()
            importer.wait()
            check(database.url, [])
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, **told_of)
        engine = open_engine(database.url)
        assert rows_of(engine) == expected
        engine.dispose()


def _emptied(url):
    engine = open_engine(url)
    with engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            if table is not ledger_version:
                connection.execute(table.delete())
    engine.dispose()


@pytest.mark.postgres
def test_postgresql_crashes_and_comes_back(own_postgres, serve):
    draw = random.Random(SEED)
    engine = open_engine(own_postgres.url)
    upgrade(engine)
    engine.dispose()
    service = serve(own_postgres.url, "--workers", "2")
    told = []
    for number in range(ROUNDS):
        with Fleet(service.address, SEED + number, prefix=f"r{number}-") as fleet:
            time.sleep(draw.uniform(0.1, 1.0))
            own_postgres.crash()
            time.sleep(draw.uniform(0.0, 0.5))
            own_postgres.start()
            time.sleep(draw.uniform(0.1, 0.5))
        told += fleet.told
        assert check(own_postgres.url, told) > 0
    service.until_ready()
