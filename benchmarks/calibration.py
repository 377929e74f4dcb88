"""Actual against expected ends on real turns, each forecast from the turns that were over before.

Prequential: the tables are fitted again and again, and every fit is judged on the turns that start
next. Expected ends of a turn are the hazards over the calls it was at risk for, so a cut turn is
expected to end less. No standard table: it is made of the same turns.
"""

import argparse
import csv
import gzip
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimator.credibility import all_roles, nest
from estimator.credible_table import CredibleTable
from estimator.decay import DEFAULT_HALF_LIFE, Place, decayed
from estimator.histogram import Histogram
from estimator.life_table import LifeTable, life_table

DATA = Path(__file__).parents[2] / "shared" / "data"
EVERY = 25
FIRST_FIT = 100
LATER_TURNS = 30
AGES = (0, 1, 3, 5, 10, 20, 40, 80)


class Turn(NamedTuple):
    """One real turn, with the times between which it ran."""

    role: str
    begun: str
    over: str
    calls: int
    ended: bool

    @property
    def place(self) -> Place:
        """The turn in a histogram; cut, only N ≥ calls is known."""
        return Place(0, self.calls - (not self.ended), self.ended)


class Judged(NamedTuple):
    """Actual and expected ends of some group of turns, or of calls at some ages."""

    name: str
    turns: int
    actual: int
    expected: float

    @property
    def ratio(self) -> float:
        """Actual over expected."""
        return self.actual / self.expected

    @property
    def interval(self) -> tuple[float, float]:
        """Byar's 90% interval of a Poisson count, over the expected."""
        low, high = self.actual, self.actual + 1
        z = 1.6448536
        lower = low * (1 - 1 / (9 * low) - z / (3 * math.sqrt(low))) ** 3 if low else 0.0
        upper = high * (1 - 1 / (9 * high) + z / (3 * math.sqrt(high))) ** 3
        return lower / self.expected, upper / self.expected


class Calibration(NamedTuple):
    """All judgements on one kind of fit: what a plot needs."""

    overall: Judged
    roles: list[Judged]
    ages: list[Judged]


def read_turns(data: Path) -> list[Turn]:
    """Read the turns with a time, whose start was seen, in the order they began."""
    with gzip.open(data / "turns.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        turns = [
            Turn(
                row["role"],
                row["started_at"],
                row["ended_at"] or row["started_at"],
                int(row["n_tool_calls"]),
                row["ended"] == "True",
            )
            for row in csv.DictReader(lines)
            if row["started_at"] and row["left_truncated"] == "False"
        ]
    return sorted(turns, key=lambda turn: (turn.begun, turn.over))


def fitted(turns: Iterable[Turn], half_life: float | None) -> dict[str, LifeTable | None]:
    """Make every role's table of turns in the order they were over."""
    places: dict[str, list[Place]] = defaultdict(list)
    for turn in sorted(turns, key=lambda turn: turn.over):
        places[turn.role].append(turn.place)
    histograms = {role: _histogram(own, half_life) for role, own in places.items()}
    return {role: life_table(own) if own.ends else None for role, own in histograms.items()}


def _histogram(places: Sequence[Place], half_life: float | None) -> Histogram:
    if half_life is None:
        return Histogram.from_rows((*place, 1) for place in places)
    return Histogram(*decayed(places, half_life))


def hazards(table: CredibleTable, *, of_mean: bool) -> NDArray[np.float64]:
    """Give h of call i+1 by age i: what m(i) implies, or that of the mixture."""
    if of_mean:
        later = np.append(table.mean[1:], table.mean[-1])
        implied: NDArray[np.float64] = 1.0 - (table.mean - 1.0) / later
        return implied
    ages = np.arange(table.mean.size)
    go_on = np.stack([each.go_on[np.minimum(ages, each.go_on.size - 1)] for each in table.sources])
    mixed: NDArray[np.float64] = 1.0 - np.sum(table.weights * go_on, axis=0)
    return mixed


def calibrate(
    turns: Sequence[Turn], *, half_life: float | None, of_mean: bool, every: int = EVERY
) -> Calibration:
    """Judge every turn after the first hundred by the tables that were there when it began."""
    rows: list[tuple[Turn, NDArray[np.float64]]] = []
    for first in range(FIRST_FIT, len(turns), every):
        block = turns[first : first + every]
        now = block[0].begun
        tables = fitted((turn for turn in turns if turn.over < now), half_life)
        parent = all_roles(tables)
        by_role: dict[str, NDArray[np.float64]] = {}
        for turn in block:
            if turn.role not in by_role:
                credible = nest(turn.role, tables.get(turn.role), parent)
                by_role[turn.role] = hazards(credible, of_mean=of_mean)
            rows.append((turn, _over(by_role[turn.role], turn.place.exit)))
    return _judge(rows)


