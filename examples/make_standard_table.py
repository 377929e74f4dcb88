"""Regenerate the standard table: ``python -m examples.make_standard_table DATA [TARGET]``.

``DATA`` is the folder of public agent logs with ``turns.csv.gz`` and ``manifest.csv``; ``TARGET``
is ``estimator/data/standard_table.csv`` by default. The same data give the same bytes. Only counts
go into the table: no text, no names of sessions or projects.
"""

import argparse
import csv
import gzip
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

#: Names the table in every answer that rests on it; a change of the counts needs a new one.
NAME = "standard 2026-11-30"
LICENCES = ("Apache-2.0", "MIT")
#: Benchmark folders have no rows in the manifest; their licences are in their READMEs.
README_LICENCES = {"multi-swe-bench": "ISC", "spotter": "MIT", "tau-bench": "MIT"}
#: Roles that talk to the user (or to a benchmark's simulated one); all others are sub-agents.
MAIN_ROLES = ("main", "airline-agent")
TARGET = Path(__file__).parents[1] / "estimator" / "data" / "standard_table.csv"
COLUMNS = ("harness", "kind", "unit", "entry", "exit", "ended", "count")

Turn = Mapping[str, str]


def licences(data: Path) -> dict[str, set[str]]:
    """Give the licences of each source by the name it has in the table of turns."""
    found = {source: {licence} for source, licence in README_LICENCES.items()}
    with (data / "manifest.csv").open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            found.setdefault(row["repo"].replace("/", "+"), set()).add(row["licence"])
    return found


def allowed_turns(data: Path) -> list[Turn]:
    """Read the turns whose source is under an allowed licence and whose start was seen."""
    allowed = {source for source, given in licences(data).items() if given <= set(LICENCES)}
    with gzip.open(data / "turns.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        return [
            turn
            for turn in csv.DictReader(lines)
            if turn["source"] in allowed and turn["left_truncated"] == "False"
        ]


def cells_of(turn: Turn) -> Iterator[tuple[str, str, str, int, int, int]]:
    """Yield the turn's cell in each unit it tells.

    A cut turn is at risk for one call less than it made: only N ≥ that is known, and of requests
    the rows do not say whether the last answer asked for tools.
    """
    ended = turn["ended"] == "True"
    kind = "main" if turn["role"] in MAIN_ROLES else "subagent"
    known = (("tool_calls", turn["n_tool_calls"]), ("requests", turn["n_llm_calls"]))
    for unit, made in known:
        # A turn begins with a request, so 0 of them is a row that does not count them.
        if made and (unit == "tool_calls" or float(made)):
            exit_ = int(float(made)) - (not ended)
            yield turn["harness"], kind, unit, 0, exit_, int(ended)


def header(turns: list[Turn]) -> list[str]:
    """Say in words what the table is made of, one comment line each."""
    sessions = {(turn["source"], turn["session"]) for turn in turns}
    times = sorted(turn["started_at"] for turn in turns if turn["started_at"])
    cut = sum(turn["ended"] != "True" for turn in turns)
    benchmark = sum(turn["harness"] == "tau-bench" for turn in turns)
    return [
        NAME,
        (
            f"Turns counted by calls: {len(turns)} turns ({cut} of them cut) of {len(sessions)} "
            f"sessions, {benchmark} turns of them from the benchmark tau-bench."
        ),
        (
            f"Source: public agent logs of {len({turn['source'] for turn in turns})} projects, "
            f"started {times[0][:10]} to {times[-1][:10]} where a time is known."
        ),
        f"Licences of the sources: {', '.join(LICENCES)}; the counts themselves are facts.",
        (
            "Known bias: log files of 4 MiB and more are missing, so long turns are "
            "under-represented; one project has most of the main turns."
        ),
        "A turn is at risk for call j iff entry < j <= exit; ended=0 is a cut turn.",
        "Made by: python -m examples.make_standard_table DATA",
    ]


def make(data: Path, target: Path = TARGET) -> int:
    """Write the table and return the number of turns in it."""
    turns = allowed_turns(data)
    cells = Counter(cell for turn in turns for cell in cells_of(turn))
    with target.open("w", encoding="utf-8", newline="") as out:
        out.writelines(f"# {line}\n" for line in header(turns))
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((*cell, cells[cell]) for cell in sorted(cells))
    return len(turns)


def main() -> None:
    """Write the table from the folder given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.make_standard_table")
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with turns.csv.gz")
    parser.add_argument("target", type=Path, nargs="?", default=TARGET, metavar="TARGET")
    given = parser.parse_args()
    print(f"{given.target}: {make(given.data, given.target)} turns")


if __name__ == "__main__":
    main()
