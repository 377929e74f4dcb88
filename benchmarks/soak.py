"""Mixed load at half the peak: does memory grow, is anything lost, do answers slow down.

Agents ask and record turn by turn over connections of their own, and one sends streams. What was
acknowledged is looked up in the ledger in the end, the decisions too.
"""

import argparse
import http.client
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import psutil
from sqlalchemy import func, select

from ledger.database import open_engine, reading
from ledger.histogram import TOOL_CALLS
from ledger.schema import decisions, histogram, requests, turns
from migrations.upgrade import upgrade

AGENTS = 4
WORKERS = 2
CALIBRATION_SECONDS = 10.0
WINDOWS = 10
#: Windows that warm up: a worker keeps the answers of its snapshot, and fills SQLite's page caches.
WARM_WINDOWS = 3
GROWTH = 0.05
SAMPLE_SECONDS = 1.0
ROLES = 13
#: Turns of each role sent beforehand: decisions look back to 1,400, and memory grows up to there.
FILLED_TURNS = 1500
STREAM_TURNS = 50
STREAM_PAUSE_SECONDS = 5.0
READY_SECONDS = 60.0


@dataclass
class Load:
    """What the agents did: acknowledged rows, and when and how long answers took."""

    requests: int = 0
    turns: int = 0
    asked: int = 0
    #: Distinct ones: the same question again, within one snapshot, has the same answer.
    decisions: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    answers: list[tuple[float, float]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, requests: int = 0, turns: int = 0) -> None:
        """Count what was acknowledged."""
        with self.lock:
            self.requests += requests
            self.turns += turns


