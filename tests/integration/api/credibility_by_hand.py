"""What decides for the only role of a ledger, worked out from turns and the standard table."""

from collections.abc import Sequence

from estimator.life_table import LifeTable, life_table
from estimator.standard_table import standard_table

HALF_LIFE_TURNS = 200


def standard(role: str, unit: str = "tool_calls") -> LifeTable:
    """Return the raw life table of the standard turns of a role's kind."""
    return life_table(standard_table(role, unit))


def decayed(lives: Sequence[float], ended: Sequence[bool] | None = None) -> tuple[float, float]:
    """Return m of an open tail, and its effective ends.

    Parameters
    ----------
    lives : sequence of float
        Calls each turn was at risk for, the oldest turn first.
    ended : sequence of bool, optional
        Whether the turn ended; all of them, if left out.
    """
    ended = ended or [True] * len(lives)
    weights = [0.5 ** (newer / HALF_LIFE_TURNS) for newer in reversed(range(len(lives)))]
    ends = [weight for weight, end in zip(weights, ended, strict=True) if end]
    exposure = sum(weight * life for weight, life in zip(weights, lives, strict=True))
    return exposure / sum(ends), sum(ends) ** 2 / sum(weight**2 for weight in ends)


def own_share(ends: float) -> float:
    """Return what the only role of a ledger weighs: z itself, and z of the rest as all roles."""
    z = ends / (ends + 3)
    return z + (1 - z) * z


def decisive(
    lives: Sequence[float],
    ended: Sequence[bool] | None = None,
    *,
    role: str = "main",
    age: int = 0,
    unit: str = "tool_calls",
) -> float:
    """Return the m that decides: log m = z·own + (1−z)·(z·own + (1−z)·standard)."""
    own, ends = decayed(lives, ended)
    share = own_share(ends)
    return float(own**share * standard(role, unit).at(age).mean ** (1 - share))
