"""Replay of all rules on sequences of real requests: bill, share of the best, paired intervals.

Every rule is fitted on half of the sessions and billed on the other half, both ways; the best
fixed threshold is chosen in hindsight on the very half it is billed on. See docs/rules.md.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.comparison import Comparison, compared
from backtest.observed import learned_aftermath, observed_compactions
from backtest.occupancies import GRID_TOKENS, fixed_plans
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario, fixed_aftermath
from backtest.sequences import Sequences
from backtest.sources import sequences_from_tables
from backtest.trial import Split, Trial, by_project, by_time, halves, run_trial

DATA = Path(__file__).parents[2] / "shared" / "data"
SEEDS = (1, 2, 3)
READS = (0.10, 0.05, 0.025)
WITHOUT_LIMIT = 1e12
MAIN_RULES = (
    *("best fixed threshold", "three-thresholds", "eoq", "reorder", "renewal", "idle"),
    *("renewal by project", "idle by project", "idle by session"),
)


class Size(NamedTuple):
    """What a compaction leaves behind in truth, and what the rules believe."""

    name: str
    truth: Aftermath
    believed: Callable[[NDArray[np.bool_]], Aftermath] | None = None


def sizes(sequences: Sequences) -> dict[str, Size]:
    """Give the three kinds of X′, and a rule that believes in small ones where they are large."""
    everybody = np.ones(sequences.units, dtype=np.bool_)
    small = fixed_aftermath(sequences)
    large = fixed_aftermath(sequences, 34_000.0, 8_000.0)
    own = learned_aftermath(sequences, everybody, own=True)

    def from_fit(units: NDArray[np.bool_]) -> Aftermath:
        return learned_aftermath(sequences, units, own=False)

    return {
        "small": Size("X' = P+16k", small),
        "large": Size("X' = P+34k, L = 8k", large),
        "learned": Size("X' and L learned", own, from_fit),
        "mistaken": Size("X' = P+34k, L = 8k, believed to be P+16k", large, lambda _: small),
    }


def grid(*, quick: bool) -> list[Scenario]:
    """Give the prices: r × time to live × Q."""
    if quick:
        return [Scenario(read) for read in READS]
    return [
        Scenario(read, ttl, quality)
        for quality in (0.0, 50_000.0)
        for ttl in (300.0, 3_600.0)
        for read in READS
    ]


def told(rows: Sequence[Comparison]) -> None:
    for row in rows:
        low, high = row.interval
        made = "" if row.compactions is None else f"{row.compactions:7.0f}"
        share = "    –" if row.share is None else f"{row.share:5.3f}"
        print(
            f"  {row.rule:22} {100 * row.relative:+7.2f}%  {share}  {made:>7}  "
            f"{100 * row.difference:+6.2f} [{100 * low:+6.2f}, {100 * high:+6.2f}]"
        )


def title(scenario: Scenario, size: str, how: str) -> None:
    print(
        f"\nr {scenario.read_weight:g}, TTL {scenario.ttl_seconds:.0f} s, "
        f"Q {scenario.quality_cost:,.0f}, {size}; {how}"
    )
    print("  rule                      bill   share  compact.  − best fixed, 90% by session")


def unlimited(sequences: Sequences, size: Size, scenario: Scenario) -> float:
    """Bill a context that is never compacted, whatever a window holds, relative to the trigger."""
    free = replace(scenario, limit_tokens=WITHOUT_LIMIT)
    plan = fixed_plans(sequences, (WITHOUT_LIMIT,))
    cost = replay(sequences, size.truth, free, plan).cost.sum()
    trigger = replay(sequences, size.truth, scenario, fixed_plans(sequences, GRID_TOKENS[-1:]))
    return float(cost / trigger.cost.sum()) - 1.0


def table(sequences: Sequences, size: Size, scenario: Scenario, seeds: Sequence[int]) -> Trial:
    """Print one block: all rules on random halves, means over the seeds."""
    splits = halves(sequences, seeds)
    trial = run_trial(sequences, size.truth, scenario, splits, believed=size.believed)
    title(scenario, size.name, f"halves by session, both ways, seeds {', '.join(map(str, seeds))}")
    told(compared(trial, sequences.session))
    thresholds = sorted({int(best / 1_000) for best in trial.best_tokens})
    free = 100 * unlimited(sequences, size, scenario)
    clairvoyant = 100 * (trial.clairvoyant.sum() / trial.baseline.sum() - 1)
    print(
        f"  best fixed thresholds {thresholds}k; clairvoyant {clairvoyant:+.2f}%; never compacted "
        f"as if no window ended {free:+.2f}%"
    )
    return trial


def chosen(rows: Sequence[Comparison]) -> list[Comparison]:
    return [row for row in rows if row.rule in MAIN_RULES]


def apart(sequences: Sequences, size: Size, scenario: Scenario, trial: Trial) -> None:
    """Print the main rules per project, and with the largest project left out."""
    bill = {
        project: float(trial.baseline[units].sum())
        for project, units in projects(sequences).items()
    }
    ordered = sorted(bill, key=bill.__getitem__, reverse=True)
    total = sum(bill.values())
    for project in ordered:
        title(scenario, size.name, f"{project}, {100 * bill[project] / total:.1f}% of the bill")
        units = projects(sequences)[project]
        told(chosen(compared(trial, sequences.session, units=units)))
    largest = ordered[0]
    title(scenario, size.name, f"all but {largest}")
    told(chosen(compared(trial, sequences.session, units=~projects(sequences)[largest])))
    split = next(iter(by_project(sequences, largest)))
    for how, way in (
        (f"fitted without {largest}, scored on it", split),
        (f"fitted on {largest} alone, scored without it", Split(split.score, split.fit)),
    ):
        other = run_trial(sequences, size.truth, scenario, iter([way]), believed=size.believed)
        title(scenario, size.name, how)
        told(chosen(compared(other, sequences.session)))


def projects(sequences: Sequences) -> dict[str, NDArray[np.bool_]]:
    names = np.array(sequences.project)
    return {str(name): names == name for name in np.unique(names)}


def in_time(sequences: Sequences, size: Size, scenario: Scenario) -> None:
    trial = run_trial(sequences, size.truth, scenario, by_time(sequences), believed=size.believed)
    title(scenario, size.name, "fitted on the earlier half of the sessions, scored on the later")
    told(chosen(compared(trial, sequences.session)))


def knowing_more(sequences: Sequences, trial: Trial) -> None:
    """Print what knowing the project and the session's age adds to the two rules."""
    pairs = (
        ("renewal", "renewal by project"),
        ("idle", "idle by project"),
        ("idle by project", "idle by session"),
    )
    for less, more in pairs:
        rows = compared(trial, sequences.session, against=less)
        found = next(row for row in rows if row.rule == more)
        low, high = (100 * end for end in found.interval)
        print(f"  {more} − {less} {100 * found.difference:+.2f} [{low:+.2f}, {high:+.2f}]")


