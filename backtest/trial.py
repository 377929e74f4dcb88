"""A trial: rules fitted on some sessions and billed on others, so that none is scored on itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.candidates import CANDIDATES, Candidate, Fitted
from backtest.clairvoyant import clairvoyant
from backtest.learning import learned
from backtest.occupancies import fixed_plans, grid_tokens
from backtest.plan import stacked
from backtest.replay import Bill, replay
from backtest.scenario import Aftermath, Scenario
from backtest.sequences import Sequences
from compactuary.errors import InputError

__all__ = [
    "Mapped",
    "Round",
    "Split",
    "Trial",
    "by_project",
    "by_time",
    "halves",
    "round_trial",
    "rounds_of",
    "run_trial",
]

#: ``mapped(function, items)``: such as `map`.
Mapped = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]

_Numbers = NDArray[np.float64]
_Units = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Units to fit on and units to score on, of shape (units,) each; no session is in both."""

    fit: _Units
    score: _Units


class Round(NamedTuple):
    """What is known, and the units of shape (units,) that it decides."""

    known: Sequences
    units: _Units


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
    paid : ndarray of float, shape (rules, units)
        How many compactions of each rule paid.
    reference : Bill
        The trigger at the limit, and the clairvoyant.
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
    paid: _Numbers
    reference: Bill
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


def rounds_of(sequences: Sequences, splits: Iterable[Split]) -> Iterator[Round]:
    """Yield what is known and what is decided for each split.

    Parameters
    ----------
    sequences : Sequences
        Which are split.
    splits : iterable of Split
        Such as `halves`.
    """
    for split in splits:
        yield Round(sequences.chosen(split.fit), split.score)


def round_trial(
    sequences: Sequences,
    aftermath: Aftermath,
    scenario: Scenario,
    rounds: Iterable[Round],
    candidates: Mapping[str, Candidate],
    believed: Callable[[Sequences], Aftermath],
    *,
    mapped: Mapped = map,
) -> Trial:
    """Bill every candidate on the units that each round decides, fitted on what it knows.

    The best fixed threshold is one for all units scored.

    Parameters
    ----------
    sequences : Sequences
        All units.
    aftermath : Aftermath
        What a compaction costs in truth.
    scenario : Scenario
        Prices and the limit.
    rounds : iterable of Round
        Such as `rounds_of`, or the prequential ones.
    candidates : mapping of str to Candidate
    believed : callable
        ``sequences known -> Aftermath`` of them, as the candidates believe.
    mapped : callable, optional
        What calls a function on each of several items, here or on other processes.

    Raises
    ------
    InputError
        There is no round, or one has nothing to fit on.
    """
    taken = list(rounds)
    jobs = [
        _Job(known, believed(known), sequences.chosen(units), aftermath.chosen(units))
        for known, units in taken
    ]
    bills = mapped(partial(_done, scenario=scenario, candidates=candidates), jobs)
    sums = _Sums(tuple(candidates), sequences, aftermath, scenario)
    for (_, units), bill in zip(taken, bills, strict=True):
        sums.add(units, bill)
    sums.best(sums.times > 0)
    return sums.trial()


class _Job(NamedTuple):
    """A round as it is sent to a worker."""

    known: Sequences
    told: Aftermath
    scored: Sequences
    aftermath: Aftermath


def _done(job: _Job, *, scenario: Scenario, candidates: Mapping[str, Candidate]) -> Bill:
    teaches = learned(job.known, job.told, scenario.ttl_seconds)
    fitted = Fitted(job.known, job.told, teaches, scenario)
    return _billed(fitted, job.scored, job.aftermath, candidates)


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
        Such as `halves`; the best fixed threshold is chosen anew in each.
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
    sums = _Sums(tuple(candidates), sequences, aftermath, scenario)
    for split in splits:
        told = (aftermath if believed is None else believed(split.fit)).chosen(split.fit)
        known, scored = sequences.chosen(split.fit), sequences.chosen(split.score)
        fitted = Fitted(known, told, learned(known, told, scenario.ttl_seconds), scenario)
        sums.add(split.score, _billed(fitted, scored, aftermath.chosen(split.score), candidates))
        sums.best(split.score)
    return sums.trial()


def _billed(
    fitted: Fitted,
    scored: Sequences,
    aftermath: Aftermath,
    candidates: Mapping[str, Candidate],
) -> Bill:
    plans = stacked([candidate(fitted, scored) for candidate in candidates.values()])
    return replay(scored, aftermath, fitted.scenario, plans)


class _Sums:
    """Bills added up over splits."""

    def __init__(
        self,
        rules: tuple[str, ...],
        sequences: Sequences,
        aftermath: Aftermath,
        scenario: Scenario,
    ) -> None:
        self.rules = rules
        shape = (len(rules), sequences.units)
        self.cost, self.compactions, self.paid = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.hindsight, self.times = np.zeros(sequences.units), np.zeros(sequences.units)
        self.chosen = np.zeros(sequences.units)
        self.best_tokens: list[float] = []
        self.thresholds = grid_tokens(scenario.limit_tokens)
        plans = fixed_plans(sequences, self.thresholds)
        self.grid = replay(sequences, aftermath, scenario, plans)
        plan = clairvoyant(sequences, aftermath, scenario)
        self.ceiling = replay(sequences, aftermath, scenario, plan)

    def add(self, units: _Units, bill: Bill) -> None:
        """Add what every rule cost on the units scored."""
        self.cost[:, units] += bill.cost
        self.compactions[:, units] += bill.compactions
        self.paid[:, units] += bill.paid
        self.times += units

    def best(self, units: _Units) -> None:
        """Choose the fixed threshold on the scored units themselves."""
        found = int(np.argmin(self.grid.cost[:, units].sum(axis=1)))
        self.hindsight[units] += self.grid.cost[found, units]
        self.chosen += units
        self.best_tokens.append(self.thresholds[found])

    def trial(self) -> Trial:
        """Return the means.

        Raises
        ------
        InputError
            Nothing was added.
        """
        scored = self.times > 0
        if not scored.any():
            raise InputError(
                "no split has units to score on",
                where="splits",
                value=0,
                remedy="Split by session, with at least two of them",
            )
        times = np.maximum(self.times, 1.0)
        both = (self.grid, self.ceiling)
        return Trial(
            rules=self.rules,
            cost=self.cost / times,
            compactions=self.compactions / times,
            paid=self.paid / times,
            baseline=np.where(scored, self.grid.cost[-1], 0.0),
            best=self.hindsight / np.maximum(self.chosen, 1.0),
            best_tokens=tuple(self.best_tokens),
            clairvoyant=np.where(scored, self.ceiling.cost[0], 0.0),
            reference=Bill(
                np.stack([bill.cost[-1] for bill in both]) * scored,
                np.stack([bill.compactions[-1] for bill in both]) * scored,
                np.stack([bill.paid[-1] for bill in both]) * scored,
            ),
            scored=scored,
        )
