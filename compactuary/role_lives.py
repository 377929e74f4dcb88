"""A ledger's roles with their life tables and break-evens: the rows of tables and pictures."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection

from api.estimates import ALL_ROLES, learned_pace, within_horizon
from compactuary.errors import InputError, UnknownPriceError
from estimator.decay import Change, DecayedHistogram, Place
from estimator.histogram import Histogram, merge
from estimator.note_table import UNITS, RoleLife
from ledger.estimates import Changes, Pace, changes_since
from ledger.histogram import TOOL_CALLS, Cell
from ledger.recent import RecentTurn, recent_turns
from policy.break_even import break_even_requests
from policy.parameters import ASSUMED
from policy.prices import GenaiPriceBook
from policy.question import Question
from policy.quote import Quote, quote

__all__ = [
    "MOST_PANELS",
    "TABLE_CONTEXT_TOKENS",
    "BreakEven",
    "Lives",
    "cells_histogram",
    "check_roles",
    "commonest_model",
    "lives_over_projects",
    "model_break_even",
    "model_quote",
    "role_lives",
]

TABLE_CONTEXT_TOKENS = 150_000
"""Context at which a table's break-even is computed where nobody names one."""

MOST_PANELS = 16
"""Roles that a picture shows where nobody names any: more panels are too small to read."""

BreakEven: TypeAlias = float | Mapping[str, float] | None
"""C/s in requests: one for all, by model, or None for the prices of each row's model."""

# A turn that ten half-lives of later ones outweigh counts for less than a thousandth.
HALF_LIVES_READ = 10
# Databases count in 64 bits.
MOST_TURNS_READ = 2**62

_Key: TypeAlias = tuple[str, str | None]


class Lives(NamedTuple):
    """Rows of a table: the roles, most turns first, and all of them together.

    Parameters
    ----------
    roles : list of RoleLife
        One a role, or a role and model.
    whole : RoleLife or None
        All roles together; None where roles were named, or there is only one.
    paces : dict of (role, model or None) to float or None
        Requests per tool call, also where the unit is requests; None where not learned.
    """

    roles: list[RoleLife]
    whole: RoleLife | None
    paces: dict[_Key, float | None]


@dataclass(frozen=True, slots=True)
class _Pricing:
    """How the break-even of a row is found."""

    given: BreakEven
    context_tokens: int
    at: datetime

    def of(self, model: str | None) -> float | None:
        if isinstance(self.given, Mapping):
            return self.given.get(model or "")
        if self.given is not None:
            return float(self.given)
        return model_break_even(model, self.context_tokens, at=self.at) if model else None


def model_quote(
    model: str, context_tokens: int = TABLE_CONTEXT_TOKENS, *, at: datetime | None = None
) -> Quote:
    """Give C and s of a compaction from a model's prices, sizes assumed.

    Parameters
    ----------
    model : str
    context_tokens : int, default 150,000
        Context before the compaction.
    at : datetime, optional
        Prices as of when; by default now.

    Raises
    ------
    UnknownPriceError
        If no price is known for the model.
    """
    question = Question(role=ALL_ROLES, calls=0, context_tokens=context_tokens, model=model)
    return quote(question, GenaiPriceBook(), ASSUMED, at=at or datetime.now(UTC))


def model_break_even(
    model: str, context_tokens: int = TABLE_CONTEXT_TOKENS, *, at: datetime | None = None
) -> float | None:
    """Give C/s in requests from a model's prices; the parameters are those of `model_quote`.

    Returns
    -------
    float or None
        None where no price is known for the model, or a compaction saves nothing.
    """
    try:
        quoted = model_quote(model, context_tokens, at=at)
    except UnknownPriceError:
        return None
    return break_even_requests(quoted.cost, quoted.saving)


