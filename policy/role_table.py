"""The life table of one role, as decisions and printed tables read it."""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Literal

from compactuary.errors import InputError

__all__ = ["UNITS", "Remaining", "RoleTable", "TableSource"]

UNITS = ("tool_calls", "requests")

TableSource = Literal["role", "all_roles", "standard", "none"]

_REBUILD = "Build the snapshot again from the ledger"

# Two survivals that are equal on paper may differ in their last bits.
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a table says about turns of one age.

    Parameters
    ----------
    expected : float
        Mean residual life m(i) = E[N − i | N > i], in the table's unit.
    lower, upper : float
        Interval around `expected`, at the table's level.
    at_risk : int
        Turns observed at this age (at the tail's age when extrapolated).
    ends : int
        Turns seen to end beyond this age.
    continue_probability : float
        1 − h_i = P(N > i | N ≥ i).
    extrapolated : bool
        True beyond the last age that the role's own turns reach, where its open tail is used.
    credibility : float
        z, the weight of the table's own turns against what they borrow from; 1 for a raw table.
    effective_ends : float
        Ends beyond this age, as far as their weights let them count.
    """

    expected: float
    lower: float
    upper: float
    at_risk: int
    ends: int
    continue_probability: float
    extrapolated: bool
    credibility: float
    effective_ends: float


@dataclass(frozen=True, slots=True)
class RoleTable:
    """The life table of one role in one unit; every tuple runs over ages 0..`tail_age`.

    Beyond `tail_age` (τ in the model, §2) the hazard is constant at 1/m(τ).

    Parameters
    ----------
    role : str
        The role, or a name for all roles together.
    unit : {'tool_calls', 'requests'}
        What ages and remainders count.
    turns : int
        Turns the table was made from.
    tail_age : int
        Age at which the open last interval begins.
    at_risk, ends : tuple of int
        Turns at risk at each age, and turns seen to end beyond it.
    expected, lower, upper : tuple of float
        m(i), at least 1, and its interval.
    survival : tuple of float
        S(i) = P(N > i).
    continue_probability : tuple of float
        1 − h_i = P(N > i | N ≥ i).
    level : float
        Nominal coverage of the interval, such as 0.9.
    requests_per_call : float or None
        The role's requests per tool call; None until learned.
    source : {'role', 'all_roles', 'standard'}
        Whose turns it was made from.
    observed_age : int, optional
        The last age that those turns reach, where a blended table goes on beyond it.
    credibility, effective_ends : tuple of float
        z and effective ends at each age of a blended table; empty for a raw one.
    half_life_turns : float or None
        After so many later turns of the role a turn counts half; None where all count alike.
    observed_median : int, optional
        The Kaplan-Meier median of whole turns, also beyond `tail_age`; None where it is not seen.

    Raises
    ------
    InputError
        A tuple has another length than `tail_age` + 1, or holds an impossible value.
    """

    role: str
    unit: str
    turns: int
    tail_age: int
    at_risk: tuple[int, ...]
    ends: tuple[int, ...]
    expected: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    survival: tuple[float, ...]
    continue_probability: tuple[float, ...]
    level: float
    requests_per_call: float | None
    source: TableSource = "role"
    observed_age: int | None = None
    credibility: tuple[float, ...] = ()
    effective_ends: tuple[float, ...] = ()
    half_life_turns: float | None = None
    observed_median: int | None = None

    def __post_init__(self) -> None:
        for name in _SERIES:
            _check_series(self, name)
        for name in _BLENDED:
            if getattr(self, name):
                _check_series(self, name)
        if self.credibility and max(self.credibility) > 1 + _TIE:
            raise _wrong(self, "credibility", max(self.credibility), "must be at most 1")
        if min(self.expected) < 1 - _TIE:
            raise _wrong(self, "expected", min(self.expected), "is a mean residual life below 1")
        if max(self.survival) > 1 + _TIE or _rises(self.survival):
            raise _wrong(self, "survival", self.survival, "must fall from at most 1")
        if self.unit not in UNITS:
            raise _wrong(self, "unit", self.unit, "is not tool_calls or requests")
        if max(self.continue_probability) > 1 + _TIE:
            worst = max(self.continue_probability)
            raise _wrong(self, "continue_probability", worst, "must be at most 1")
        if not 0 < self.level < 1:
            raise _wrong(self, "level", self.level, "must lie between 0 and 1")
        rate = self.requests_per_call
        if rate is not None and not 0 < rate < math.inf:
            raise _wrong(self, "requests_per_call", rate, "must be positive and finite, or None")

    def remaining(self, age: int) -> Remaining:
        """Return what the table says at an age (calls, or requests, made so far).

        Parameters
        ----------
        age : int
            At least 0. Beyond `tail_age` the tail's values hold and `extrapolated` is True.
        """
        beyond = age > self.tail_age
        row = self.tail_age if beyond else age
        observed = self.tail_age if self.observed_age is None else self.observed_age
        return Remaining(
            self.expected[row],
            self.lower[row],
            self.upper[row],
            self.at_risk[row],
            self.ends[row],
            self._tail_factor if beyond else self.continue_probability[row],
            age > observed,
            self.credibility_at(age),
            self.effective_ends[row] if self.effective_ends else float(self.ends[row]),
        )

    def probability_more_than(self, age: int, remaining: int) -> float:
        """Return P(N − i > k | N > i) for i = `age` and k = `remaining`.

        Parameters
        ----------
        age, remaining : int
            At least 0, in the table's unit.
        """
        tail = self.tail_age
        reached = age + remaining
        if age > tail or not self.survival[age]:
            return float(self._tail_factor**remaining)
        if reached <= tail:
            return min(1.0, self.survival[reached] / self.survival[age])
        beyond = self._tail_factor ** (reached - tail)
        return float(min(1.0, self.survival[tail] * beyond / self.survival[age]))

    def median(self, age: int) -> int:
        """Return the median residual life: the smallest k with P(N − i > k | N > i) ≤ ½.

        Parameters
        ----------
        age : int
            At least 0, in the table's unit.
        """
        tail = self.tail_age
        if age > tail or not self.survival[age]:
            return self._tail_age_at(0.5)
        half = self.survival[age] * 0.5 * (1 + _TIE)
        # half.__ge__ is the C-level "S(j) ≤ half": False up to the median, True from there on.
        found = bisect_left(self.survival, True, lo=age, key=half.__ge__)
        if found <= tail:
            return found - age
        return tail - age + self._tail_age_at(half / self.survival[tail])

    @property
    def whole_median(self) -> int:
        """The median of whole turns: observed, else that of the open tail."""
        return self.median(0) if self.observed_median is None else self.observed_median

    def to_payload(self) -> dict[str, Any]:
        """Return the table as plain JSON values."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "RoleTable":
        """Return the table that `to_payload` wrote.

        Raises
        ------
        InputError
            A key is missing, or the table is impossible.
        """
        try:
            # Tables stored by an older version don't tell their observed median.
            given: dict[str, Any] = {name: payload[name] for name in _FIELDS if name != _NEWEST}
            given[_NEWEST] = payload.get(_NEWEST)
            for name in (*_SERIES, *_BLENDED):
                # A database may hand 1.0 back as 1.
                kind = int if name in _COUNTS else float
                given[name] = tuple(kind(value) for value in given[name])
            return cls(**given)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problem = f"is not a stored table: {type(error).__name__} {error}"
            raise InputError(problem, where="snapshot", remedy=_REBUILD) from error

    def credibility_at(self, age: int) -> float:
        """Return z at an age: the weight of the table's own turns against what they borrow from."""
        return self.credibility[min(age, self.tail_age)] if self.credibility else 1.0

    @property
    def _tail_factor(self) -> float:
        return max(0.0, 1.0 - 1.0 / self.expected[-1])

    def _tail_age_at(self, share: float) -> int:
        """Return the steps beyond τ after which at most `share` of the turns go on."""
        factor = self._tail_factor
        if factor <= 0:
            return 1
        return max(1, math.ceil(math.log(share) / math.log(factor) - _TIE))


_SERIES = ("at_risk", "ends", "expected", "lower", "upper", "survival", "continue_probability")
_BLENDED = ("credibility", "effective_ends")
_COUNTS = ("at_risk", "ends")
_NEWEST = "observed_median"
_FIELDS = tuple(field.name for field in fields(RoleTable))


def _check_series(table: RoleTable, name: str) -> None:
    series = getattr(table, name)
    if len(series) != table.tail_age + 1:
        raise _wrong(table, name, len(series), f"must have {table.tail_age + 1} values")
    # Every new turn makes tables of hundreds of ages again: min and isfinite run at C speed.
    if not all(map(math.isfinite, series)) or min(series) < 0:
        raise _wrong(table, name, series, "must be finite and not negative")


def _rises(series: tuple[float, ...]) -> bool:
    # Sorting what is sorted runs at C speed; only rounding brings the slow look.
    if list(series) == sorted(series, reverse=True):
        return False
    return any(later > sooner + _TIE for sooner, later in pairwise(series))


def _wrong(table: RoleTable, name: str, value: object, problem: str) -> InputError:
    return InputError(
        problem,
        where=f"tables.{table.unit}.{table.role}.{name}",
        value=value,
        remedy=_REBUILD,
    )
