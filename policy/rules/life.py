"""The life of a role's turns as rules read it: by requests made, one request at a time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from compactuary.errors import InputError
from policy.role_table import RoleTable

__all__ = ["SMOOTHING", "Life"]

#: Ends are pooled over ages within this share of an age on either side.
SMOOTHING = 0.25

_REMEDY = "Make the life table again"


@dataclass(frozen=True, slots=True)
class Life:
    """Mean residual life and hazards of turns, by requests made.

    Parameters
    ----------
    expected : tuple of float
        m(i) in requests, the next one included, for i = 0, 1, …; the last one holds beyond.
    continue_probability : tuple of float
        1 − h_i = P(L > i | L ≥ i) for the same ages. Beyond the last it is 1 − 1/m, m the last
        of `expected`. What `of` makes is smoothed over ages, `expected` is not.

    Raises
    ------
    InputError
        The tuples are empty or of different lengths, m is below 1 or a probability impossible.
    """

    expected: tuple[float, ...]
    continue_probability: tuple[float, ...]

    def __post_init__(self) -> None:
        ages = len(self.expected)
        if not ages or len(self.continue_probability) != ages:
            shape = (ages, len(self.continue_probability))
            problem = "and continue_probability must have one value per age"
            raise InputError(problem, where="life.expected", value=shape, remedy=_REMEDY)
        for value in self.expected:
            if not 1 <= value < math.inf:
                problem = "holds an impossible mean residual life"
                raise InputError(problem, where="life.expected", value=value, remedy=_REMEDY)
        for value in self.continue_probability:
            if not 0 <= value <= 1:
                where = "life.continue_probability"
                raise InputError("is out of range", where=where, value=value, remedy=_REMEDY)

    @classmethod
    def of(cls, table: RoleTable) -> "Life":
        """Return the life that a role's table tells.

        Parameters
        ----------
        table : RoleTable
            In requests, or in tool calls: then age i in requests is i/ρ calls and m is ρ times
            that of the calls, ρ the table's requests per call (1 until learned), linear between
            ages.

        Notes
        -----
        Hazards are those that m implies, 1 − h_{i+1} = (m(i) − 1)/m(i+1), so that rules which
        look ahead believe the same table as those that do not, blended ones included. They are
        then smoothed: ends ÷ turns at risk over the ages from ¾ to 1¼ of an age.
        """
        rate = table.requests_per_call
        expected = tuple(max(1.0, value) for value in table.expected)
        if table.unit != "requests" and rate is not None and rate != 1.0:
            expected = _in_requests(expected, rate)
        first = table.continue_probability[0] if table.unit == "requests" else 1.0
        go_on = [min(1.0, (now - 1.0) / later) for now, later in pairwise(expected)]
        smooth = _smoothed(go_on, expected[-1])
        return cls(expected, (min(1.0, first), *smooth))

    @classmethod
    def of_hazards(cls, hazards: Sequence[float]) -> "Life":
        """Return the life with hazards h_1, h_2, …, the last of which holds for ever.

        Raises
        ------
        InputError
            There is none, one is outside [0, 1], or the last is 0.
        """
        if not hazards or not all(0 <= hazard <= 1 for hazard in hazards) or not hazards[-1]:
            remedy = "Give hazards from 0 to 1, the last one above 0"
            raise InputError("are impossible", where="hazards", value=hazards, remedy=remedy)
        go_on = [1.0 - hazard for hazard in hazards[:-1]]
        return cls(tuple(_recursion(go_on, 1.0 / hazards[-1])), (1.0, *go_on))

    def remaining(self, requests: int) -> float:
        """Return m(i), requests still expected after i = `requests`, the next one included."""
        return self.expected[min(requests, len(self.expected) - 1)]

    @property
    def go_on(self) -> tuple[float, ...]:
        """1 − h_{i+1} for i = 0, 1, …: that the turn outlasts request i + 1; the last holds."""
        return (*self.continue_probability[1:], 1.0 - 1.0 / self.expected[-1])

    @property
    def median(self) -> int:
        """The unconditional median of L, the least k with P(L > k) ≤ ½; at most 10,000."""
        left, requests = 1.0, 0
        for share in self.go_on:
            if left * share <= 0.5:
                return requests + 1
            left, requests = left * share, requests + 1
        share = self.go_on[-1]
        # Past the last age every request is survived with the same probability.
        more = math.ceil(math.log(0.5 / left) / math.log(share)) if share < 1.0 else _LONGEST
        return min(_LONGEST, requests + more)


# Requests; no turn comes near, and rules with one threshold per request stay small.
_LONGEST = 10_000


def _in_requests(expected: tuple[float, ...], rate: float) -> tuple[float, ...]:
    """Return m in requests from m in tool calls."""
    tail = len(expected) - 1
    converted = []
    for requests in range(math.ceil(tail * rate) + 1):
        calls = min(requests / rate, float(tail))
        below = min(int(calls), max(tail - 1, 0))
        share = calls - below
        above = expected[min(below + 1, tail)]
        converted.append(max(1.0, rate * (expected[below] * (1.0 - share) + above * share)))
    return tuple(converted)


def _recursion(go_on: Sequence[float], tail: float) -> list[float]:
    """Return m(i) = 1 + (1 − h_{i+1})·m(i+1) for i = 0, 1, …, the last of them `tail`."""
    expected = [tail]
    for share in reversed(go_on):
        expected.append(1.0 + share * expected[-1])
    return expected[::-1]


def _smoothed(go_on: Sequence[float], tail: float) -> list[float]:
    """Return survival shares that pool ends ÷ turns at risk over neighbouring ages."""
    expected = _recursion(go_on, tail)
    logs, ends = [0.0], [0]
    for share in go_on:
        logs.append(logs[-1] + (math.log(share) if share else 0.0))
        ends.append(ends[-1] + (not share))
    smooth = []
    for before in range(len(go_on)):
        reach = int((before + 1) * SMOOTHING)
        low, high = before - reach, min(before + 1 + reach, len(go_on))
        survived = math.exp(logs[high] - logs[low]) if ends[high] == ends[low] else 0.0
        # Requests at risk, per turn alive at `low`: m(low) less those beyond `high`.
        at_risk = expected[low] - survived * expected[high]
        smooth.append(min(1.0, max(0.0, 1.0 - (1.0 - survived) / at_risk)) if at_risk else 0.0)
    return smooth
