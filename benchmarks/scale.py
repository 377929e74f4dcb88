"""One Dask worker against two, on cores of their own: reading logs, and replaying rules."""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.audit import Ran, ran
from examples.claude_code_tree import write_tree_of_size

ROUNDS = 3
_PATIENCE_SECONDS = 30.0


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Yield the address of a scheduler with so many workers, each a process of one thread."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    begun = [
        subprocess.Popen(
            [*dask, "scheduler", "--port", str(port), *common], env=environment, **quiet
        )
    ]
    single = ["--nthreads", "1", "--nworkers", str(workers), *common]
    begun.append(subprocess.Popen([*dask, "worker", address, *single], env=environment, **quiet))
    try:
        wait_for(address, workers)
        yield address
    finally:
        for process in reversed(begun):
            process.terminate()
        for process in begun:
            process.wait()


def wait_for(address: str, workers: int) -> None:
    """Wait until all workers are there."""
    from distributed import Client  # noqa: PLC0415 - slow, and an extra

    with Client(address, timeout=f"{_PATIENCE_SECONDS:g}s") as client:
        client.wait_for_workers(workers, timeout=_PATIENCE_SECONDS)
        # Each has its modules loaded before anything is timed.
        client.run(_loaded)


def _loaded() -> None:
    import backtest.backtest  # noqa: F401, PLC0415
    import compactuary.log_parts  # noqa: F401, PLC0415


def compare(name: str, words: Sequence[str], rounds: int) -> None:
    """Print the seconds of a command with no, one and two workers, and their ratios."""
    took: dict[str, list[Ran]] = {"alone": [], "one": [], "two": []}
    for _ in range(rounds):
        took["alone"].append(ran(words, {min(os.sched_getaffinity(0))}))
        for kind, workers in (("one", 1), ("two", 2)):
            with cluster(workers) as address:
                took[kind].append(ran([*words, "--scheduler", address]))
    wall = {kind: statistics.median(run.wall for run in runs) for kind, runs in took.items()}
    own = {kind: statistics.median(run.cpu for run in runs) for kind, runs in took.items()}
    print(
        f"{name}: on one core without workers {wall['alone']:.2f} s, with one worker "
        f"{wall['one']:.2f} s, with two {wall['two']:.2f} s wall: two are "
        f"{wall['one'] / wall['two']:.2f} times as fast as one (target 1.5), and "
        f"{wall['alone'] / wall['two']:.2f} times as fast as none. CPU of the first process "
        f"{own['one']:.2f} s and {own['two']:.2f} s.",
        flush=True,
    )


def idle_cores(seconds: float = 1.0) -> float:
    """Return how many of this process's cores were free just now (Linux)."""

    def spent() -> tuple[float, float]:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
        return float(sum(ticks[:8])), float(ticks[3] + ticks[4])

    before = spent()
    time.sleep(seconds)
    after = spent()
    share = (after[1] - before[1]) / max(after[0] - before[0], 1.0)
    return share * (os.cpu_count() or 1)


def main(arguments: Sequence[str] = ()) -> None:
    """Print both commands' figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=1_000, help="size of the tree")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    print(
        f"{idle_cores():.1f} of {os.cpu_count()} cores are free: two have to be, to tell anything"
    )
    # Reading is quick, and pays for a cluster from gigabytes on; a tenth is enough to replay.
    for megabytes, words in (
        (given.megabytes, ("audit", "--json")),
        (given.megabytes / 10, ("backtest", "--sensitivity", "--json")),
    ):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            write_tree_of_size(tree, megabytes)
            name = f"{' '.join(words[:-1])} of {megabytes:g} MB"
            compare(name, (*words, str(tree)), given.rounds)


if __name__ == "__main__":
    main(sys.argv[1:])
