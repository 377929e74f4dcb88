"""Sensitivity: the same backtest with other sizes, in each project, and without each project."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backtest.backtest import (
    Backtest,
    Leavings,
    Options,
    RuleResult,
    backtest,
    compared_results,
)
from backtest.candidates import CANDIDATES, Candidate
from backtest.observed import learned_aftermath
from backtest.scenario import Aftermath, Scenario, fixed_aftermath
from backtest.sequences import Sequences
from backtest.trial import Mapped
from compactuary.errors import InputError

__all__ = ["MOST_PROJECTS", "Run", "sensitivity"]

MOST_PROJECTS = 8
"""Projects that are taken apart: those with the largest bills."""


@dataclass(frozen=True, slots=True)
class Run:
    """One backtest under another assumption.

    Parameters
    ----------
    kind : {'sizes', 'project', 'without'}
    name : str
        Which sizes, or which project.
    rules : tuple of RuleResult
        The baseline first, then as of a backtest; empty where it could not be made.
    problem : str
        Why it could not be made; empty where it was.
    """

    kind: str
    name: str
    rules: tuple[RuleResult, ...]
    problem: str = ""


def _without_rework(sequences: Sequences, *, own: bool) -> Aftermath:
    known = np.ones(sequences.units, dtype=np.bool_)
    left = learned_aftermath(sequences, known, own=own)
    return replace(left, rework_tokens=np.zeros(sequences.units))


def _fixed(tail_tokens: float) -> Leavings:
    def left(sequences: Sequences) -> Aftermath:
        return fixed_aftermath(sequences, tail_tokens)

    return Leavings(f"X′ = P + {tail_tokens / 1e3:.0f}k, L = 0", left, left)


SIZES = (
    Leavings(
        "X′ as measured, L = 0",
        lambda sequences: _without_rework(sequences, own=True),
        lambda sequences: _without_rework(sequences, own=False),
    ),
    _fixed(16_000.0),
    _fixed(34_000.0),
)


def sensitivity(
    sequences: Sequences,
    found: Backtest,
    *,
    candidates: Mapping[str, Candidate] = CANDIDATES,
    progress: Callable[[str], None] = lambda _: None,
    mapped: Mapped = map,
) -> list[Run]:
    """Repeat a backtest under other assumptions.

    Parameters
    ----------
    sequences : Sequences
        Those that `backtest` was given.
    found : Backtest
        What it returned.
    candidates : mapping of str to Candidate
    progress : callable
        Called with the name of each run once it is made.
    mapped : callable, optional
        What calls a function on each of several items, here or on other processes.

    Returns
    -------
    list of Run
        X′ measured without rework, two fixed X′; each project on its own, decided by rules that
        know the others too; and fitted and scored without each project.
    """
    alone = [
        Run("project", project, tuple(_of_units(found, units)))
        for project, units in _projects(found)
    ]
    jobs = [
        _Job("sizes", sizes.name, sequences, replace(found.options, leavings=sizes))
        for sizes in SIZES
    ]
    for project, _ in _projects(found):
        rest = np.array([own != project for own in sequences.project])
        jobs.append(_Job("without", project, sequences.chosen(rest), found.options))
    run = partial(
        _run,
        scenario=found.scenario,
        dollars_per_token=found.dollars_per_token,
        candidates=candidates,
    )
    runs = []
    for job, made in zip(jobs, mapped(run, jobs), strict=True):
        progress(job.name)
        runs.append(made)
    sized = len(SIZES)
    return [*runs[:sized], *alone, *runs[sized:]]


class _Job(NamedTuple):
    """A run as it is sent to a worker."""

    kind: str
    name: str
    sequences: Sequences
    options: Options


def _run(
    job: _Job,
    *,
    scenario: Scenario,
    dollars_per_token: float | None,
    candidates: Mapping[str, Candidate],
) -> Run:
    try:
        made = backtest(
            job.sequences,
            scenario,
            job.options,
            dollars_per_token=dollars_per_token,
            candidates=candidates,
        )
    except InputError as error:
        return Run(job.kind, job.name, (), str(error))
    return Run(job.kind, job.name, (made.baseline, *made.rules))


def _of_units(found: Backtest, units: NDArray[np.bool_]) -> list[RuleResult]:
    return compared_results(
        found.trial,
        found.sequences,
        found.options,
        dollars_per_token=found.dollars_per_token,
        units=units,
    )


def _projects(found: Backtest) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the projects with the largest bills; none where there is one only."""
    names = np.array(found.sequences.project)
    bills = {
        str(name): float(found.trial.baseline[names == name].sum()) for name in np.unique(names)
    }
    if len(bills) < 2:
        return
    for name in sorted(bills, key=bills.__getitem__, reverse=True)[:MOST_PROJECTS]:
        if bills[name] > 0:
            yield name, names == name
