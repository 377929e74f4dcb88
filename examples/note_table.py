"""A table of turns with the figures of the note that started this project.

The note (*El disparador por ocupación compacta sin saber cuántas llamadas quedan*) publishes
figures of a production system, not its rows: 3,346 turns of 13 roles, a front-end developer's
role with 34.8 tool calls ahead after 30, and across roles from 8.1 to 46.4 ahead after 10. These
rows are invented, role names included, and built so that exactly those figures come out.
"""

import csv
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

__all__ = ["ROLES", "NoteTurn", "RoleShape", "note_turns", "write_note_table"]

_FIRST_PROMPT = datetime(2026, 6, 1, 7, 0, tzinfo=UTC)
_LAST_PROMPT = datetime(2026, 9, 14, 18, 0, tzinfo=UTC)
# Any stretch of this sequence covers the whole shape: the table holds no drift to be alarmed at.
_GOLDEN = (math.sqrt(5) - 1) / 2
_HALF_LIFE_TURNS = 200  # the estimator's default: recent turns of a role weigh more
_SHARED_REQUEST = 0.12  # chance that a tool call rides in the same request as the one before
_HEAVY_MODEL, _LIGHT_MODEL = "claude-opus-4-6", "claude-haiku-4-5"


@dataclass(frozen=True, slots=True)
class RoleShape:
    """How long the turns of one role are.

    Parameters
    ----------
    role : str
        The role's name.
    turns : int
        Turns of the role, each with at least one tool call.
    shape, scale : float
        The Weibull law of N − 1, in tool calls: shape above 1 makes the mean residual life fall
        with age, below 1 rise, 1 keeps it level.
    age : int
        The age, in tool calls, at which the mean residual life is prescribed.
    mean_residual_life : float
        The prescribed mean of N − age over the role's turns with N > age, in tool calls. Met to
        within half a tool call over the sum, and to within 0.01 where turns are weighted with the
        estimator's default half-life of 200 turns.
    """

    role: str
    turns: int
    shape: float
    scale: float
    age: int
    mean_residual_life: float


@dataclass(frozen=True, slots=True)
class NoteTurn:
    """One turn, one line of the table; the field names are the column names.

    ``status`` is always ``ended``: a real table has cut turns too, but the note counts finished
    turns only, and with cut ones in it its plain means would not be the estimate. Times are
    ISO 8601 in UTC; ``tool_calls`` is N, ``requests`` counts the final answer too.
    """

    source: str
    session_id: str
    turn_id: str
    role: str
    model: str
    started_at: str
    ended_at: str
    status: str
    tool_calls: int
    requests: int


ROLES = (
    RoleShape("dev-front", 412, 1.16, 43.0, 30, 34.8),
    RoleShape("dev-back", 468, 0.84, 36.5, 10, 46.4),
    RoleShape("dev-mobile", 203, 1.08, 33.0, 10, 31.2),
    RoleShape("data-engineer", 241, 0.95, 27.0, 10, 29.3),
    RoleShape("devops", 233, 0.90, 21.5, 10, 25.6),
    RoleShape("architect", 156, 1.00, 19.0, 10, 19.4),
    RoleShape("qa", 397, 1.05, 17.5, 10, 16.5),
    RoleShape("security", 144, 0.92, 14.0, 10, 16.1),
    RoleShape("reviewer", 386, 1.10, 13.0, 10, 11.9),
    RoleShape("designer", 158, 1.00, 11.5, 10, 11.7),
    RoleShape("docs", 187, 1.12, 11.5, 10, 10.2),
    RoleShape("release", 149, 0.98, 9.0, 10, 9.4),
    RoleShape("triage", 212, 1.00, 8.0, 10, 8.1),
)


def note_turns(seed: int = 17) -> list[NoteTurn]:
    """Return the 3,346 turns, ordered by start.

    Parameters
    ----------
    seed : int, default 17
        Another seed gives other rows with the same prescribed figures; the same seed always gives
        the same rows.

    Returns
    -------
    list of NoteTurn
        Turns of one session follow one another; a session belongs to one role.
    """
    turns = [turn for role in ROLES for turn in _role_turns(role, Random(f"{seed}/{role.role}"))]
    return sorted(turns, key=lambda turn: (turn.started_at, turn.turn_id))


