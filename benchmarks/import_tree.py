"""Import of a generated Claude Code tree, against ``orjson.loads`` over its lines."""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from examples.claude_code_tree import write_tree_of_size
from ledger.database import open_engine
from ledger.importing import import_logs
from migrations.upgrade import upgrade

REPEATS = 3
TO_MEBIBYTES = 1024**2 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Taken:
    """Wall and processor seconds of a piece of work."""

    wall: float
    cpu: float


def timed(work: Callable[[], object]) -> Taken:
    """Do the work and return what it took, the start of the interpreter apart."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Taken(time.perf_counter() - wall, time.process_time() - cpu)


def load_lines(tree: Path) -> int:
    """Parse every line with ``orjson.loads`` and return how many there are."""
    lines = 0
    for path in sorted(tree.rglob("*.jsonl")):
        with path.open("rb") as file:
            for line in file:
                orjson.loads(line)
                lines += 1
    return lines


def measure(tree: Path, database: Path) -> dict[str, float]:
    """Import the tree twice and parse it, in this process; return seconds, lines and memory."""
    engine = open_engine(str(database))
    first = timed(lambda: import_logs(engine, [tree]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / TO_MEBIBYTES
    again = timed(lambda: import_logs(engine, [tree]))
    lines = load_lines(tree)  # the one that finds its code and its memory warm is measured
    loads = timed(lambda: load_lines(tree))
    return {
        "lines": lines,
        "peak_mebibytes": peak,
        "loads_wall": loads.wall,
        "loads_cpu": loads.cpu,
        "import_wall": first.wall,
        "import_cpu": first.cpu,
        "again_wall": again.wall,
    }


def measure_apart(tree: Path, database: Path) -> dict[str, float]:
    """Measure in a process of its own, into a fresh ledger made beforehand."""
    engine = open_engine(str(database))
    upgrade(engine)
    engine.dispose()
    command = [sys.executable, "-m", "benchmarks.import_tree", "--measure", str(tree), "--into"]
    done = subprocess.run([*command, str(database)], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def report(megabytes: float, repeats: int) -> float:
    """Print the medians for a tree of this size, and return the peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        write_tree_of_size(tree, megabytes)
        load_lines(tree)  # into the page cache
        runs = [measure_apart(tree, Path(folder) / f"{n}.db") for n in range(repeats)]
        size = sum(path.stat().st_size for path in tree.rglob("*.jsonl"))
    middle = {name: statistics.median(run[name] for run in runs) for name in runs[0]}

    def ratio(above: str, below: str) -> float:
        return statistics.median(run[above] / run[below] for run in runs)

    print(
        f"{size / 1e6:,.0f} MB, {middle['lines']:,.0f} lines, median of {repeats}:\n"
        f"  orjson.loads  {middle['loads_wall']:7.2f} s wall {middle['loads_cpu']:7.2f} s CPU\n"
        f"  import        {middle['import_wall']:7.2f} s wall {middle['import_cpu']:7.2f} s CPU\n"
        f"  import : orjson.loads = {ratio('import_wall', 'loads_wall'):.2f} wall, "
        f"{ratio('import_cpu', 'loads_cpu'):.2f} CPU (target 4 at 100 MB)\n"
        f"  second import {ratio('again_wall', 'import_wall'):.1%} of the first (target 10%)\n"
        f"  peak memory   {middle['peak_mebibytes']:.0f} MiB (target 250)",
        flush=True,
    )
    return middle["peak_mebibytes"]


def main(arguments: Sequence[str] = ()) -> None:
    """Print seconds, ratios and memory for both sizes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100, help="size of the tree")
    parser.add_argument(
        "--also", type=float, default=1000, help="a second size, imported once; 0 leaves it out"
    )
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.measure:
        print(json.dumps(measure(given.measure, given.into)))
        return
    small = report(given.megabytes, REPEATS)
    if given.also:
        large = report(given.also, 1)
        print(
            f"peak memory at {given.also:g} MB : {given.megabytes:g} MB = {large / small:.2f} "
            "(target 0.80 to 1.20)"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
