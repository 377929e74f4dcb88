"""Life tables of many roles, and from many rows, against lifelines' Kaplan-Meier alone."""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.life_tables import LifeTables, RoleRows, life_tables

ROLES = 13
MANY_ROLES = 10_000
AGES = 512
ROWS = 10_000_000
REPEATS = 9


def rows_of_roles(roles: int, seed: int = 1) -> RoleRows:
    """Return one row for each of 512 numbers of calls of each role, with up to 8 turns.

    One in seven rows is of cut turns; 40 turns end with the last call, so that every age has
    enough turns at risk for a number of its own.
    """
    draw = np.random.default_rng(seed)
    count = draw.integers(1, 9, roles * AGES)
    ended = draw.random(roles * AGES) < 6 / 7
    count[AGES - 1 :: AGES], ended[AGES - 1 :: AGES] = 40, True
    return RoleRows(
        roles=[f"role-{number}" for number in range(roles)],
        role=np.repeat(np.arange(roles), AGES),
        entry=np.zeros(roles * AGES, dtype=np.int64),
        exit=np.tile(np.arange(1, AGES + 1), roles),
        ended=ended,
        count=count,
    )


def histograms_of(rows: RoleRows) -> dict[str, Histogram]:
    """Return the same as one histogram a role."""
    made = {}
    for place, role in enumerate(rows.roles):
        own = slice(place * AGES, (place + 1) * AGES)
        made[role] = Histogram(rows.entry[own], rows.exit[own], rows.ended[own], rows.count[own])
    return made


def seconds(*works: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Return the median time that each work takes, in runs that alternate."""
    took: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, times in zip(works, took, strict=True):
            begun = time.perf_counter()
            work()
            times.append(time.perf_counter() - begun)
    return [statistics.median(times) for times in took]


def few_roles() -> None:
    """Print the time of 13 roles × 512 ages beside that of lifelines."""
    # Not where the many roles are measured, for pandas would count as their memory.
    from lifelines import KaplanMeierFitter  # noqa: PLC0415

    histograms = histograms_of(rows_of_roles(ROLES))
    own = list(histograms.values())
    ours, theirs = seconds(
        lambda: life_tables(histograms),
        lambda: [KaplanMeierFitter().fit(one.exit, one.ended, weights=one.count) for one in own],
    )
    print(
        f"m, V, D, interval of {ROLES} roles × {AGES} ages: {ours * 1e3:.2f} ms; "
        f"lifelines' Kaplan-Meier alone {theirs * 1e3:.1f} ms"
    )
    print(f"ratio = {theirs / ours:.0f} (target 25 or more)")


def many_rows() -> None:
    """Print the time from ten million turns to a table beside that of lifelines."""
    from lifelines import KaplanMeierFitter  # noqa: PLC0415 - as above

    draw = np.random.default_rng(2)
    calls = np.minimum(draw.geometric(1 / 35, ROWS), AGES)
    ended = draw.random(ROWS) < 0.9
    exits = calls - ~ended
    ours, theirs = seconds(
        lambda: life_table(Histogram.from_turns(calls, ended)),
        lambda: KaplanMeierFitter().fit(exits, ended),
        repeats=3,
    )
    print(f"{ROWS:,} rows → table: {ours:.2f} s; lifelines' Kaplan-Meier alone {theirs:.2f} s")
    print(f"ratio = {theirs / ours:.1f} (target 5 or more)")


def many_roles() -> None:
    """Print time and peak memory of 10,000 roles × 512 ages, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.estimator", "--many-roles"]
    here = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=here, check=True, capture_output=True, text=True)
    wall, processor, peak = done.stdout.split()
    print(
        f"m, V, D, interval of {MANY_ROLES:,} roles × {AGES} ages: {wall} s, of them {processor} s "
        f"CPU (target 1 s); peak memory of the process {peak} MB, rows included (target 500 MB)"
    )


def measured_many_roles() -> None:
    """Print seconds, seconds of CPU and peak megabytes, for the process that started this one."""
    rows = rows_of_roles(MANY_ROLES)
    begun, cpu_begun = time.perf_counter(), time.process_time()
    tables = life_tables(rows)
    wall, processor = time.perf_counter() - begun, time.process_time() - cpu_begun
    check_shape(tables)
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{wall:.2f} {processor:.2f} {peak_kb / 1024:.0f}")


def check_shape(tables: LifeTables) -> None:
    """Refuse to time anything but what is claimed."""
    if tables.mean.shape != (MANY_ROLES, AGES) or not np.isfinite(tables.upper).all():
        raise RuntimeError(tables.mean.shape)


def main() -> None:
    """Print the ratios of one run."""
    few_roles()
    many_roles()
    many_rows()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many-roles", action="store_true", help="measure that case here")
    if parser.parse_args().many_roles:
        measured_many_roles()
    else:
        main()