def _over(hazard: NDArray[np.float64], exit_: int) -> NDArray[np.float64]:
    """Give the hazards of calls 1 … exit."""
    met: NDArray[np.float64] = hazard[np.minimum(np.arange(max(exit_, 0)), hazard.size - 1)]
    return met


def _judge(rows: Sequence[tuple[Turn, NDArray[np.float64]]]) -> Calibration:
    groups: Mapping[str, list[tuple[Turn, NDArray[np.float64]]]] = defaultdict(list)
    for turn, met in rows:
        groups[turn.role].append((turn, met))
    roles = [_sum(role, own) for role, own in sorted(groups.items()) if len(own) >= LATER_TURNS]
    bands = list(zip(AGES, (*AGES[1:], None), strict=True))
    return Calibration(_sum("all", rows), roles, [_band(rows, *band) for band in bands])


def _sum(name: str, rows: Sequence[tuple[Turn, NDArray[np.float64]]]) -> Judged:
    actual = sum(turn.ended and met.size > 0 for turn, met in rows)
    return Judged(name, len(rows), actual, float(sum(met.sum() for _, met in rows)))


def _band(rows: Sequence[tuple[Turn, NDArray[np.float64]]], first: int, last: int | None) -> Judged:
    """Judge the calls made at ages first … last − 1."""
    name = f"ages {first}-{last - 1}" if last else f"ages {first} on"
    name = f"age {first}" if last == first + 1 else name
    reached = [(turn, met) for turn, met in rows if met.size > first]
    expected = float(sum(met[first:last].sum() for _, met in reached))
    actual = sum(turn.ended and (last is None or met.size <= last) for turn, met in reached)
    return Judged(name, len(reached), actual, expected)


def report(calibration: Calibration) -> None:
    for judged in (calibration.overall, *calibration.roles, *calibration.ages):
        low, high = judged.interval
        print(
            f"  {judged.name:16} {judged.turns:5} turns  actual {judged.actual:5}  expected "
            f"{judged.expected:7.1f}  A/E {judged.ratio:.3f} [{low:.2f}, {high:.2f}]"
        )


def save_plot(calibration: Calibration, path: Path) -> None:
    """Draw actual over expected ends, by role and by age, with 90% intervals."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - only the picture needs it

    groups = [calibration.overall, *calibration.roles, *calibration.ages]
    figure = Figure(figsize=(7, 0.36 * len(groups) + 1.2), layout="constrained")
    axes = figure.subplots()
    for row, judged in enumerate(groups):
        lower, upper = judged.interval
        axes.plot([lower, upper], [row, row], color="#4477aa", lw=2)
        axes.plot(judged.ratio, row, "o", color="#4477aa", ms=5)
    axes.axvspan(0.85, 1.15, color="#dddddd", zorder=0)
    axes.axvline(1, color="#555555", lw=1)
    axes.set_yticks(range(len(groups)), [f"{one.name} ({one.turns:,})" for one in groups])
    axes.invert_yaxis()
    axes.set_xlabel("actual ÷ expected ends; above 1, turns ended sooner than forecast")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with turns.csv.gz")
    parser.add_argument("--every", type=int, default=EVERY, help="turns between two fits")
    parser.add_argument("--save", type=Path, help="draw what decisions rest on, .svg or .png")
    given = parser.parse_args(arguments)
    if not given.data.exists():
        print(f"skipped: the reference data are not there: {given.data}")
        return
    turns = read_turns(given.data)
    print(f"{len(turns)} turns with a time; fitted again every {given.every}; 90% intervals")
    for half_life in (None, DEFAULT_HALF_LIFE):
        for of_mean in (True, False):
            kind = "raw" if half_life is None else f"half-life {half_life:.0f}"
            print(f"{kind}, hazards of {'the credible m(i)' if of_mean else 'the mixture'}:")
            judged = calibrate(turns, half_life=half_life, of_mean=of_mean, every=given.every)
            report(judged)
            if given.save and half_life is not None and of_mean:
                save_plot(judged, given.save)


if __name__ == "__main__":
    main(sys.argv[1:])
