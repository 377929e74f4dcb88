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
from pathlib import Path

from ledger.database import DB_VARIABLE, open_engine, writing
from migrations.upgrade import upgrade

REQUESTS = 4000
REPEATS = 3
BODY = {
    "role": "role-3",
    "calls": 12,
    "context_tokens": 150_000,
    "model": "claude-opus-4-8",
    "turn_id": "turn-1",
    "session_id": "session-1",
}
#: The bare endpoint: the same app, the same models, an answer that is there already.
BARE = """
from datetime import UTC, datetime

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
app = create_app()

@app.post("/bare")
async def bare(body: ShouldCompact) -> Answer:
    return ANSWER
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


def serve(folder: str, port: int) -> subprocess.Popen[bytes]:
    """Start one worker that has both endpoints, and wait until it answers."""
    (Path(folder) / "bare_app.py").write_text(BARE)
    here = str(Path(__file__).parents[1])
    environment = os.environ | {
        DB_VARIABLE: str(Path(folder) / "ledger.db"),
        "PYTHONPATH": os.pathsep.join([folder, here]),
    }
    command = [sys.executable, "-m", "uvicorn", "bare_app:app", "--port", str(port)]
    command += ["--no-access-log", "--log-level", "warning"]
    process = subprocess.Popen(command, env=environment)
    for _ in range(200):
        try:
            ask(port, "/bare", 1)
        except OSError:
            time.sleep(0.05)
        else:
            return process
    raise RuntimeError("the server did not start")


def main() -> None:
    """Print CPU and p99 of both endpoints, medians of alternating runs, and their ratios."""
    from benchmarks.refresh import fill  # noqa: PLC0415 - the two benchmarks run alone, too

    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        engine = open_engine(str(Path(folder) / "ledger.db"))
        upgrade(engine)
        with writing(engine) as connection:
            fill(connection, 10_000)
        engine.dispose()
        process = serve(folder, port)
        try:
            runs = [
                (measure(port, process.pid, "/bare"), measure(port, process.pid, "/should-compact"))
                for _ in range(REPEATS)
            ]
        finally:
            process.terminate()
            process.wait()
    bare, ours = (
        [statistics.median(run[which][what] for run in runs) for what in (0, 1)] for which in (0, 1)
    )
    print(f"bare endpoint     {bare[0]:6.0f} µs CPU a request, p99 {bare[1]:6.0f} µs")
    print(f"/should-compact   {ours[0]:6.0f} µs CPU a request, p99 {ours[1]:6.0f} µs")
    print(f"ratio of CPU = {ours[0] / bare[0]:.2f} (target 1.5), the decision log included")
    print(f"ratio of p99 = {ours[1] / bare[1]:.2f} (target 2)")


if __name__ == "__main__":
    main()