def role_lives(
    connection: Connection,
    roles: Sequence[str] | None = None,
    *,
    unit: str = TOOL_CALLS,
    by_model: bool = False,
    break_even: BreakEven = None,
    context_tokens: int = TABLE_CONTEXT_TOKENS,
    at: datetime | None = None,
    half_life_turns: float | None = None,
) -> Lives:
    """Estimate the life tables of a ledger's roles.

    Parameters
    ----------
    connection : Connection
    roles : sequence of str, optional
        By default all, with all of them together besides.
    unit : {'tool_calls', 'requests'}
    by_model : bool, default False
        One row for each model of a role.
    break_even : float, mapping of model to float, or None
        C/s in requests; by default from the prices, at `context_tokens`, of the row's model,
        which is the commonest one where a row has several. An empty mapping for none.
    context_tokens : int, default 150,000
    at : datetime, optional
        Prices as of when; by default now.
    half_life_turns : float, optional
        After so many later turns of its role a turn counts half; all roles together are the sum
        of such tables. By default raw: every turn counts alike.

    Raises
    ------
    InputError
        If the unit or a role is unknown, or the half-life is not a positive number.
    """
    _check(unit, half_life_turns)
    changes = changes_since(connection, 0)
    cells = _cells(changes, unit)
    check_roles(roles, {cell.role for cell in cells})
    by_key = _by_key(cells, roles, by_model=by_model)
    turns = {key: cells_histogram(own) for key, own in by_key.items()}
    if half_life_turns is not None:
        turns = _decayed(connection, by_key, unit, half_life_turns)
    pricing = _Pricing(break_even, context_tokens, at or datetime.now(UTC))
    return _lives(changes, by_key, turns, unit, pricing, whole=roles is None)


def lives_over_projects(connection: Connection) -> Lives:
    """Estimate raw tables of tool calls for roles that were imported as ``project/role``.

    Parameters
    ----------
    connection : Connection

    Returns
    -------
    Lives
        One row a role over all projects, with the break-evens of the models' present prices.
    """
    changes = _over_projects(changes_since(connection, 0))
    by_key = _by_key(_cells(changes, TOOL_CALLS), None, by_model=False)
    turns = {key: cells_histogram(own) for key, own in by_key.items()}
    pricing = _Pricing(None, TABLE_CONTEXT_TOKENS, datetime.now(UTC))
    return _lives(changes, by_key, turns, TOOL_CALLS, pricing, whole=True)


def _lives(
    changes: Changes,
    by_key: Mapping[_Key, Counter[Cell]],
    turns: Mapping[_Key, Histogram],
    unit: str,
    pricing: _Pricing,
    *,
    whole: bool,
) -> Lives:
    """Make a row of each key, and one of all of them together where there are several roles."""
    paces = {key: _pace(changes, *key) for key in by_key}
    rows = [
        _life(key, turns[key], unit, paces[key], pricing.of(_commonest_model(own)))
        for key, own in by_key.items()
    ]
    rows.sort(key=lambda row: (-row.turns, row.role, row.model or ""))
    if not whole or len({row.role for row in rows}) < 2:
        return Lives(rows, None, paces)
    every = (ALL_ROLES, None)
    line = pricing.of(_commonest_model(sum(by_key.values(), Counter())))
    total = _life(every, merge(*turns.values()), unit, _pace(changes, *every), line)
    return Lives(rows, total, paces)


def _over_projects(changes: Changes) -> Changes:
    """Name every role without its project, and add up what then has one name."""

    def plain(role: str) -> str:
        return role.partition("/")[2] or role

    cells: Counter[Cell] = Counter()
    open_cells: Counter[Cell] = Counter()
    for told, sums in ((changes.cells, cells), (changes.open_cells, open_cells)):
        for cell, count in told.items():
            sums[replace(cell, role=plain(cell.role))] += count
    paces: dict[tuple[str, str], Pace] = {}
    for (role, model), pace in changes.paces.items():
        key = (plain(role), model)
        paces[key] = paces.get(key, Pace()) + pace
    return Changes(changes.version, dict(cells), paces, open_cells)


