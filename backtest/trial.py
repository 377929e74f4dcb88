"""A trial: rules fitted on some sessions and billed on others, so that none is scored on itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backtest.candidates import CANDIDATES, Candidate, Fitted
from backtest.clairvoyant import clairvoyant
from backtest.learning import learned
from backtest.occupancies import GRID_TOKENS, fixed_plans
from backtest.plan import stacked
from backtest.replay import replay
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences
from compactuary.errors import InputError

__all__ = ["Split", "Trial", "by_project", "by_time", "halves", "run_trial"]

_Numbers = NDArray[np.float64]
_Units = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Units to fit on and units to score on, of shape (units,) each; no session is in both."""

    fit: _Units
    score: _Units


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Bills per unit, means over the times it was scored; 0 for units that never were.

    Parameters
    ----------
    rules : tuple of str
        The candidates.
    cost, compactions : ndarray of float, shape (rules, units)
        Base tokens, and how often each rule compacted.
    baseline : ndarray of float, shape (units,)
        Cost under the trigger at the limit.
    best : ndarray of float, shape (units,)
        Cost under the fixed threshold that was cheapest on the units scored together, in
        hindsight.
    best_tokens : tuple of float
        Those thresholds, one a split.
    clairvoyant : ndarray of float, shape (units,)
        Cost of the cheapest plan of all.
    scored : ndarray of bool, shape (units,)
        Which units were scored at all.
    """

    rules: tuple[str, ...]
    cost: _Numbers
    compactions: _Numbers
    baseline: _Numbers
    best: _Numbers
    best_tokens: tuple[float, ...]
    clairvoyant: _Numbers
    scored: _Units

    def of(self, rule: str) -> _Numbers:
        """Return a rule's cost by unit.

        Parameters
        ----------
        rule : str
            One of `rules`.
        """
        found: _Numbers = self.cost[self.rules.index(rule)]
        return found


def halves(sequences: Sequences, seeds: Sequence[int]) -> Iterator[Split]:
    """Yield random halves of the sessions, each fitted and scored once per seed.

    Parameters
    ----------
    sequences : Sequences
        What is split; a session's sub-agents stay with it.
    seeds : sequence of int
        One halving each.
    """
    sessions = np.array(sequences.session)
    names = np.unique(sessions)
    for seed in seeds:
        drawn = np.random.default_rng(seed).permutation(names)[: names.size // 2]
        one = np.isin(sessions, drawn)
        yield Split(one, ~one)
        yield Split(~one, one)


def by_time(sequences: Sequences) -> Iterator[Split]:
    """Yield one split: fitted on the earlier half of the sessions, scored on the later.

    Parameters
    ----------
    sequences : Sequences
        What is split, by the first time in each session.
    """
    begun: dict[str, float] = {}
    for session, at in zip(
        sequences.session, sequences.at_seconds[sequences.begins[:-1]], strict=True
    ):
        begun[session] = min(float(at), begun.get(session, np.inf))
    middle = float(np.median(list(begun.values())))
    early = np.array([begun[session] <= middle for session in sequences.session])
    yield Split(early, ~early)


def by_project(sequences: Sequences, project: str) -> Iterator[Split]:
    """Yield one split: fitted on all other projects, scored on this one.

    Parameters
    ----------
    sequences : Sequences
        What is split.
    project : str
        One of its projects.
    """
    own = np.array([each == project for each in sequences.project])
    yield Split(~own, own)


def run_trial(
    sequences: Sequences,
    aftermath: Aftermath,
    scenario: Scenario,
    splits: Iterator[Split],
    *,
    candidates: Mapping[str, Candidate] = CANDIDATES,
    believed: Callable[[_Units], Aftermath] | None = None,
) -> Trial:
    """Fit every candidate on one side of each split and bill it on the other.

    Parameters
    ----------
    sequences : Sequences
        All units.
    aftermath : Aftermath
        What a compaction costs in truth.
    scenario : Scenario
        Prices and the limit.
    splits : iterator of Split
        Such as `halves`.
    candidates : mapping of str to Candidate
        By default all.
    believed : callable, optional
        ``units to fit on -> Aftermath`` of all units, as the candidates believe; the truth when
        left out.

    Raises
    ------
    InputError
        There is no split, or one has nothing to fit on.
    """
    sums = _Sums(tuple(candidates), sequences.units)
    grid = replay(sequences, aftermath, scenario, fixed_plans(sequences)).cost
    ceiling = replay(
        sequences, aftermath, scenario, clairvoyant(sequences, aftermath, scenario)
    ).cost[0]
    for split in splits:
        told = aftermath if believed is None else believed(split.fit)
        sums.add(split, _billed(sequences, aftermath, told, scenario, split, candidates))
        sums.best(split, grid)
    if not sums.times.any():
        raise InputError(
            "no split has units to score on",
            where="splits",
            value=0,
            remedy="Split by session, with at least two of them",
        )
    return sums.trial(grid[GRID_TOKENS.index(scenario.limit_tokens)], ceiling)


def _billed(
    sequences: Sequences,
    aftermath: Aftermath,
    told: Aftermath,
    scenario: Scenario,
    split: Split,
    candidates: Mapping[str, Candidate],
) -> tuple[_Numbers, NDArray[np.int64]]:
    known, believed = sequences.chosen(split.fit), told.chosen(split.fit)
    fitted = Fitted(known, believed, learned(known, believed, scenario.ttl_seconds), scenario)
    scored = sequences.chosen(split.score)
    plans = stacked([candidate(fitted, scored) for candidate in candidates.values()])
    bill = replay(scored, aftermath.chosen(split.score), scenario, plans)
    return bill.cost, bill.compactions


class _Sums:
    """Bills added up over splits."""

    def __init__(self, rules: tuple[str, ...], units: int) -> None:
        self.rules = rules
        self.cost, self.compactions = np.zeros((len(rules), units)), np.zeros((len(rules), units))
        self.hindsight, self.times = np.zeros(units), np.zeros(units)
        self.best_tokens: list[float] = []

    def add(self, split: Split, billed: tuple[_Numbers, NDArray[np.int64]]) -> None:
        """Add what every rule cost on the units scored."""
        self.cost[:, split.score] += billed[0]
        self.compactions[:, split.score] += billed[1]
        self.times += split.score

    def best(self, split: Split, grid: _Numbers) -> None:
        """Choose the fixed threshold on the scored units themselves."""
        found = int(np.argmin(grid[:, split.score].sum(axis=1)))
        self.hindsight[split.score] += grid[found, split.score]
        self.best_tokens.append(GRID_TOKENS[found])

    def trial(self, baseline: _Numbers, ceiling: _Numbers) -> Trial:
        """Return the means."""
        scored = self.times > 0
        times = np.maximum(self.times, 1.0)
        return Trial(
            rules=self.rules,
            cost=self.cost / times,
            compactions=self.compactions / times,
            baseline=np.where(scored, baseline, 0.0),
            best=self.hindsight / times,
            best_tokens=tuple(self.best_tokens),
            clairvoyant=np.where(scored, ceiling, 0.0),
            scored=scored,
        )
