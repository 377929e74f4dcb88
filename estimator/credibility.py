"""Credibility: roles with few turns borrow from all roles, and those from a standard table.

"Every role starts with the vote of 3 average turns": Bühlmann-Straub on log m with K = 3, nested
(role, model) → role → all roles → standard table. Each level is one step::

    standard = alone("standard 2026-11-30", life_table(turns_elsewhere))
    parent = all_roles({"main": main_table, "review": None}, standard)
    review = nest("review", None, parent)
    on_one_model = nest("review on a model", table, review)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compactuary.errors import InputError
from estimator.credible_table import CredibleTable, Source
from estimator.interval import CREDIBILITY_TURNS, credibility_log_width, life_cv2
from estimator.life_table import LifeTable

__all__ = ["ALL_ROLES", "CredibleTables", "all_roles", "alone", "credibility_factor", "nest"]

#: What an answer calls the level of all roles together.
ALL_ROLES = "all roles"


def credibility_factor(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give z = D/(D+3), the weight of a table's own estimate against its parent's.

    Parameters
    ----------
    ends : ndarray of float
        D, ends beyond the age; effective ends where turns are weighted.

    Returns
    -------
    ndarray of float
        0 where nothing ended, towards 1 as ends grow.

    References
    ----------
    .. [1] H. Bühlmann and E. Straub, "Glaubwürdigkeit für Schadensätze", Mitteilungen der
       Vereinigung schweizerischer Versicherungsmathematiker 70 (1970), 111-133. Here: the model,
       §2.
    """
    factor: NDArray[np.float64] = ends / (ends + CREDIBILITY_TURNS)
    return factor


def alone(name: str, table: LifeTable) -> CredibleTable:
    """Take a life table as it is: the end of a nest, such as the standard table.

    Parameters
    ----------
    name : str
        What answers that rest on it call it.
    table : LifeTable
        Its own interval is kept, and z = 1: nothing is borrowed.
    """
    own = _spread([table], len(table.mean))
    return CredibleTable(
        name=name,
        mean=table.mean,
        lower=table.lower,
        upper=table.upper,
        z=np.ones_like(table.mean),
        ends=own.ends[0],
        tail_age=table.tail_age,
        sources=(_source(name, table, own.go_on[0]),),
        weights=np.ones((1, len(table.mean))),
        level=table.level,
    )


def all_roles(
    tables: Mapping[str, LifeTable | None],
    standard: CredibleTable | None = None,
    *,
    level: float = 0.9,
) -> CredibleTable:
    """Blend all roles into one table, the parent of each of them.

    Parameters
    ----------
    tables : mapping of str to LifeTable or None
        By role; None for a role of which no turn has ended yet. Their order does not matter.
    standard : CredibleTable, optional
        What the roles together borrow from, by `alone`. Without one they stand alone.
    level : float, default 0.9
        Two-sided level of the interval.

    Returns
    -------
    CredibleTable
        Named `ALL_ROLES`. Its own m(i) is exp(Σ z·log m/Σ z) over the roles, each with its z at
        that age and its own open tail beyond its τ; its D is the sum over the roles. Its own
        distribution is that of a turn whose role is drawn by the z of age 0.

    Raises
    ------
    InputError
        If no role has a table and there is no standard either.
    """
    known = [tables[role] for role in sorted(tables)]
    present = [table for table in known if table is not None]
    if present:
        return _all_known(present, standard, level)
    if standard is not None:
        return nest(ALL_ROLES, None, standard, level=level)
    raise InputError(
        "no turn of any role has ended, and there is no standard table",
        where="tables",
        value=sorted(tables),
        remedy="Give a standard table, or record turns until one has ended",
    )


def _all_known(
    tables: Sequence[LifeTable], standard: CredibleTable | None, level: float
) -> CredibleTable:
    """Blend the tables that there are; at least one."""
    longest = max(len(table.mean) for table in tables)
    roles = _spread(tables, max(longest, standard.mean.size if standard else 0))
    own = _together(roles)
    source = Source(
        ALL_ROLES,
        sum(table.turns_with_a_call for table in tables),
        own.go_on[0],
        _any_call(tables, roles.ends[:, 0]),
    )
    return _nested(ALL_ROLES, own, source, longest - 1, standard, level)