def _by_key(
    cells: Mapping[Cell, int], roles: Sequence[str] | None, *, by_model: bool
) -> dict[_Key, Counter[Cell]]:
    by_key: dict[_Key, Counter[Cell]] = {}
    for cell, count in cells.items():
        if roles is None or cell.role in roles:
            key = (cell.role, cell.model if by_model else None)
            by_key.setdefault(key, Counter())[cell] += count
    return by_key


def _life(
    key: _Key, turns: Histogram, unit: str, pace: float | None, break_even_requests: float | None
) -> RoleLife:
    return RoleLife.of(
        key[0],
        turns,
        model=key[1],
        requests_per_call=pace if unit == TOOL_CALLS else None,
        break_even_requests=break_even_requests,
    )


def check_roles(wanted: Sequence[str] | None, known: set[str]) -> None:
    """Refuse roles that are not among those known; None wants all.

    Raises
    ------
    InputError
        If one is not.
    """
    for role in wanted or ():
        if role not in known:
            raise InputError(
                "the ledger has no turn of this role",
                where="role",
                value=role,
                remedy=f"Known roles: {', '.join(sorted(known)) or 'none yet'}",
            )


def commonest_model(connection: Connection) -> str | None:
    """Name the model of most turns in the ledger, or None where no turn tells its model."""
    return _commonest_model(_cells(changes_since(connection, 0), TOOL_CALLS))


def cells_histogram(cells: Mapping[Cell, int]) -> Histogram:
    """Add up a ledger's cells of one unit, whatever their roles and models."""
    return Histogram.from_rows(
        (*within_horizon((cell.entry, cell.exit, cell.ended)), count)
        for cell, count in cells.items()
        if count
    )


def _check(unit: str, half_life_turns: float | None) -> None:
    if unit not in UNITS:
        raise InputError(
            "no such unit", where="unit", value=unit, remedy=f"Choose one of {', '.join(UNITS)}"
        )
    if half_life_turns is not None and not 0 < half_life_turns < math.inf:
        raise InputError(
            "the half-life is not a positive number of turns",
            where="decay",
            value=half_life_turns,
            remedy="Give turns, such as 200, or leave it out: every turn then counts alike",
        )


def _cells(changes: Changes, unit: str) -> Counter[Cell]:
    """Count closed and open turns of one unit by cell, without cells that all turns have left."""
    counted = {cell: count for cell, count in changes.cells.items() if count}
    cells = Counter({cell: count for cell, count in counted.items() if cell.unit == unit})
    cells.update({cell: count for cell, count in changes.open_cells.items() if cell.unit == unit})
    return cells


def _decayed(
    connection: Connection, keys: Iterable[_Key], unit: str, half_life_turns: float
) -> dict[_Key, Histogram]:
    """Weigh turns by how many of their role came after them, whichever model made those."""
    limit = min(math.ceil(HALF_LIVES_READ * half_life_turns), MOST_TURNS_READ)
    by_role: dict[str, list[RecentTurn]] = {}
    histograms = {}
    for role, model in keys:
        if role not in by_role:
            recent = recent_turns(connection, role, limit)
            by_role[role] = [turn for turn in recent if turn.place(unit)]
        changes = (
            Change(Place(*within_horizon(place)), number)
            for number, turn in enumerate(by_role[role], start=1)
            if (place := turn.place(unit)) and model in (None, turn.model)
        )
        empty = DecayedHistogram(half_life_turns, turns=len(by_role[role]))
        histograms[role, model] = empty.with_changes(changes).histogram()
    return histograms


def _commonest_model(cells: Mapping[Cell, int]) -> str | None:
    used: Counter[str] = Counter()
    for cell, count in cells.items():
        used[cell.model] += count
    return min(((-count, name) for name, count in used.items() if name), default=(0, None))[1]


def _pace(changes: Changes, role: str, model: str | None) -> float | None:
    return learned_pace(
        pace
        for (name, of_model), pace in changes.paces.items()
        if role in (ALL_ROLES, name) and model in (None, of_model)
    )
