"""What the client costs: asking the live server, deciding locally, recording, being imported."""

import gc
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import compactuary
from compactuary.breaker import FAILURES_TO_OPEN
from compactuary.local_thresholds import decide_locally, thresholds_from
from ledger.database import DB_VARIABLE, open_engine, writing
from migrations.upgrade import upgrade

ASKED = 2000
REPEATS = 5
LOCAL = 20_000
IMPORTS = 15
RECORDS = 1000
BODY = {"role": "role-3", "calls": 12, "context_tokens": 150_000, "model": "claude-opus-4-8"}
BARE, BASE, NAMED = "pass", "import compactuary", "import compactuary; compactuary.Client"


def timings(call: Callable[[int], object], count: int) -> list[float]:
    """Return what each call took, in microseconds."""
    took = []
    gc.disable()
    for number in range(count):
        begun = time.perf_counter()
        call(number)
        took.append((time.perf_counter() - begun) * 1e6)
    gc.enable()
    return took


def bare_asker(port: int) -> Callable[[int], object]:
    """Return what asks with the standard library's client over one kept connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    run = time.time_ns()

    def ask(number: int) -> object:
        body = json.dumps(BODY | {"turn_id": f"bare-{run}-{number}"})
        connection.request("POST", "/should-compact", body, {"content-type": "application/json"})
        return json.loads(connection.getresponse().read())["decision"]

    return ask


def client_asker(client: compactuary.Client) -> Callable[[int], object]:
    """Return what asks the same with our client."""
    run = time.time_ns()

    def ask(number: int) -> object:
        advice = client.should_compact(**BODY, turn_id=f"ours-{run}-{number}")
        if advice.source != "server":
            raise RuntimeError(advice.reason)
        return advice

    return ask


def serve(folder: str, port: int) -> subprocess.Popen[bytes]:
    """Start the service on a ledger of 10,000 turns, and wait until it answers."""
    from benchmarks.refresh import fill  # noqa: PLC0415 - the two benchmarks run alone, too

    database = str(Path(folder) / "ledger.db")
    engine = open_engine(database)
    upgrade(engine)
    with writing(engine) as connection:
        fill(connection, 10_000)
    engine.dispose()
    environment = os.environ | {DB_VARIABLE: database}
    command = [sys.executable, "-m", "compactuary", "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    for _ in range(400):
        try:
            bare_asker(port)(0)
        except OSError:
            time.sleep(0.05)
        else:
            return process
    raise RuntimeError("the server did not start")


def asking(port: int, folder: str) -> None:
    """Print p50 and p99 of both ways to ask, medians of alternating runs."""
    bare = bare_asker(port)
    with compactuary.Client(f"http://127.0.0.1:{port}", cache=folder, budget_seconds=5) as client:
        ours = client_asker(client)
        runs: dict[str, list[tuple[float, float]]] = {"http.client": [], "Client": []}
        for ask in (bare, ours):
            timings(ask, 200)
        for _ in range(REPEATS):
            for name, ask in (("http.client", bare), ("Client", ours)):
                cuts = statistics.quantiles(timings(ask, ASKED), n=100)
                runs[name].append((cuts[49], cuts[98]))
    middle = {
        name: [statistics.median(one[place] for one in each) for place in (0, 1)]
        for name, each in runs.items()
    }
    for name, (at_50, at_99) in middle.items():
        print(f"{name:<14} p50 {at_50:6.0f} µs, p99 {at_99:6.0f} µs")
    ratios = [ours / bare for bare, ours in zip(*middle.values(), strict=True)]
    print(f"ratio of p50 = {ratios[0]:.2f}, of p99 = {ratios[1]:.2f} (target 1.2)")


def deciding(port: int, folder: str) -> None:
    """Print what a decision without the server takes: the look-up alone, and the whole answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", f"/thresholds/{BODY['role']}?model={BODY['model']}")
    found = thresholds_from(json.loads(connection.getresponse().read()))
    alone = statistics.median(timings(lambda each: decide_locally(found, each, 150_000), LOCAL))
    url = f"http://127.0.0.1:{port}"
    with compactuary.Client(url, cache=folder, exit_seconds=0) as client:
        for _ in range(FAILURES_TO_OPEN):
            # In the far future, so that it stays open.
            client._wired.breaker.failed(time.monotonic() + 1e6)  # noqa: SLF001
        whole = statistics.median(timings(lambda _: client.should_compact(**BODY), LOCAL))
        if client.counters["cached"] != LOCAL:
            raise RuntimeError(client.counters)
    print(f"local decision {alone:6.1f} µs, as advice {whole:.1f} µs (target 20)")


def recording(port: int) -> None:
    """Print how many records a second arrive: gathered into batches, and one by one."""
    rates: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * REPEATS):
        batches = number % 2 == 0
        url = f"http://127.0.0.1:{port}"
        with compactuary.Client(url, cache=False, queue_capacity=RECORDS + 9) as client:
            client._wired.delivery._batches = batches  # noqa: SLF001
            begun = time.perf_counter()
            with client.turn("recorded") as turn:
                for _ in range(RECORDS):
                    turn.request(None, {"output": 1}, 1)
            if not client.flush(120):
                raise RuntimeError(client.counters)
            rates[batches].append(RECORDS / (time.perf_counter() - begun))
    together, alone = statistics.median(rates[True]), statistics.median(rates[False])
    print(f"records a second: {together:.0f} in batches, {alone:.0f} one by one")
    print(f"ratio of records a second = {together / alone:.1f}")


def cpu_seconds(script: str) -> float:
    """Return the processor time of a Python that runs a script, in seconds."""
    before = os.times()
    here = str(Path(__file__).parents[1])
    words = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {here!r}); {script}"]
    subprocess.run(words, check=True)
    after = os.times()
    return after[2] + after[3] - before[2] - before[3]


def importing() -> None:
    """Print what importing takes beyond Python itself."""
    scripts = (BARE, BASE, NAMED, f"{NAMED}()")
    rounds = [[cpu_seconds(script) for script in scripts] for _ in range(IMPORTS)]
    bare, *others = (min(each) * 1e3 for each in zip(*rounds, strict=True))
    texts = (BASE, "naming Client", "making one")
    told = [f"{text} {one - bare:.0f} ms" for text, one in zip(texts, others, strict=True)]
    print(f"over bare Python: {', '.join(told)} (target 10 for the import)")


def main() -> None:
    """Measure all of it in one run."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        process = serve(folder, port)
        try:
            asking(port, folder)
            deciding(port, folder)
            recording(port)
        finally:
            process.terminate()
            process.wait()
    importing()


if __name__ == "__main__":
    main()
