"""Life tables as the snapshot keeps them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimator.life_table import LifeTable
from policy.role_table import RoleTable, TableSource

__all__ = ["ALL_ROLES", "blended_table", "raw_table"]

#: Name under which the table of all roles together is shown.
ALL_ROLES = "all roles"


def raw_table(role: str, unit: str, table: LifeTable, pace: float | None) -> RoleTable:
    """Return a life table in which every turn counts alike and nothing is borrowed."""
    return RoleTable(
        role=role,
        unit=unit,
        turns=int(table.turns_with_a_call),
        tail_age=table.tail_age,
        at_risk=tuple(table.at_risk.tolist()),
        ends=tuple(table.ends.tolist()),
        expected=tuple(table.mean.tolist()),
        lower=tuple(table.lower.tolist()),
        upper=tuple(table.upper.tolist()),
        survival=tuple(table.survival.tolist()),
        continue_probability=tuple(table.continue_probability.tolist()),
        level=table.level,
        requests_per_call=pace,
        observed_median=table.observed_median,
    )


def blended_table(  # noqa: PLR0913 - a stored table has as many parts
    role: str,
    unit: str,
    columns: Sequence[NDArray[np.float64]],
    counts: RoleTable | LifeTable,
    *,
    source: TableSource,
    observed_age: int,
    level: float,
    half_life_turns: float | None,
    pace: float | None,
) -> RoleTable:
    """Return a decayed table that borrows.

    Parameters
    ----------
    columns : sequence of ndarray of float, each of shape (ages,)
        m, its interval's lower and upper end, survival, continue probability, z, effective ends.
    counts : RoleTable or LifeTable
        Raw table whose turns, at risk and ends are shown beside the estimate.
    observed_age : int
        The last age that the role's own turns reach.
    """
    mean, lower, upper, survival, continues, z, ends = columns
    ages = mean.size
    return RoleTable(
        role=role,
        unit=unit,
        turns=counts.turns if isinstance(counts, RoleTable) else int(counts.turns_with_a_call),
        tail_age=ages - 1,
        at_risk=_padded(counts.at_risk, ages),
        ends=_padded(counts.ends, ages),
        expected=tuple(mean.tolist()),
        lower=tuple(lower.tolist()),
        upper=tuple(upper.tolist()),
        survival=tuple(survival.tolist()),
        continue_probability=tuple(continues.tolist()),
        level=level,
        requests_per_call=pace,
        source=source,
        observed_age=observed_age,
        credibility=tuple(z.tolist()),
        effective_ends=tuple(ends.tolist()),
        half_life_turns=half_life_turns,
    )


def _padded(counts: Sequence[int] | NDArray[Any], ages: int) -> tuple[int, ...]:
    """Return counts by age, the last one for every later age."""
    whole = [int(count) for count in counts[:ages]]
    return (*whole, *[whole[-1]] * (ages - len(whole)))