class Agent:
    """One connection that asks before each request, records it, and ends its turns."""

    def __init__(self, port: int, load: Load, seed: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._load = load
        self._draw = random.Random(seed)
        self._seed = seed
        self._turns = 0

    def send(self, method: str, path: str, body: Any) -> Any:
        """Send one request; return its answer, or None where it failed."""
        media = "application/x-ndjson" if isinstance(body, bytes) else "application/json"
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        problem = ""
        for _ in range(2):  # the service closes connections that have been idle for a while
            try:
                self._connection.request(method, path, data, {"content-type": media})
                answer = self._connection.getresponse()
                told = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                problem = repr(error)
                continue
            if answer.status == 200:
                return orjson.loads(told)
            problem = f"{answer.status} {told[:200].decode()}"
            break
        with self._load.lock:
            self._load.failures.append(f"{method} {path}: {problem}")
        return None

    def turn(self, pause: float) -> None:
        """Live through one turn; ``pause`` seconds between two requests to the service."""
        self._turns += 1
        turn_id = f"a{self._seed}-{self._turns}"
        role = f"role-{self._draw.randrange(ROLES)}"
        begun = {"role": role, "session_id": f"s{self._seed}-{self._turns // 8}"}
        self._paced("PUT", f"/turns/{turn_id}", begun | {"model": "claude-opus-5"}, pause)
        context = 20_000
        for place in range(self._draw.randrange(1, 20)):
            self._ask(role, place, context, turn_id, pause)
            usage = {"input_tokens": 3, "cache_read_input_tokens": context, "output_tokens": 300}
            context += self._draw.randrange(500, 3000)
            body = {"request_id": f"{turn_id}:{place}", "usage": usage, "tool_calls": 1}
            if self._paced("POST", f"/turns/{turn_id}/requests", body, pause):
                self._load.add(requests=1)
        if self._paced("POST", f"/turns/{turn_id}/end", {"status": "ended"}, pause):
            self._load.add(turns=1)

    def _ask(self, role: str, calls: int, context: int, turn_id: str, pause: float) -> None:
        for _ in range(4):
            body = {"role": role, "calls": calls, "context_tokens": context, "turn_id": turn_id}
            begun = time.perf_counter()
            answer = self._paced(
                "POST", "/should-compact", body | {"model": "claude-opus-5"}, pause
            )
            if answer:
                took = time.perf_counter() - begun - pause
                with self._load.lock:
                    self._load.asked += 1
                    self._load.decisions.add(answer["decision_id"])
                    self._load.answers.append((time.monotonic(), took))

    def _paced(self, method: str, path: str, body: Any, pause: float) -> Any:
        answer = self.send(method, path, body)
        if pause:
            time.sleep(pause)
        return answer

    def stream(self, role: str = "streamed") -> None:
        """Send a few turns as one stream."""
        self._turns += 1
        lines: list[dict[str, Any]] = []
        made = 0
        for number in range(STREAM_TURNS):
            turn = {"turn_id": f"i{self._seed}-{self._turns}-{number}"}
            session_id = f"i{self._seed}-{self._turns}"
            lines.append({"event": "turn", **turn, "role": role, "session_id": session_id})
            for place in range(self._draw.randrange(1, 20)):
                request_id = f"{turn['turn_id']}:{place}"
                told = {"event": "request", **turn, "request_id": request_id, "tool_calls": 1}
                lines.append(told | {"usage": {"output": 9}})
                made += 1
            lines.append({"event": "end", **turn, "status": "ended"})
        answer = self.send("POST", "/ingest", b"\n".join(map(orjson.dumps, lines)))
        if answer and not answer["refused"]:
            self._load.add(requests=made, turns=STREAM_TURNS)


def fill(port: int, load: Load, seed: int) -> None:
    """Give each role as many turns as decisions look back to."""
    agent = Agent(port, load, seed)
    for number in range(ROLES):
        for _ in range(FILLED_TURNS // STREAM_TURNS):
            agent.stream(f"role-{number}")


def drive(port: int, seconds: float, pause: float, seed: int, load: Load) -> None:
    """Let the agents work for so long."""
    until = time.monotonic() + seconds

    def live(number: int) -> None:
        agent = Agent(port, load, seed + number)
        while time.monotonic() < until:
            agent.turn(pause)

    def stream() -> None:
        agent = Agent(port, load, seed + AGENTS)
        while time.monotonic() < until:
            agent.stream()
            time.sleep(STREAM_PAUSE_SECONDS)

    threads = [threading.Thread(target=live, args=(number,)) for number in range(AGENTS)]
    threads.append(threading.Thread(target=stream))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def served(folder: Path, url: str) -> Iterator[tuple[int, psutil.Process]]:
    """Run the service; yield its port and process, and stop it in the ordinary way."""
    port = free_port()
    words = [sys.executable, "-m", "compactuary", "serve", "--db", url, "--port", str(port)]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [*words, "--workers", str(WORKERS)], stdout=log, stderr=log, cwd=Path.cwd()
        )
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                break
        except OSError:
            time.sleep(0.1)
    try:
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


def memory_mb(service: psutil.Process) -> float:
    """Return what all processes of the service hold by themselves."""
    held = 0.0
    for process in [service, *service.children(recursive=True)]:
        try:
            held += process.memory_full_info().uss / 1e6
        except psutil.Error:
            continue
    return held


def sampled(
    service: psutil.Process, seconds: float, samples: list[tuple[float, float]]
) -> threading.Thread:
    """Begin to note the service's memory for so long."""
    until = time.monotonic() + seconds

    def run() -> None:
        while time.monotonic() < until:
            samples.append((time.monotonic(), memory_mb(service)))
            time.sleep(SAMPLE_SECONDS)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def by_window(points: list[tuple[float, float]], begun: float, seconds: float) -> list[list[float]]:
    """Return values by tenths of the run."""
    windows: list[list[float]] = [[] for _ in range(WINDOWS)]
    for at, value in points:
        place = int((at - begun) / seconds * WINDOWS)
        if 0 <= place < WINDOWS:
            windows[place].append(value)
    return windows


def percentile(values: list[float], share: float) -> float:
    """Return the value below which such a share lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def lost(url: str, load: Load) -> dict[str, tuple[int, int]]:
    """Return what was acknowledged and what the ledger has, where they differ."""
    engine = open_engine(url)
    with reading(engine) as connection:
        there = {
            "requests": connection.scalar(select(func.count()).select_from(requests)) or 0,
            "turns": connection.scalar(
                select(func.count()).select_from(turns).where(turns.c.status == "ended")
            )
            or 0,
            "decisions": connection.scalar(select(func.count()).select_from(decisions)) or 0,
            "counted": connection.scalar(
                select(func.sum(histogram.c.count)).where(histogram.c.unit == TOOL_CALLS)
            )
            or 0,
        }
    engine.dispose()
    told = {"requests": load.requests, "turns": load.turns, "decisions": len(load.decisions)}
    told["counted"] = there["turns"]
    # Failed writes may have landed all the same.
    return {
        name: (count, there[name])
        for name, count in told.items()
        if not count <= there[name] <= count + len(load.failures)
    }


def soak(url: str, folder: Path, minutes: float, seed: int) -> bool:
    """Run it and print the figures; return whether they hold."""
    engine = open_engine(url)
    upgrade(engine)
    engine.dispose()
    load, seconds = Load(), minutes * 60
    memory: list[tuple[float, float]] = []
    with served(folder, url) as (port, service):
        fill(port, load, seed + 1000)
        before = load.requests + load.turns
        drive(port, CALIBRATION_SECONDS, 0.0, seed, load)
        sent = load.asked + load.requests + load.turns - before
        peak = sent / CALIBRATION_SECONDS
        # As many agents, each at half its pace.
        pause = AGENTS / peak
        load.answers.clear()
        begun = time.monotonic()
        sampler = sampled(service, seconds, memory)
        drive(port, seconds, pause, seed + 100, load)
        sampler.join()
    missing = lost(url, load)
    held = [statistics.median(one) if one else 0 for one in by_window(memory, begun, seconds)]
    slow = [percentile(one, 0.99) * 1e3 for one in by_window(load.answers, begun, seconds)]
    growth = held[-1] / held[WARM_WINDOWS] - 1
    print(f"peak {peak:,.0f} requests/s; {minutes:g} minutes at about half of it:")
    print(
        f"{load.asked:,} decisions, {load.requests:,} requests, {load.turns:,} turns acknowledged, "
        f"{len(load.failures)} failed; lost: {missing or 'nothing'}"
    )
    for problem in load.failures[:5]:
        print(f"failed: {problem}")
    print(f"memory by tenths, MB: {', '.join(f'{one:.1f}' for one in held)}")
    print(f"growth after warming up: {growth:+.1%} (target ≤ {GROWTH:.0%})")
    print(f"p99 of a decision by tenths, ms: {', '.join(f'{one:.1f}' for one in slow)}")
    early, late = (statistics.median(part) for part in (slow[:5], slow[5:]))
    print(f"p99, later half to first: {late / early:.2f} (steady is about 1)")
    return not missing and not load.failures and (minutes < 3 or growth <= GROWTH)


def main() -> None:
    """Read the words, soak, and fail where the figures do not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--db", help="default: an SQLite file of its own")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.db or str(Path(folder) / "ledger.db")
        holds = soak(url, Path(folder), given.minutes, given.seed)
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