def nest(
    name: str, table: LifeTable | None, parent: CredibleTable, *, level: float = 0.9
) -> CredibleTable:
    """Blend one table with its parent.

    Parameters
    ----------
    name : str
        Of the role, or of the role on one model.
    table : LifeTable or None
        Its own; None where no turn ended: the parent's value, with z = 0.
    parent : CredibleTable
        Of the level above.
    level : float, default 0.9
        Two-sided level of the interval.

    Returns
    -------
    CredibleTable
        log m = z·log m_own + (1−z)·log m_parent, with z = D/(D+3) at each age.

    Examples
    --------
    >>> from estimator.histogram import Histogram
    >>> from estimator.life_table import life_table
    >>> fives = life_table(Histogram.from_turns(calls=[5] * 9, ended=[True] * 9))
    >>> twenties = life_table(Histogram.from_turns(calls=[20] * 9, ended=[True] * 9))
    >>> row = nest("fives", fives, alone("twenties", twenties)).at(0)
    >>> row.z, round(row.mean, 3)
    (0.75, 7.071)
    """
    ages = max(parent.mean.size, len(table.mean) if table else 0)
    own = _spread([table], ages)
    source = _source(name, table, own.go_on[0])
    return _nested(name, own, source, table.tail_age if table else 0, parent, level)


@dataclass(frozen=True, slots=True, eq=False)
class CredibleTables:
    """m(i) and its interval for many roles of one parent, in one pass; made by `of`.

    Parameters
    ----------
    roles : tuple of str
        Their order is that of the rows.
    mean, lower, upper : ndarray of float, shape (roles, ages)
        m(i) and its credibility interval, in calls.
    z, ends : ndarray of float, shape (roles, ages)
        The weight of the role's own turns, and D.
    survival, continue_probability : ndarray of float, shape (roles, ages)
        S(i) of the mixture as seen from age 0, and P(N > i | N ≥ i), as `CredibleTable` gives them.
    """

    roles: tuple[str, ...]
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    z: NDArray[np.float64]
    ends: NDArray[np.float64]
    survival: NDArray[np.float64]
    continue_probability: NDArray[np.float64]

    @classmethod
    def of(
        cls, tables: Mapping[str, LifeTable | None], parent: CredibleTable, *, level: float = 0.9
    ) -> "CredibleTables":
        """Nest every table in one parent; the numbers are those of `nest`, role by role.

        Parameters
        ----------
        tables, parent, level
            As for `all_roles` and `nest`.
        """
        longest = max((len(table.mean) for table in tables.values() if table), default=1)
        own = _spread(list(tables.values()), max(longest, parent.mean.size))
        ages = own.ends.shape[1]
        blend = _blend(own, np.log(_to_length(parent.mean, ages)), level)
        return cls(
            tuple(tables),
            blend.mean,
            blend.lower,
            blend.upper,
            blend.z,
            own.ends,
            _mixed_survival(own.go_on, blend.z, parent, ages),
            _mixed_continuation(list(tables.values()), own.go_on, blend.z, parent, ages),
        )


def _mixed_survival(
    go_on: NDArray[np.float64], z: NDArray[np.float64], parent: CredibleTable, ages: int
) -> NDArray[np.float64]:
    own = np.column_stack([np.ones(len(go_on)), np.cumprod(go_on[:, :-1], axis=1)])
    mixed: NDArray[np.float64] = z[:, :1] * own + (1.0 - z[:, :1]) * parent.survival_until(ages)
    return mixed


def _mixed_continuation(
    tables: Sequence[LifeTable | None],
    go_on: NDArray[np.float64],
    z: NDArray[np.float64],
    parent: CredibleTable,
    ages: int,
) -> NDArray[np.float64]:
    any_call = [table.continue_probability[0] if table else 1.0 for table in tables]
    own = np.column_stack([np.array(any_call), go_on[:, :-1]])
    # A turn of age i was weighed at age i−1, before its last call.
    before = np.column_stack([z[:, :1], z[:, :-1]])
    theirs = _to_length(parent.continue_probabilities(), ages)
    mixed: NDArray[np.float64] = before * own + (1.0 - before) * theirs
    return mixed


class _Levels(NamedTuple):
    """Tables over the same ages: every array of shape (tables, ages)."""

    log_mean: NDArray[np.float64]
    ends: NDArray[np.float64]
    cv2: NDArray[np.float64]
    go_on: NDArray[np.float64]