def write_note_table(path: Path, seed: int = 17) -> int:
    """Write the turns as CSV with a header line.

    Parameters
    ----------
    path : Path
        The file to write; an existing one is replaced.
    seed : int, default 17
        As in :func:`note_turns`. The same seed gives the same bytes.

    Returns
    -------
    int
        Turns written.
    """
    turns = note_turns(seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(field.name for field in fields(NoteTurn))
        table.writerows(astuple(turn) for turn in turns)
    return len(turns)


def _role_turns(role: RoleShape, rng: Random) -> Iterator[NoteTurn]:
    lives = _meet_mean_residual_life(_lives(role, rng), role)
    lives = _meet_decayed_mean(lives, role, rng)
    model = _HEAVY_MODEL if role.mean_residual_life > 17 else _LIGHT_MODEL
    sessions = _session_sizes(role.turns, rng)
    between = (_LAST_PROMPT - _FIRST_PROMPT) / len(sessions)
    remaining = iter(lives)
    for number, size in enumerate(sessions):
        session_id = f"{role.role}-{number:03d}"
        start = _FIRST_PROMPT + between * (number + rng.uniform(0, 0.5))
        for turn in range(size):
            calls = next(remaining)
            end = start + timedelta(seconds=round(8 + calls * rng.uniform(9, 21)))
            turn_id, requests = f"{session_id}-t{turn}", _requests(calls, rng)
            times = (_iso(start), _iso(end))
            yield NoteTurn(
                "note", session_id, turn_id, role.role, model, *times, "ended", calls, requests
            )
            start = end + timedelta(seconds=round(rng.lognormvariate(4.5, 1.0)))


def _lives(role: RoleShape, rng: Random) -> list[int]:
    """Return the tool calls of each turn, in order: 1 + the floor of a Weibull draw."""
    start = rng.random()
    draws = [(start + _GOLDEN * k) % 1.0 for k in range(role.turns)]
    for first in range(0, role.turns, 20):
        stretch = draws[first : first + 20]
        rng.shuffle(stretch)
        draws[first : first + 20] = stretch
    return [1 + int(role.scale * (-math.log1p(-draw)) ** (1 / role.shape)) for draw in draws]


def _meet_mean_residual_life(lives: list[int], role: RoleShape) -> list[int]:
    """Lengthen or shorten turns past the prescribed age, one call each, until the sum is right."""
    lives = list(lives)
    past = [k for k, life in enumerate(lives) if life > role.age]
    short = round(role.mean_residual_life * len(past)) - sum(lives[k] - role.age for k in past)
    step = 1 if short > 0 else -1
    while short:
        # Shortening a turn of age + 1 would take it out of the mean.
        movable = [k for k in past if lives[k] + step > role.age]
        stride = max(1, len(movable) // abs(short))
        for k in movable[::stride][: abs(short)]:
            lives[k] += step
            short -= step
    return lives


def _meet_decayed_mean(lives: list[int], role: RoleShape, rng: Random) -> list[int]:
    """Swap turns in time until the mean is right too where recent turns weigh more."""
    lives = list(lives)
    past = [k for k, life in enumerate(lives) if life > role.age]
    weight = {k: 2 ** ((k - len(lives)) / _HALF_LIFE_TURNS) for k in past}
    excess = sum(weight[k] * (lives[k] - role.age - role.mean_residual_life) for k in past)
    tolerance = 0.01 * sum(weight.values())
    while abs(excess) > tolerance:
        j, k = rng.sample(past, 2)
        changed = excess + (weight[k] - weight[j]) * (lives[j] - lives[k])
        if abs(changed) < abs(excess):
            lives[j], lives[k], excess = lives[k], lives[j], changed
    return lives


def _requests(tool_calls: int, rng: Random) -> int:
    shared = sum(rng.random() < _SHARED_REQUEST for _ in range(tool_calls - 1))
    return tool_calls - shared + 1


def _session_sizes(turns: int, rng: Random) -> list[int]:
    sizes: list[int] = []
    while (left := turns - sum(sizes)) > 0:
        sizes.append(min(left, rng.randint(1, 7)))
    return sizes


def _iso(moment: datetime) -> str:
    return moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")
