"""The newest migration runs while workers of the version before serve: nothing fails or is lost."""

import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import httpx
import pytest

from ledger.database import open_engine, reading
from migrations.upgrade import downgrade, head, revision_of
from tests.e2e.conftest import ROOT, environment
from tests.faults.conftest import PATIENCE_SECONDS, Service
from tests.faults.writers import SEED, Fleet, check

pytestmark = pytest.mark.enable_socket

BEFORE = "2026_11_30_0004"
#: This version's command, in all that touches what the revision changes as the one before.
OLD_COMMAND = f"""
import sys
from sqlalchemy import select
from ledger import retention
from ledger.schema import ledger_version, sources
from migrations import upgrade

def pruned_before(connection):
    return connection.scalar(select(sources.c.offset).where(sources.c.path == "pruned:"))

retention.pruned_before = pruned_before
upgrade.head = lambda: {BEFORE!r}
from compactuary.__main__ import main
sys.exit(main())
"""


class OldService(Service):
    """A service of the version before, with one worker."""

    def __init__(self, folder, url):
        super().__init__(folder, url)

    def start(self):
        self._words[1:3] = ["-c", OLD_COMMAND] if self._words[1] == "-m" else self._words[1:3]
        super().start()


class Asker:
    """A thread that asks for decisions, and what it was answered."""

    def __init__(self, address):
        self.statuses = []
        self._address = address
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_error):
        self._stop.set()
        self._thread.join()

    def _ask(self):
        body = {"role": "main", "calls": 3, "cost": 4, "saving": 4}
        with httpx.Client(base_url=self._address, trust_env=False, timeout=30) as client:
            while not self._stop.is_set():
                self.statuses.append(client.post("/should-compact", json=body).status_code)


@pytest.fixture
def old_service(database, tmp_path):
    """A service of the version before on a ledger of that version."""
    engine = open_engine(database.url)
    downgrade(engine, BEFORE)
    engine.dispose()
    service = OldService(tmp_path, database.url)
    yield service
    service.kill()


def ended(fleets):
    return sum(len(told.ended) for fleet in fleets for told in fleet.told)


def until_more(fleets, turns):
    """Wait until so many more turns are acknowledged."""
    wanted = ended(fleets) + turns
    deadline = time.monotonic() + PATIENCE_SECONDS
    while ended(fleets) < wanted:
        assert time.monotonic() < deadline, [fleet.problems for fleet in fleets]
        time.sleep(0.02)


def test_an_upgrade_under_load(database, old_service, serve, tmp_path):
    fleets = [Fleet(old_service.address, SEED, writers=2, prefix="o-")]
    askers = [Asker(old_service.address)]
    with ExitStack() as stack:
        stack.enter_context(fleets[0])
        stack.enter_context(askers[0])
        until_more(fleets, 20)
        words = [sys.executable, "-m", "compactuary", "db", "upgrade", "--db", database.url]
        subprocess.run(words, cwd=ROOT, env=environment(tmp_path), check=True)
        until_more(fleets, 20)
        # The new version begins beside the old one.
        new_service = serve(database.url)
        fleets.append(Fleet(new_service.address, SEED + 1, writers=2, prefix="n-"))
        askers.append(Asker(new_service.address))
        stack.enter_context(fleets[1])
        stack.enter_context(askers[1])
        for fleet in fleets:
            until_more([fleet], 20)
    engine = open_engine(database.url)
    with reading(engine) as connection:
        assert revision_of(connection) == head()
    engine.dispose()
    assert [fleet.refused for fleet in fleets] == [0, 0]
    assert {status for one in askers for status in one.statuses} == {200}
    assert check(database.url, [told for fleet in fleets for told in fleet.told]) > 0


def test_the_newest_revision_is_the_one_tried():
    assert head() == "2026_12_01_0005"
