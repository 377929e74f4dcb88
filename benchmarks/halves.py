"""Mean or median, and how soon believed: half of a role's sessions foretell the other half.

Each role of each project of a folder of Claude Code logs is a role of its own. What a bill needs
is a mean over what comes; the question is what foretells it best from what was.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from benchmarks.first_compactions import LOGS
from estimator.pauses import OVER_SECONDS
from ledger.database import open_engine, reading
from ledger.importing import import_logs
from ledger.log_file import ImportOptions
from ledger.observations import FALL, TurnSeen, turns_seen
from ledger.schema import turns
from migrations.upgrade import upgrade

#: A role with fewer values, or sessions, tells nothing here.
LEAST_VALUES = 20
LEAST_SESSIONS = 6
SPLITS = 100
FULL = (0.0, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)

Session = Sequence[TurnSeen]
Values = list[NDArray[np.float64]]


def sessions(logs: Path) -> dict[str, list[Session]]:
    """Return the sessions of each role and project, their turns in order."""
    found: dict[str, list[Session]] = {}
    for folder in (*sorted(logs.glob("*/claude-code")), logs / "spotter"):
        with tempfile.TemporaryDirectory() as place:
            engine = open_engine(str(Path(place) / "ledger.db"))
            upgrade(engine)
            import_logs(engine, [folder], ImportOptions(skip_corrupt=True))
            with reading(engine) as connection:
                rows = connection.execute(select(turns.c.turn_id, turns.c.role)).all()
                roles = {row.turn_id: row.role for row in rows}
                seen = turns_seen(connection, roles)
            engine.dispose()
        lines: dict[tuple[str, str], list[TurnSeen]] = defaultdict(list)
        for turn_id, turn in seen.items():
            lines[roles[turn_id], turn.thread_id or turn_id].append(turn)
        for (role, _), line in lines.items():
            ordered = sorted(line, key=lambda turn: turn.started_ms or 0)
            found.setdefault(f"{folder.parent.name}/{role}", []).append(ordered)
    return found


def growth(session: Session) -> Iterable[float]:
    return chain.from_iterable(turn.growths for turn in session)


def first_growth(session: Session) -> Iterable[float]:
    for sooner, later in pairwise(session):
        before, after = sooner.last_context, later.first_context
        if before and after and after >= before * (1 - FALL):
            yield after - before


def requests_after(session: Session) -> Iterable[float]:
    counts = [turn.requests for turn in session]
    return (float(sum(counts[number + 1 :])) for number in range(len(counts)))


def first_context(session: Session) -> Iterable[float]:
    return (turn.first_context for turn in session if turn.opens_session and turn.first_context)


def goes_on(session: Session) -> Iterable[float]:
    for sooner, later in pairwise(session):
        yield float((later.started_ms or 0) - (sooner.last_ms or 0) <= OVER_SECONDS * 1000)
    yield 0.0


def pause(session: Session) -> Iterable[float]:
    return (
        max(0.0, (later.started_ms or 0) - (sooner.last_ms or 0)) / 1000
        for sooner, later in pairwise(session)
    )


def values_of(
    found: Mapping[str, Sequence[Session]], told: Callable[[Session], Iterable[float]]
) -> dict[str, Values]:
    """Return each role's values by session, of the roles that have enough."""
    kept = {}
    for role, own in found.items():
        values = [np.array(list(told(session)), dtype=np.float64) for session in own]
        values = [one for one in values if one.size]
        together = np.concatenate(values) if values else np.zeros(0)
        # Sub-agents never go on: nothing is to be foretold there.
        if len(values) >= LEAST_SESSIONS and together.size >= LEAST_VALUES and together.any():
            kept[role] = values
    return kept


def by_statistic(
    roles: Mapping[str, Values], statistic: Callable[[NDArray[np.float64]], float]
) -> float:
    """Return the median relative error with which one half's statistic foretells the mean."""
    draw = np.random.default_rng(1)
    wrong = []
    for values in roles.values():
        for _ in range(SPLITS):
            order = draw.permutation(len(values))
            half = len(values) // 2
            own = np.concatenate([values[one] for one in order[:half]])
            other = float(np.concatenate([values[one] for one in order[half:]]).mean())
            wrong.append(abs(statistic(own) - other) / max(other, 1e-9))
    return float(np.median(wrong))


def by_full(roles: Mapping[str, Values], full: float, sessions_seen: int) -> float:
    """Return the mean relative error from a few sessions, borrowing from the other roles."""
    draw = np.random.default_rng(1)
    wrong = []
    for role, values in roles.items():
        rest = [np.concatenate(own).mean() for name, own in roles.items() if name != role]
        for _ in range(SPLITS):
            order = draw.permutation(len(values))
            own = np.concatenate([values[one] for one in order[:sessions_seen]])
            other = float(np.concatenate([values[one] for one in order[sessions_seen:]]).mean())
            z = own.size / (own.size + full)
            guess = z * float(own.mean()) + (1 - z) * float(np.mean(rest))
            wrong.append(abs(guess - other) / max(other, 1e-9))
    return float(np.mean(wrong))


NUMBERS: Mapping[str, Callable[[Session], Iterable[float]]] = {
    "growth per request": growth,
    "growth, first request": first_growth,
    "requests after a turn": requests_after,
    "first context": first_context,
    "session goes on": goes_on,
    "pause": pause,
}


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.halves")
    parser.add_argument("--logs", type=Path, default=LOGS)
    found = sessions(parser.parse_args(arguments).logs)
    print(f"{'median error of the mean':26}{'roles':>6}{'mean':>8}{'median':>8}")
    for name, told in NUMBERS.items():
        roles = values_of(found, told)
        mean = by_statistic(roles, lambda own: float(own.mean()))
        median = by_statistic(roles, lambda own: float(np.median(own)))
        print(f"{name:26}{len(roles):6}{mean:8.1%}{median:8.1%}")
    for seen in (1, 3):
        print(f"\nmean error from {seen} sessions, by K" + "".join(f"{one:>8g}" for one in FULL))
        for name, told in NUMBERS.items():
            roles = values_of(found, told)
            wrong = "".join(f"{by_full(roles, one, seen):8.1%}" for one in FULL)
            print(f"{name:32}{wrong}")


if __name__ == "__main__":
    main(sys.argv[1:])
