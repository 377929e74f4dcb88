"""Whether a session comes back after the cache has expired, from what a caller knows while idle.

A logistic regression on what the rule `idle` says and on the age of the session, fitted by
ridge-penalized Newton steps. The hour of the day, the turns so far and the last pause were tried:
they gain nothing on other projects, or later.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backtest.learning import Habits, Learned
from backtest.plan import NEVER, Plan
from backtest.scenario import Scenario
from backtest.sequences import Sequences
from policy.rules.idle import LEAD_SHARE, asked_share, resumed_after_expiry
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.stopping import Problem, Solution, solve

__all__ = ["Returns", "Waits", "fit_returns", "idle_thresholds", "waits_of", "with_idle"]

_Numbers = NDArray[np.float64]
_RIDGE = 3.0
_STEPS = 30
_LEAST_CHANCE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Waits:
    """The waits behind the turns of main sessions.

    Parameters
    ----------
    row : ndarray of int, shape (waits,)
        The turn's last request.
    pause_seconds : ndarray of float, shape (waits,)
        Until the next request; infinite where none followed.
    known : ndarray of float, shape (waits, 2)
        Log-odds of a late return as the project's habits tell them, and log of the session's age
        in seconds.
    """

    row: NDArray[np.int64]
    pause_seconds: _Numbers
    known: _Numbers


def waits_of(sequences: Sequences, learned: Learned, scenario: Scenario) -> Waits:
    """Return all waits of main sessions, the last of each session included.

    Parameters
    ----------
    sequences : Sequences
        Whose.
    learned : Learned
        What a rule knows of each project.
    scenario : Scenario
        Says when the cache expires.
    """
    rows = np.flatnonzero(sequences.waits & sequences.main[sequences.unit])
    unit = sequences.unit[rows]
    begin, final = sequences.begins[:-1][unit], sequences.begins[1:][unit] - 1
    following = np.minimum(rows + 1, sequences.requests - 1)
    pause = np.where(rows == final, np.inf, sequences.gap_seconds[following])
    odds = {
        project: _log_odds(learned.of_project(project), scenario)
        for project in set(sequences.project)
    }
    by_unit = np.array([odds[project] for project in sequences.project])
    age = np.log1p(sequences.at_seconds[rows] - sequences.at_seconds[begin])
    return Waits(rows, pause, np.column_stack([by_unit[unit], age]))


def _log_odds(habits: Habits, scenario: Scenario) -> float:
    asked = (1.0 - LEAD_SHARE) * scenario.ttl_seconds
    chance = resumed_after_expiry(habits.setting(scenario), asked)
    bounded = min(max(chance, _LEAST_CHANCE), 1.0 - _LEAST_CHANCE)
    return math.log(bounded / (1.0 - bounded))


@dataclass(frozen=True, slots=True, eq=False)
class Returns:
    """A fitted regression.

    Parameters
    ----------
    center, scale : ndarray of float, shape (covariates,)
        What is subtracted from each covariate, and what it is then divided by.
    weights : ndarray of float, shape (covariates + 1,)
        The intercept first.
    """

    center: _Numbers
    scale: _Numbers
    weights: _Numbers

    def probability(self, known: _Numbers) -> _Numbers:
        """Return P(resumed after the expiry | idle until just before it).

        Parameters
        ----------
        known : ndarray of float, shape (waits, covariates)
            As of `Waits`.
        """
        logits = _design((known - self.center) / self.scale) @ self.weights
        chances: _Numbers = 1.0 / (1.0 + np.exp(-logits))
        return chances


def fit_returns(waits: Waits, ttl_seconds: float) -> Returns:
    """Fit the regression to the waits that lasted until somebody asks.

    Parameters
    ----------
    waits : Waits
        Those a rule may know.
    ttl_seconds : float
        How long the cache lives; 95% of it is when a caller asks.
    """
    asked = waits.pause_seconds > (1.0 - LEAD_SHARE) * ttl_seconds
    known, pause = waits.known[asked], waits.pause_seconds[asked]
    late = (pause > ttl_seconds) & np.isfinite(pause)
    center = known.mean(axis=0) if known.size else np.zeros(waits.known.shape[1])
    spread = known.std(axis=0) if known.size else np.ones(waits.known.shape[1])
    scale = np.where(spread > 0, spread, 1.0)
    design = _design((known - center) / scale)
    penalty = np.full(design.shape[1], _RIDGE)
    # Half a turn's worth keeps the intercept finite where all, or none, come back.
    penalty[0] = 0.5
    weights = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = 1.0 / (1.0 + np.exp(-design @ weights))
        slope = design.T @ (late - chance) - penalty * weights
        curve = design.T @ (design * (chance * (1.0 - chance))[:, None]) + np.diag(penalty)
        weights = weights + np.linalg.solve(curve, slope)
    return Returns(center, scale, weights)


def idle_thresholds(
    known: Mapping[str, tuple[Life, Setting]], projects: Sequence[str], chances: _Numbers
) -> _Numbers:
    """Return the context from which to compact while idle, by the probability of a late return.

    Parameters
    ----------
    known : mapping of str to (Life, Setting)
        Main sessions of each project.
    projects : sequence of str, one a wait
        Whose wait it is.
    chances : ndarray of float, shape (waits,)
        P(resumed after the expiry).

    Returns
    -------
    ndarray of float, shape (waits,)
        The least b with chance·(V_c(b) − V_c(X′)) > C_sum(b); `NEVER` where there is none.
    """
    problems = [
        Problem(
            life, setting, asked_share(setting, (1.0 - LEAD_SHARE) * (setting.ttl_seconds or 0))
        )
        for life, setting in known.values()
    ]
    thresholds = np.full(chances.size, NEVER)
    names = np.array(projects)
    for project, problem, solution in zip(known, problems, solve(problems), strict=True):
        own = names == project
        thresholds[own] = _crossings(solution, problem.setting, chances[own])
    return thresholds


def _crossings(solution: Solution, setting: Setting, chances: _Numbers) -> _Numbers:
    """Return where the expected saving first exceeds the cost, linear between grid points."""
    context = solution.context_tokens
    summary = setting.summary_slope * context + setting.summary_intercept
    gains = chances[:, None] * (solution.cold - solution.cold[0]) - summary
    pays = gains > 0
    high = np.maximum(pays.argmax(axis=1), 1)
    rows = np.arange(chances.size)
    below, above = gains[rows, high - 1], gains[rows, high]
    crossed = np.where(below < 0, below / np.where(below < 0, below - above, 1.0), 0.0)
    found = context[high - 1] + crossed * (context[high] - context[high - 1])
    thresholds: _Numbers = np.where(pays.any(axis=1), found, NEVER)
    return thresholds


def with_idle(
    plan: Plan, sequences: Sequences, waits: Waits, thresholds: _Numbers, scenario: Scenario
) -> Plan:
    """Return a plan whose waits ask at these thresholds, just before the expiry, and only then.

    Parameters
    ----------
    plan : Plan
        A single plan; its thresholds before requests are kept.
    sequences : Sequences
        What is replayed.
    waits : Waits
        Its waits.
    thresholds : ndarray of float, shape (waits,)
        From which to compact.
    scenario : Scenario
        Says when the cache expires.
    """
    pause, after = np.full_like(plan.in_pause, NEVER), np.full_like(plan.after_last, NEVER)
    final = ~np.isfinite(waits.pause_seconds)
    after[sequences.unit[waits.row[final]]] = thresholds[final]
    asked = ~final & (waits.pause_seconds > (1.0 - LEAD_SHARE) * scenario.ttl_seconds)
    pause[waits.row[asked] + 1] = thresholds[asked]
    return Plan(plan.before_request, pause, after, plan.believed_after_tokens)


def _design(scaled: _Numbers) -> _Numbers:
    return np.column_stack([np.ones(scaled.shape[0]), scaled])
