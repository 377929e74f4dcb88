"""The whole command ``compactuary audit`` on logs, against ``orjson.loads`` over their lines."""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.import_tree import TO_MEBIBYTES, load_lines, timed
from examples.claude_code_tree import write_tree_of_size

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command took: seconds, and MiB of its largest process."""

    wall: float
    cpu: float
    mebibytes: float


def ran(words: Sequence[str], cores: set[int] | None = None) -> Ran:
    """Run ``compactuary`` to its end, on some cores alone where they are named."""
    before = os.sched_getaffinity(0) if cores else set()
    if cores:
        os.sched_setaffinity(0, cores)
    begun = time.perf_counter()
    try:
        command = [sys.executable, "-m", "compactuary", *words]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    finally:
        if cores:
            os.sched_setaffinity(0, before)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)}: exit code {process.returncode}")
    return Ran(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / TO_MEBIBYTES)


def middle(runs: Sequence[Ran]) -> Ran:
    """Return the medians."""
    columns = ([run.wall for run in runs], [run.cpu for run in runs], [r.mebibytes for r in runs])
    return Ran(*map(statistics.median, columns))


def told(name: str, run: Ran, loads: float) -> str:
    """Return a line of figures."""
    return (
        f"  {name:<22} {run.wall:6.2f} s wall {run.cpu:6.2f} s CPU {run.mebibytes:5.0f} MiB: "
        f"{run.wall / loads:5.2f} wall, {run.cpu / loads:5.2f} CPU"
    )


def report(megabytes: float, rounds: int) -> Ran:
    """Print the medians for a tree of this size, and return those of the usual command."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        write_tree_of_size(tree, megabytes)
        words = ("audit", str(tree), "--json")
        load_lines(tree)  # into the page cache
        one_core = {min(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else None
        loads, whole, alone, start = [], [], [], []
        for _ in range(rounds):
            loads.append(timed(lambda: load_lines(tree)).cpu)
            whole.append(ran(words))
            alone.append(ran(words, one_core))
            start.append(ran(("audit", "--help")))
        least = statistics.median(loads)
        found = len(list(tree.rglob("*.jsonl")))
    print(
        f"{megabytes:g} MB in {found:,} files, medians of {rounds}; times orjson.loads "
        f"({least:.2f} s CPU), target 5 at 100 MB:"
    )
    print(told("audit", middle(whole), least))
    print(told("audit on one core", middle(alone), least))
    print(told("start (audit --help)", middle(start), least), flush=True)
    return middle(whole)


def main(arguments: Sequence[str] = ()) -> None:
    """Print seconds, ratios and memory for both sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100, help="size of the tree")
    parser.add_argument(
        "--also", type=float, default=1000, help="a second size, read once; 0 leaves it out"
    )
    given = parser.parse_args(arguments)
    small = report(given.megabytes, ROUNDS)
    if given.also:
        large = report(given.also, 1)
        print(
            f"largest process at {given.also:g} MB : {given.megabytes:g} MB = "
            f"{large.mebibytes / small.mebibytes:.2f} (target 1, but for 20 kB a compaction)"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
