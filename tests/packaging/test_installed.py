"""The wheel at work in a folder whose own packages are called as our rooms are."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

REPO = Path(__file__).parents[2]
DEADLINE_SECONDS = 30
POOL = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

def where(name):
    from importlib import import_module
    return import_module(name).__file__

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        print(*pool.map(where, ["compactuary.estimator", "compactuary.policy"]), sep="\\n")
"""
EVERY_MODULE = """
from importlib import import_module
from pkgutil import walk_packages
import compactuary
for module in walk_packages(compactuary.__path__, "compactuary."):
    if ".migrations." not in module.name:  # Alembic runs those by their path
        print(import_module(module.name).__file__)
"""


@pytest.fixture(scope="module")
def example_logs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("example") / "logs"
    subprocess.run([sys.executable, "-m", "examples", str(folder)], cwd=REPO, check=True)
    return folder


@pytest.fixture(scope="module")
def database(full, decoys, tmp_path_factory) -> str:
    url = f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.db"
    done = full.run(full.compactuary, "db", "upgrade", "--db", url, cwd=decoys)
    assert done.returncode == 0, done.stderr
    return url


@pytest.fixture(scope="module")
def filled(full, decoys, database, example_logs) -> str:
    done = full.run(full.compactuary, "import", "--db", database, example_logs, cwd=decoys)
    assert done.returncode == 0, done.stderr
    return database


def test_every_module_comes_from_the_wheel(full, decoys):
    done = full.run(full.python, "-c", EVERY_MODULE, cwd=decoys)
    assert done.returncode == 0, done.stderr
    files = done.stdout.splitlines()
    assert any(file.endswith("compactuary/policy/__init__.py") for file in files)
    assert [file for file in files if not file.startswith(str(full.folder))] == []


def test_no_room_can_be_imported_flat(full, rooms, tmp_path):
    script = "import importlib.util, sys; print(*map(importlib.util.find_spec, sys.argv[1:]))"
    done = full.run(full.python, "-c", script, *rooms, cwd=tmp_path)
    assert done.stdout.split() == ["None"] * len(rooms), done.stderr


def test_a_pool_of_spawned_processes_finds_the_estimator(full, decoys):
    (decoys / "pool.py").write_text(POOL)
    done = full.run(full.python, "pool.py", cwd=decoys)
    assert done.returncode == 0, done.stderr
    estimator, policy = done.stdout.splitlines()
    assert Path(estimator).is_relative_to(full.folder)
    assert estimator.endswith("compactuary/estimator/__init__.py")
    assert policy.endswith("compactuary/policy/__init__.py")


def test_the_migrations_run_twice(full, decoys, database):
    done = full.run(full.compactuary, "db", "upgrade", "--db", database, cwd=decoys)
    assert done.returncode == 0, done.stderr


def test_an_empty_ledger_is_answered_from_the_table_in_the_wheel(full, decoys, tmp_path):
    words = ["--role", "main", "--calls", "3", "--cost", "6", "--saving", "3", "--json"]
    new = tmp_path / "new.db"
    made = full.run(full.compactuary, "db", "upgrade", "--db", new, cwd=decoys)
    assert made.returncode == 0, made.stderr
    done = full.run(full.compactuary, "decide", *words, "--db", new, cwd=decoys)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["decision"], answer["basis"]["source"]) == ("compact", "standard")
    assert answer["basis"]["rests_on"][0]["turns"] > 1000


def test_imported_logs_make_a_table(full, decoys, filled):
    done = full.run(full.compactuary, "table", "--json", "--db", filled, cwd=decoys)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2) as response:
            return response.status == 200
    except (URLError, ConnectionError, TimeoutError):
        return False


def wait_for(condition, process) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert process.poll() is None, f"the server ended with {process.returncode}"
        assert time.monotonic() < deadline, "the server did not come up"
        time.sleep(0.1)


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if is_worker(child)]


def is_worker(pid: str) -> bool:
    return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()


@contextmanager
def paused(pid: int):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def serving(full, cwd, url, port):
    words = ["serve", "--workers", "2", "--host", "127.0.0.1", "--port", str(port), "--db", url]
    log = cwd / "serve.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [full.compactuary, *words], cwd=cwd, env=full.variables, stdout=out, stderr=out
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        sys.stdout.write(log.read_text())


@pytest.mark.enable_socket
@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
def test_two_workers_serve_and_stop_on_sigterm(full, decoys, filled):
    port = free_port()
    health = f"http://127.0.0.1:{port}/healthz"
    with serving(full, decoys, filled, port) as server:
        wait_for(lambda: answers(health), server)
        wait_for(lambda: len(workers_of(server.pid)) == 2, server)
        workers = workers_of(server.pid)
        for asleep in workers:
            # Both accept on one socket: while one can't, the answer is the other's.
            with paused(asleep):
                wait_for(lambda: answers(health), server)
        server.send_signal(signal.SIGTERM)
        assert server.wait(DEADLINE_SECONDS) in {0, -signal.SIGTERM}
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert not answers(health)
