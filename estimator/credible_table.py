"""The credible table of one role: what its own turns and its parents say together, by age."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compactuary.errors import InputError
from estimator.turn_rows import whole_number

__all__ = ["CredibleRow", "CredibleTable", "Share", "Source"]

# A product that equals ½ on paper may exceed it by rounding.
HALF = 0.5 + 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One level that a credible table rests on: a role and model, a role, all roles, a standard.

    Parameters
    ----------
    name : str
        What an answer calls it.
    turns : float
        Turns with a call that it was made from, or their weight.
    go_on : ndarray of float, shape (ages,)
        1 − h_{i+1} = P(N > i+1 | N > i) for age i; the last one holds for every later age.
    any_call : float
        P(N > 0): that the turn makes a call at all.
    """

    name: str
    turns: float
    go_on: NDArray[np.float64]
    any_call: float

    def survival_from(self, age: int, calls: int) -> NDArray[np.float64]:
        """Give P(N > age + k | N > age) for k = 0 … calls."""
        ages = np.minimum(np.arange(age, age + calls), self.go_on.size - 1)
        survival: NDArray[np.float64] = np.append(1.0, np.cumprod(self.go_on[ages]))
        return survival

    def more_than(self, age: int, calls: int) -> float:
        """Give P(N > age + calls | N > age)."""
        tail = self.go_on.size - 1
        inside = self.go_on[min(age, tail) : min(age + calls, tail)]
        return float(inside.prod() * self.go_on[tail] ** (calls - inside.size))


class Share(NamedTuple):
    """What part of an estimate rests on a source: its name, its turns, its weight (0 to 1)."""

    name: str
    turns: float
    weight: float


@dataclass(frozen=True, slots=True)
class CredibleRow:
    """What a credible table says at one age; the names are those of `CredibleTable`.

    Parameters
    ----------
    rests_on : tuple of Share
        The sources with their weights at this age, the role's own first; they add up to 1.
    extrapolated : bool
        Whether the age is past the role's own tail age.
    """

    age: int
    mean: float
    lower: float
    upper: float
    z: float
    ends: float
    continue_probability: float
    rests_on: tuple[Share, ...]
    extrapolated: bool


