"""The note's table: how many calls a role has left, at chosen ages."""

from collections.abc import Sequence
from typing import Any

from policy.role_table import RoleTable

__all__ = ["DEFAULT_AGES", "remaining_calls"]

#: Ages shown where nobody names any.
DEFAULT_AGES = (0, 5, 10, 20, 40)


def remaining_calls(table: RoleTable, ages: Sequence[int] = DEFAULT_AGES) -> dict[str, Any]:
    """Return a role's row: turns, mean and median life, and m(i) with what it rests on.

    Parameters
    ----------
    table : RoleTable
    ages : sequence of int
        Calls made so far, i.

    Returns
    -------
    dict
        ``role, turns, mean, p50`` and, by age as text, ``m``, ``lower``, ``upper``, ``at_risk``;
        ``extrapolated`` lists the ages beyond the table's open tail. ``mean`` and ``p50`` are of
        turns with at least one call; ``p50_extrapolated`` tells that too many of them are cut to
        see the median, so that ``p50`` is that of the open tail.
    """
    rows = {str(age): table.remaining(age) for age in ages}
    return {
        "role": table.role,
        "turns": table.turns,
        "mean": table.expected[0],
        "p50": table.whole_median,
        "p50_extrapolated": table.observed_median is None,
        "m": {age: row.expected for age, row in rows.items()},
        "lower": {age: row.lower for age, row in rows.items()},
        "upper": {age: row.upper for age, row in rows.items()},
        "at_risk": {age: row.at_risk for age, row in rows.items()},
        "extrapolated": [int(age) for age, row in rows.items() if row.extrapolated],
        "unit": table.unit,
        "requests_per_call": table.requests_per_call,
    }
