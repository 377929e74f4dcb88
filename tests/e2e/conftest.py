"""The command in processes of its own, on the example's logs, as a person would start it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which nothing of this machine's agents or ledgers is found."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMPACTUARY_", "CLAUDE_", "XDG_"))
    }
    return kept | {"PYTHONPATH": str(ROOT), "HOME": str(home), "COLUMNS": "200"} | more


@pytest.fixture
def compactuary(tmp_path: Path) -> Callable[..., Done]:
    """Return what runs the command in a folder and a home of its own; warnings are errors."""

    def run(*words: object, **variables: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "compactuary", *map(str, words)],
            cwd=tmp_path,
            env=environment(tmp_path, **variables),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the example's table of turns and its Claude Code tree."""
    folder = tmp_path_factory.mktemp("example")
    words = [sys.executable, "-W", "error", "-m", "examples", str(folder)]
    subprocess.run(words, check=True, cwd=ROOT, env=environment(folder), capture_output=True)
    return folder


@pytest.fixture(scope="session")
def example_ledger(example: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a ledger the example was imported into; nobody writes to it."""
    db = tmp_path_factory.mktemp("ledger") / "ledger.db"
    words = [sys.executable, "-W", "error", "-m", "compactuary"]
    told = subprocess.run(
        [*words, "import", str(example), "--db", str(db)],
        check=True,
        cwd=ROOT,
        env=environment(db.parent),
        capture_output=True,
        text=True,
    )
    assert told.stdout.startswith("25 files read, 0 unchanged: 3,415 new turns,")
    return db


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


Start = Callable[..., tuple[httpx.Client, subprocess.Popen[str]]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Start]:
    """Return what starts the service on a free port and waits until it is ready."""
    with _starting(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def serve_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Return the same for a service that all tests of a file share."""
    with _starting(tmp_path_factory.mktemp("served")) as start:
        yield start


@contextmanager
def _starting(folder: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []

    def start(db: Path, *words: str) -> tuple[httpx.Client, subprocess.Popen[str]]:
        port = free_port()
        command = [sys.executable, "-W", "error", "-m", "compactuary", "serve"]
        process = subprocess.Popen(
            [*command, "--db", str(db), "--port", str(port), *words],
            cwd=folder,
            env=environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        # Without kept-alive connections each question may meet another worker.
        limits = httpx.Limits(max_keepalive_connections=0)
        client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=10, trust_env=False
        )
        _wait_until_ready(client, process)
        return client, process

    yield start
    for process in running:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_SECONDS)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stderr and process.stderr.read()
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail("the service did not get ready")
