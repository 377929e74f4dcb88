"""``make bench``: every benchmark in a process of its own, so that none weighs on the next."""

import subprocess
import sys

NAMES = (
    "should_compact",
    "client",
    "decision",
    "refresh",
    "estimator",
    "thresholds",
    "ingest",
    "import_tree",
    "strategies",
    "audit",
    "backtest",
)

if __name__ == "__main__":
    for name in NAMES:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
