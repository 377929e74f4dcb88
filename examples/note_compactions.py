"""Compactions whose verdicts are those of the note that started this project.

The note publishes what came of its compactions, not their rows: of 13 that were judged call by
call, all 4 with 17 calls ahead and more paid, none of the 7 with 9 and fewer did, and 2 were within
6,000 weighted tokens of the break-even; of 80 in production 3 in 10 paid, one that paid was worth
some ten that lost, and all together saved more than they cost. These rows are invented, and built
so that exactly that comes out: ``python -m examples.note_compactions DIR`` writes them as tables.
"""

import argparse
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

__all__ = ["JUDGED", "PRODUCTION", "NoteCompaction", "write_note_compactions"]

_FIRST = datetime(2026, 6, 2, 9, 0, tzinfo=UTC)
_MODEL = "claude-opus-4-6"
_ROLES = ("dev-front", "dev-back", "triage")


@dataclass(frozen=True, slots=True)
class NoteCompaction:
    """One compaction in mid-turn; every request of its turn asks for one tool call.

    Parameters
    ----------
    context_before, context_after : int
        X and X′ in tokens.
    ahead : int
        Requests that followed in the turn, which then ended.
    before : int
        Requests that the turn had made.
    """

    context_before: int
    context_after: int
    ahead: int
    before: int = 20


#: X and X′. At r = .1, w = 1.25, o = 5 with P = 28,000, S + R = 5,000 and I = 500 tokens, C is
#: 47,450, 41,100 and 55,150 and s 2,900, 2,800 and 3,100: C/s is 16.4, 14.7 and 17.8 requests.
_SIZES = ((70_000, 41_000), (64_000, 36_000), (78_000, 47_000))
_USUAL, _SMALL, _LARGE = range(3)


def _sized(size: int, ahead: int) -> NoteCompaction:
    return NoteCompaction(*_SIZES[size], ahead)


JUDGED = (
    *(_sized(size, ahead) for size, ahead in ((_USUAL, 0), (_LARGE, 1), (_SMALL, 2), (_USUAL, 4))),
    *(_sized(size, ahead) for size, ahead in ((_LARGE, 5), (_USUAL, 7), (_SMALL, 9))),
    # Less than 6,000 from the break-even, one on each side.
    *(_sized(size, ahead) for size, ahead in ((_USUAL, 15), (_SMALL, 16))),
    *(_sized(size, ahead) for size, ahead in ((_SMALL, 17), (_USUAL, 25), (_LARGE, 40))),
    _sized(_USUAL, 60),
)
"""The 13 that were judged call by call."""

PRODUCTION = (
    *(_sized(number % 3, number % 10) for number in range(56)),
    *(_sized(number % 3, 84 + 4 * number) for number in range(24)),
)
"""The 80 in production: 56 that lost, and 24 that paid."""


def write_note_compactions(folder: Path) -> None:
    """Write ``judged`` and ``production``, each a folder of ``turns.csv`` and ``compactions.csv``.

    Parameters
    ----------
    folder : Path
        Made if it is missing.
    """
    for name, rows in (("judged", JUDGED), ("production", PRODUCTION)):
        own = folder / name
        own.mkdir(parents=True, exist_ok=True)
        _write(own / "turns.csv", _turns(name, rows))
        _write(own / "compactions.csv", _compactions(name, rows))


def _turns(name: str, rows: Sequence[NoteCompaction]) -> Iterable[dict[str, object]]:
    for number, row in enumerate(rows, 1):
        made = row.before + row.ahead
        yield {
            "turn_id": f"{name}-{number}",
            "session_id": f"{name}-session-{number}",
            "role": _ROLES[number % len(_ROLES)],
            "model": _MODEL,
            "status": "ended",
            "started_at": _at(number, 0),
            "ended_at": _at(number, made),
            "tool_calls": made,
            "requests": made,
        }


def _compactions(name: str, rows: Sequence[NoteCompaction]) -> Iterable[dict[str, object]]:
    for number, row in enumerate(rows, 1):
        yield {
            "compaction_id": f"{name}-compaction-{number}",
            "session_id": f"{name}-session-{number}",
            "turn_id": f"{name}-{number}",
            "at": _at(number, row.before),
            "trigger": "auto",
            "context_before": row.context_before,
            "context_after": row.context_after,
            "calls_before": row.before,
            "requests_before": row.before,
        }


def _at(number: int, minutes: int) -> str:
    return (_FIRST + timedelta(hours=6 * number, minutes=minutes)).isoformat()


def _write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    told = list(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, told[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(told)


def main() -> None:
    """Write both into the folder given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.note_compactions")
    parser.add_argument("folder", type=Path, metavar="DIR", help="made if missing")
    folder: Path = parser.parse_args().folder
    write_note_compactions(folder)
    print(f"{folder}: {len(JUDGED)} compactions judged, {len(PRODUCTION)} in production")


if __name__ == "__main__":
    main()
