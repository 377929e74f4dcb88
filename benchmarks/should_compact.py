"""Server CPU of ``/should-compact`` against a bare FastAPI endpoint with the same models."""

import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.database import DB_VARIABLE, open_engine, writing
from migrations.upgrade import upgrade

REQUESTS = 4000
REPEATS = 3
FEW_TURNS, MANY_TURNS = 1_000, 1_000_000
BODY = {
    "role": "role-3",
    "calls": 12,
    "context_tokens": 150_000,
    "model": "claude-opus-4-8",
    "turn_id": "turn-1",
    "session_id": "session-1",
}
#: The bare endpoint: an app of its own beside ours in one process, with nothing but one route of
#: the same models and an answer that is there already.
BARE = """
from datetime import UTC, datetime

from fastapi import FastAPI

from api.app import create_app
from api.estimates import Estimates
from api.schemas import ShouldCompact
from policy.decision import Answer, Question, decide
from policy.prices import GenaiPriceBook

ANSWER = decide(
    Question("role-3", 12, context_tokens=150_000, model="claude-opus-4-8"),
    Estimates().snapshot(0),
    GenaiPriceBook(),
    at=datetime.now(UTC),
    decision_id="0123456789abcdef0123456789abcdef",
)
ours, bare = create_app(), FastAPI()

@bare.post("/bare")
async def answer(body: ShouldCompact) -> Answer:
    return ANSWER

async def app(scope, receive, send):
    await (bare if scope.get("path") == "/bare" else ours)(scope, receive, send)
"""


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(port: int, path: str, count: int) -> list[float]:
    """Ask over one connection; return what each answer took, in seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    # Every question is about a request of its own: a repeated one has its answer already.
    run = time.time_ns()
    bodies = [json.dumps(BODY | {"turn_id": f"{run}-{number}"}) for number in range(count)]
    took = []
    for body in bodies:
        begun = time.perf_counter()
        connection.request("POST", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        took.append(time.perf_counter() - begun)
        if answer.status != 200:
            raise RuntimeError(text)
    return took


def measure(port: int, pid: int, path: str) -> tuple[float, float]:
    """Return server CPU per request and the 99th percentile of an answer, in microseconds."""
    ask(port, path, 300)
    begun = cpu_seconds(pid)
    took = ask(port, path, REQUESTS)
    used = cpu_seconds(pid) - begun
    return used / REQUESTS * 1e6, statistics.quantiles(took, n=100)[98] * 1e6


@contextmanager
def serving(turns: int) -> Iterator[tuple[int, int]]:
    """Serve both endpoints on a ledger of so many turns; yield port and process id."""
    from benchmarks.refresh import fill  # noqa: PLC0415 - the two benchmarks run alone, too

    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(str(Path(folder) / "ledger.db"))
        upgrade(engine)
        with writing(engine) as connection:
            fill(connection, turns)
        engine.dispose()
        port = free_port()
        process = start(folder, port)
        try:
            yield port, process.pid
        finally:
            process.terminate()
            process.wait()


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(folder: str, port: int) -> subprocess.Popen[bytes]:
    """Start one worker that has both endpoints, and wait until it is ready."""
    (Path(folder) / "bare_app.py").write_text(BARE)
    here = str(Path(__file__).parents[1])
    environment = os.environ | {
        DB_VARIABLE: str(Path(folder) / "ledger.db"),
        "PYTHONPATH": os.pathsep.join([folder, here]),
    }
    command = [sys.executable, "-m", "uvicorn", "bare_app:app", "--port", str(port)]
    command += ["--no-access-log", "--log-level", "warning"]
    process = subprocess.Popen(command, env=environment)
    for _ in range(1200):
        try:
            ask(port, "/should-compact", 1)
            if is_ready(port):
                return process
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


def is_ready(port: int) -> bool:
    """Return whether the service answers from its ledger."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/readyz")
    return connection.getresponse().status == 200


def main() -> None:
    """Print CPU and p99 of both endpoints, medians of alternating runs, and their ratios."""
    with serving(FEW_TURNS) as few, serving(MANY_TURNS) as many:
        runs = [
            (
                measure(*few, "/bare"),
                measure(*few, "/should-compact"),
                measure(*many, "/should-compact"),
            )
            for _ in range(REPEATS)
        ]
    bare, ours, large = (
        [statistics.median(run[which][what] for run in runs) for what in (0, 1)]
        for which in (0, 1, 2)
    )
    print(f"bare endpoint                {bare[0]:6.0f} µs CPU a request, p99 {bare[1]:6.0f} µs")
    print(f"/should-compact, 10³ turns   {ours[0]:6.0f} µs CPU a request, p99 {ours[1]:6.0f} µs")
    print(f"/should-compact, 10⁶ turns   {large[0]:6.0f} µs CPU a request, p99 {large[1]:6.0f} µs")
    print(f"ratio of CPU = {ours[0] / bare[0]:.2f} (target 1.5), the decision log included")
    print(f"ratio of p99 = {ours[1] / bare[1]:.2f} (target 2)")
    print(f"ratio of CPU, 10⁶ : 10³ turns = {large[0] / ours[0]:.2f} (target 1)")


if __name__ == "__main__":
    main()