def described(sequences: Sequences) -> None:
    seen = observed_compactions(sequences)
    print(
        f"{sequences.units} units, {len(set(sequences.session))} sessions, "
        f"{sequences.requests} requests; {seen.unit.size} compactions in the logs: median context "
        f"after {np.median(seen.after_tokens):,.0f}, rework {np.median(seen.rework_tokens):,.0f}"
    )
    print(
        "Growth is replayed as if compaction did not change it; session ends may be where logs "
        "stop; one project is most of the bill."
    )


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with calls.csv.gz")
    parser.add_argument("--quick", action="store_true", help="5 minutes and Q = 0 only")
    parser.add_argument(
        "--sizes", nargs="*", default=["small"], choices=["small", "large", "learned", "mistaken"]
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--apart", action="store_true", help="also per project and by time")
    given = parser.parse_args(arguments)
    if not given.data.exists():
        print(f"skipped: the reference data are not there: {given.data}")
        return
    sequences = sequences_from_tables(given.data)
    described(sequences)
    begun = time.process_time()
    for name in given.sizes:
        size = sizes(sequences)[name]
        for scenario in grid(quick=given.quick):
            trial = table(sequences, size, scenario, given.seeds)
            knowing_more(sequences, trial)
            if given.apart:
                in_time(sequences, size, scenario)
                apart(sequences, size, scenario, trial)
    print(f"\n{time.process_time() - begun:.0f} s of CPU")


if __name__ == "__main__":
    main(sys.argv[1:])
