"""The tables that decide: decayed, and blended with all roles and the standard table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from api.role_tables import ALL_ROLES, blended_table
from estimator.credibility import CredibleTables, all_roles, alone, nest
from estimator.credible_table import CredibleTable
from estimator.decay import DEFAULT_HALF_LIFE
from estimator.life_table import LifeTable, life_table
from estimator.standard_table import kind_of_role, standard_name, standard_table
from ledger.histogram import UNITS
from policy.role_table import RoleTable
from policy.snapshot import Standard, TableKey

__all__ = ["Lives", "decisive_tables", "standards"]

#: Roles by whose name a fallback is found: the standard table tells these kinds apart.
KINDS = {"main": "main", "subagent": ""}


@dataclass(slots=True)
class Lives:
    """Life tables of one unit: a role's turns, and those on each of several models.

    Parameters
    ----------
    roles : dict of str to LifeTable
        Decayed, by role.
    models, counts : dict of str to dict of str to LifeTable
        By role, then model: decayed, and raw.
    """

    roles: dict[str, LifeTable] = field(default_factory=dict)
    models: dict[str, dict[str, LifeTable]] = field(default_factory=dict)
    counts: dict[str, dict[str, LifeTable]] = field(default_factory=dict)

    def take(
        self, role: str, decayed: Mapping[str, LifeTable], counts: Mapping[str, LifeTable]
    ) -> None:
        """Replace what is known of a role.

        Parameters
        ----------
        decayed : mapping of str to LifeTable
            By model; under "" stand all of the role's turns.
        counts : mapping of str to LifeTable
            Raw, by model.
        """
        for known in (self.roles, self.models, self.counts):
            known.pop(role, None)
        if "" in decayed:
            self.roles[role] = decayed[""]
        if counts:
            self.models[role] = {model: decayed[model] for model in counts}
            self.counts[role] = dict(counts)


def decisive_tables(
    unit: str,
    lives: Lives,
    raw: Mapping[TableKey, RoleTable],
    pace: Callable[[str | None], float | None],
) -> dict[TableKey, RoleTable]:
    """Return the tables of one unit that decide, and what decides where there is none.

    Parameters
    ----------
    lives : Lives
        Decayed tables of the roles of which a turn has ended.
    raw : mapping of TableKey to RoleTable
        The printed tables, whose counts are shown beside the estimates.
    pace : callable
        ``role -> requests per tool call``, of all roles for None.
    """
    tables: dict[TableKey, RoleTable] = {}
    whole = pace(None)
    for kind, name in KINDS.items():
        parent = all_roles(lives.roles, _standard(kind, unit))
        tables[TableKey("fallback", unit, name)] = _fallback(kind, unit, parent, raw, whole)
        own = {role: life for role, life in lives.roles.items() if kind_of_role(role) == kind}
        counts = {role: raw[TableKey("raw", unit, role)] for role in own}
        paces = {role: pace(role) or whole for role in own}
        for role, table in _nested(unit, own, parent, counts, paces).items():
            tables[TableKey("decisive", unit, role)] = table
        for role in own.keys() & lives.models.keys():
            above = nest(role, lives.roles[role], parent)
            for model, table in _on_models(unit, role, lives, above, paces[role]).items():
                tables[TableKey("decisive", unit, role, model)] = table
    return tables


def _nested(
    unit: str,
    lives: Mapping[str, LifeTable],
    parent: CredibleTable,
    counts: Mapping[str, RoleTable | LifeTable],
    paces: Mapping[str, float | None],
) -> dict[str, RoleTable]:
    """Return tables that borrow from one parent, under their names."""
    if not lives:
        return {}
    blended = CredibleTables.of(lives, parent)
    return {
        name: blended_table(
            name,
            unit,
            _columns(blended, row),
            counts[name],
            source="role",
            observed_age=lives[name].tail_age,
            level=parent.level,
            half_life_turns=DEFAULT_HALF_LIFE,
            pace=paces[name],
        )
        for row, name in enumerate(blended.roles)
    }


def _on_models(
    unit: str, role: str, lives: Lives, parent: CredibleTable, pace: float | None
) -> dict[str, RoleTable]:
    """Return the tables of a role's turns on each of its models; they borrow from the role's."""
    models = lives.models[role]
    names = {model: f"{role} on {model}" for model in models}
    nested = _nested(
        unit,
        {names[model]: life for model, life in models.items()},
        parent,
        {names[model]: life for model, life in lives.counts[role].items()},
        dict.fromkeys(names.values(), pace),
    )
    return {model: nested[name] for model, name in names.items()}


def _fallback(
    kind: str,
    unit: str,
    parent: CredibleTable,
    raw: Mapping[TableKey, RoleTable],
    pace: float | None,
) -> RoleTable:
    """Return what decides for a role without turns: all roles, or the standard table alone."""
    known = raw.get(TableKey("portfolio", unit)) if parent.ends[0] else None
    standard = _standard_life(kind, unit)
    # The mean is that of all roles; how far a new one may lie from it is as wide as D = 0 says.
    new_role = nest(ALL_ROLES, None, parent)
    columns = (
        parent.mean,
        new_role.lower,
        new_role.upper,
        parent.survival(),
        parent.continue_probabilities(),
        parent.z,
        parent.ends,
    )
    return blended_table(
        ALL_ROLES,
        unit,
        columns,
        known or standard,
        source="all_roles" if known else "standard",
        observed_age=parent.tail_age if known else standard.tail_age,
        level=parent.level,
        half_life_turns=DEFAULT_HALF_LIFE if known else None,
        pace=pace,
    )


def _columns(blended: CredibleTables, row: int) -> tuple[NDArray[np.float64], ...]:
    return tuple(
        column[row]
        for column in (
            blended.mean,
            blended.lower,
            blended.upper,
            blended.survival,
            blended.continue_probability,
            blended.z,
            blended.ends,
        )
    )


@cache
def _standard_life(kind: str, unit: str) -> LifeTable:
    return life_table(standard_table(kind, unit))


@cache
def _standard(kind: str, unit: str) -> CredibleTable:
    return alone(standard_name(), _standard_life(kind, unit))


@cache
def standards() -> Mapping[tuple[str, str], Standard]:
    """Return the standard tables by unit and the name that a fallback goes under."""
    name = standard_name()
    return {
        (unit, fallback): Standard(name, int(_standard_life(kind, unit).turns_with_a_call))
        for unit in UNITS
        for kind, fallback in KINDS.items()
    }