@dataclass(frozen=True, slots=True, eq=False)
class CredibleTable:
    """Mean residual life of one role, blended with its parents; made by `credibility` or `nest`.

    Element i of every array is of age i; the last one holds for every later age. The ages go as
    far as the longest of the tables does.

    Parameters
    ----------
    name : str
        The role's, or what else the table is of.
    mean : ndarray of float, shape (ages,)
        m(i), in calls, the next one included: the z-weighted geometric mean of the role's own
        and its parent's.
    lower, upper : ndarray of float, shape (ages,)
        The credibility interval for m(i) at `level`, clipped at 1 below.
    z : ndarray of float, shape (ages,)
        D/(D+3), the weight of the role's own turns; 0 where no turn of it ended.
    ends : ndarray of float, shape (ages,)
        D, the role's own ends beyond min(i, τ); their effective number where turns are weighted.
    tail_age : int
        τ of the role's own table, in calls; 0 where it has none.
    sources : tuple of Source
        The levels, own first.
    weights : ndarray of float, shape (sources, ages)
        The weight of each level in log m(i); every column adds up to 1.
    level : float
        Two-sided level of the interval.

    Notes
    -----
    The distribution is the mixture z·P_role + (1−z)·P_parent with the weights of the age asked
    at. Its mean is the arithmetic mean of the levels' and so never below `mean`, the geometric
    one; decide on `mean`, and show the odds beside it.
    """

    name: str
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    z: NDArray[np.float64]
    ends: NDArray[np.float64]
    tail_age: int
    sources: tuple[Source, ...]
    weights: NDArray[np.float64]
    level: float

    def at(self, age: int) -> CredibleRow:
        """Read the table at any age.

        Parameters
        ----------
        age : int
            i ≥ 0, calls made.

        Raises
        ------
        InputError
            If the age is negative or not whole.
        """
        row = self._row(age)
        return CredibleRow(
            age=age,
            mean=float(self.mean[row]),
            lower=float(self.lower[row]),
            upper=float(self.upper[row]),
            z=float(self.z[row]),
            ends=float(self.ends[row]),
            continue_probability=self._continue_probability(age),
            rests_on=tuple(
                Share(source.name, source.turns, float(weight))
                for source, weight in zip(self.sources, self.weights[:, row], strict=True)
            ),
            extrapolated=age > self.tail_age,
        )

    def probability_more_than(self, age: int, remaining: float) -> float:
        """Give P(N − age > remaining | N > age) of the mixture.

        Parameters
        ----------
        age : int
            At least 0, calls made.
        remaining : float
            Calls, at least 0; a break-even of 17.3 calls is passed by the same turns as one of 17.

        Raises
        ------
        InputError
            If the age is negative or not whole, or `remaining` negative or not finite.
        """
        if not (math.isfinite(remaining) and remaining >= 0):
            raise InputError(
                "the remaining calls are negative or not finite",
                where="remaining",
                value=remaining,
                remedy="Give a number of calls from 0 on",
            )
        weights = self.weights[:, self._row(age)]
        calls = math.floor(remaining)
        odds = (source.more_than(age, calls) for source in self.sources)
        return float(sum(weight * odd for weight, odd in zip(weights, odds, strict=True)))

    def median(self, age: int) -> int:
        """Give the smallest k with P(N − age > k | N > age) ≤ ½ of the mixture, in calls.

        Parameters
        ----------
        age : int
            At least 0, calls made.

        Raises
        ------
        InputError
            If the age is negative or not whole.
        """
        span = max(self.mean.size - age, 1)
        while True:
            passed = self._survival_from(age, span) <= HALF
            if passed.any():
                return int(np.argmax(passed))
            span *= 2

    def survival(self) -> NDArray[np.float64]:
        """Give S(i) = P(N > i | N > 0), the mixture as seen from age 0.

        Returns
        -------
        ndarray of float, shape (ages,)
            One curve for whoever needs one; S(i+k)/S(i) is not quite the odds that
            `probability_more_than` gives at age i, which weighs the sources anew at that age.
        """
        return self._survival_from(0, self.mean.size - 1)

    def survival_until(self, ages: int) -> NDArray[np.float64]:
        """Give the same curve over so many ages, its open tail included."""
        return self._survival_from(0, ages - 1)

    def continue_probabilities(self) -> NDArray[np.float64]:
        """Give P(N > i | N ≥ i) for every age of the table: that a turn makes another call.

        Returns
        -------
        ndarray of float, shape (ages,)
            A turn of age i was weighed at age i−1, before its last call.
        """
        later = np.arange(self.mean.size - 1)
        go_on = np.stack(
            [source.go_on[np.minimum(later, source.go_on.size - 1)] for source in self.sources]
        )
        first = self.weights[:, 0] @ [source.any_call for source in self.sources]
        chances: NDArray[np.float64] = np.append(first, np.sum(self.weights[:, :-1] * go_on, 0))
        return chances

    def _survival_from(self, age: int, calls: int) -> NDArray[np.float64]:
        curves = np.stack([source.survival_from(age, calls) for source in self.sources])
        mixed: NDArray[np.float64] = self.weights[:, self._row(age)] @ curves
        return mixed

    def _continue_probability(self, age: int) -> float:
        """P(N > i | N ≥ i): a turn of age i was weighed at age i−1, before its last call."""
        before = self._row(max(age - 1, 0))
        chances = [
            source.go_on[min(before, source.go_on.size - 1)] if age else source.any_call
            for source in self.sources
        ]
        return float(self.weights[:, before] @ chances)

    def _row(self, age: int) -> int:
        return min(whole_number("age", age), self.mean.size - 1)