class _Blend(NamedTuple):
    z: NDArray[np.float64]
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


def _spread(tables: Sequence[LifeTable | None], ages: int) -> _Levels:
    """Carry every table on to the same ages by its own open tail; D = 0 for a missing one."""
    shape = (len(tables), ages)
    spread = _Levels(np.zeros(shape), np.zeros(shape), np.ones(shape), np.ones(shape))
    for row, table in enumerate(tables):
        if table is None:
            continue
        ends = table.ends_effective
        columns = (np.log(table.mean), ends, life_cv2(table.mean, table.variance, ends))
        for series, column in zip(spread, (*columns, 1.0 - table.hazard), strict=True):
            series[row] = _to_length(column, ages)
    return spread


def _to_length(column: NDArray[np.float64], ages: int) -> NDArray[np.float64]:
    """Cut a column to so many ages, or go on with its last value."""
    return column[np.minimum(np.arange(ages), column.size - 1)]


def _together(roles: _Levels) -> _Levels:
    """Make the level of all roles, before it borrows: one row."""
    z = credibility_factor(roles.ends)
    weights = z / z.sum(axis=0)
    ends = roles.ends.sum(axis=0)
    return _Levels(
        np.sum(weights * roles.log_mean, axis=0, keepdims=True),
        ends[np.newaxis],
        np.sum(roles.ends * roles.cv2, axis=0, keepdims=True) / ends,
        _drawn_role(roles, weights)[np.newaxis],
    )


def _drawn_role(roles: _Levels, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 − h of a turn whose role is drawn by the weights of age 0; the tail keeps its mean."""
    survival = np.cumprod(roles.go_on[:, :-1], axis=1)
    reached = weights[:, :1] * np.column_stack([np.ones(len(survival)), survival])
    total = reached.sum(axis=0)
    # Nobody may be left at an age that late entrants still pass; then the weights there decide.
    share = np.where(total > 0, reached / np.where(total > 0, total, 1.0), weights)
    go_on: NDArray[np.float64] = np.sum(share * roles.go_on, axis=0)
    go_on[-1] = 1.0 - 1.0 / (share[:, -1] @ np.exp(roles.log_mean[:, -1]))
    return go_on


def _any_call(tables: Sequence[LifeTable], ends: NDArray[np.float64]) -> float:
    z = credibility_factor(ends)
    chances = np.array([table.continue_probability[0] for table in tables])
    return float(z @ chances / z.sum())


def _blend(own: _Levels, parent_log_mean: NDArray[np.float64], level: float) -> _Blend:
    z = credibility_factor(own.ends)
    log_mean = z * own.log_mean + (1.0 - z) * parent_log_mean
    width = credibility_log_width(own.cv2, own.ends, level)
    return _Blend(
        z,
        np.exp(log_mean),
        np.maximum(1.0, np.exp(log_mean - width)),
        np.exp(log_mean + width),
    )


def _nested(
    name: str,
    own: _Levels,
    source: Source,
    tail_age: int,
    parent: CredibleTable | None,
    level: float,
) -> CredibleTable:
    """Make the table of one row of levels, with what it borrows, if there is a parent."""
    ages = own.ends.shape[1]
    parent_log_mean = np.log(_to_length(parent.mean, ages)) if parent else own.log_mean[0]
    blend = _blend(own, parent_log_mean, level)
    z = blend.z[0] if parent else np.ones(ages)
    inherited = (
        np.stack([(1.0 - z) * _to_length(weights, ages) for weights in parent.weights])
        if parent
        else np.empty((0, ages))
    )
    return CredibleTable(
        name=name,
        mean=blend.mean[0],
        lower=blend.lower[0],
        upper=blend.upper[0],
        z=z,
        ends=own.ends[0],
        tail_age=tail_age,
        sources=(source, *(parent.sources if parent else ())),
        weights=np.vstack([z[np.newaxis], inherited]),
        level=level,
    )


def _source(name: str, table: LifeTable | None, go_on: NDArray[np.float64]) -> Source:
    if table is None:
        return Source(name, 0, go_on, 1.0)
    return Source(name, table.turns_with_a_call, go_on, float(table.continue_probability[0]))
