"""Compiling rules into thresholds, for few roles and for many, and looking one up."""

import argparse
import random
import resource
import subprocess
import sys
import time
import timeit
from dataclasses import replace
from pathlib import Path

from policy.rules.idle import idles
from policy.rules.life import Life
from policy.rules.renewal import renewals
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

ROLES = 13
MANY_ROLES = 1_000
AGES = 400
READ_WEIGHTS = (0.1, 0.05, 0.025)
LOOK_UPS = 200_000
SETTING = Setting(
    read_weight=0.1,
    write_weight=1.25,
    output_weight=5.0,
    context_after_tokens=34_000.0,
    cached_after_tokens=18_000.0,
    summary_output_tokens=6_000.0,
    instruction_tokens=500.0,
    growth_tokens=1_100.0,
    first_growth_tokens=2_500.0,
    window_tokens=200_000.0,
    ttl_seconds=300.0,
)


def problems_of(roles: int, seed: int = 1) -> list[tuple[Life, Setting]]:
    """Return lives whose hazard differs at every age, each at three price sets.

    Every third role is a sub-agent, whose sessions are one turn.
    """
    draw = random.Random(seed)
    made = []
    for role in range(roles):
        mean = draw.uniform(3, 50)
        hazards = [min(0.9, (1.5 + 0.5 * draw.random() - age / AGES) / mean) for age in range(AGES)]
        life = Life.of_hazards(hazards)
        setting = replace(
            SETTING,
            growth_tokens=draw.uniform(600, 3_000),
            first_growth_tokens=draw.uniform(1_000, 5_000),
            context_after_tokens=draw.uniform(20_000, 60_000),
            resume_probability=draw.uniform(0.7, 0.97) if role % 3 else 0.0,
            cold_probability=draw.uniform(0.1, 0.6),
        )
        made += [(life, replace(setting, read_weight=read)) for read in READ_WEIGHTS]
    return made


def compile_all(roles: int) -> tuple[float, float, list[Thresholds]]:
    """Return seconds and seconds of CPU that `renewal` takes, and what it made."""
    problems = problems_of(roles)
    begun, cpu_begun = time.perf_counter(), time.process_time()
    thresholds = renewals(problems)
    took = time.perf_counter() - begun, time.process_time() - cpu_begun
    # Refuse to time anything but what is claimed.
    if len(thresholds) != 3 * roles or len(thresholds[0].at_call) != AGES:
        raise RuntimeError(len(thresholds), len(thresholds[0].at_call))
    return *took, thresholds


def few_roles() -> Thresholds:
    """Print the time of 13 roles, and return one role's thresholds."""
    compile_all(1)
    wall, processor, thresholds = compile_all(ROLES)
    print(
        f"renewal, {ROLES} roles × {AGES} ages × 3 price sets: {wall:.2f} s, of them "
        f"{processor:.2f} s CPU (target 1 s)"
    )
    problems = problems_of(ROLES)
    begun = time.process_time()
    idles(problems)
    print(f"idle, the same: {time.process_time() - begun:.2f} s CPU")
    return thresholds[-1]


def many_roles() -> None:
    """Print time and peak memory of 1,000 roles, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.thresholds", "--many-roles"]
    here = Path(__file__).parents[1]
    done = subprocess.run(command, cwd=here, check=True, capture_output=True, text=True)
    wall, processor, peak = done.stdout.split()
    print(
        f"renewal, {MANY_ROLES:,} roles × {AGES} ages × 3 price sets: {wall} s, of them "
        f"{processor} s CPU (target 60 s); peak memory {peak} MB (target 1,000 MB)"
    )


def look_ups(thresholds: Thresholds) -> None:
    """Print the time of one look-up."""
    took = timeit.timeit(lambda: thresholds.at("call", 137), number=LOOK_UPS)
    print(f"one look-up: {took / LOOK_UPS * 1e6:.2f} µs (target 2 µs)")


def main() -> None:
    """Print the figures of one run."""
    look_ups(few_roles())
    many_roles()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many-roles", action="store_true", help="measure that case here")
    if parser.parse_args().many_roles:
        wall, processor, _ = compile_all(MANY_ROLES)
        peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"{wall:.1f} {processor:.1f} {peak_kb / 1024:.0f}")
    else:
        main()
