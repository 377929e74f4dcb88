"""How a rule compares: relative bill, share of the clairvoyant's saving, paired intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backtest.trial import Trial

__all__ = ["Comparison", "compared", "paired_interval"]

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One rule on the units scored.

    Parameters
    ----------
    rule : str
        Its name.
    relative : float
        Bill over that of the trigger at the limit, less 1.
    share : float or None
        Part of the clairvoyant's saving over that trigger; None where the clairvoyant saves
        nothing.
    compactions : float or None
        How often it compacted; None for the threshold chosen in hindsight.
    difference : float
        Its bill less that of the best fixed threshold in hindsight, over the trigger's.
    interval : tuple of float
        90% interval of the difference, paired, sessions drawn with replacement.
    """

    rule: str
    relative: float
    share: float | None
    compactions: float | None
    difference: float
    interval: tuple[float, float]


def compared(
    trial: Trial,
    sessions: Sequence[str],
    *,
    units: NDArray[np.bool_] | None = None,
    against: str | None = None,
    draws: int = 2_000,
    seed: int = 0,
) -> list[Comparison]:
    """Compare every rule of a trial, and the best fixed threshold first.

    Parameters
    ----------
    trial : Trial
        Bills per unit.
    sessions : sequence of str, one a unit
        What is drawn.
    units : ndarray of bool, optional
        Only these, such as one project's.
    against : str, optional
        A rule to take the difference to, instead of the best fixed threshold.
    draws, seed : int
        Of the bootstrap.
    """
    kept = trial.scored if units is None else trial.scored & units
    baseline, ceiling = trial.baseline[kept], trial.clairvoyant[kept]
    other = (trial.best if against is None else trial.of(against))[kept]
    own = [session for session, keep in zip(sessions, kept, strict=True) if keep]
    total = float(baseline.sum())
    room = total - float(ceiling.sum())
    rows = [("best fixed threshold", trial.best, None)]
    rows += list(zip(trial.rules, trial.cost, trial.compactions, strict=True))
    found = []
    for rule, cost, made in rows:
        mine = cost[kept]
        found.append(
            Comparison(
                rule=rule,
                relative=float(mine.sum()) / total - 1.0,
                share=(total - float(mine.sum())) / room if room > 0 else None,
                compactions=None if made is None else float(made[kept].sum()),
                difference=float((mine - other).sum()) / total,
                interval=paired_interval(mine - other, baseline, own, draws=draws, seed=seed),
            )
        )
    return found


def paired_interval(
    difference: _Numbers,
    baseline: _Numbers,
    sessions: Sequence[str],
    *,
    draws: int = 2_000,
    seed: int = 0,
    level: float = 0.9,
) -> tuple[float, float]:
    """Return the percentile interval of Σ difference ÷ Σ baseline over resampled sessions.

    Parameters
    ----------
    difference, baseline : ndarray of float, shape (units,)
        Paired by unit.
    sessions : sequence of str, one a unit
        Units of one session are drawn together.
    draws : int, default 2,000
        Resamplings.
    seed : int, default 0
        Of the draws.
    level : float, default 0.9
        Two-sided.
    """
    names, code = np.unique(np.array(sessions), return_inverse=True)
    above = np.bincount(code, weights=difference, minlength=names.size)
    below = np.bincount(code, weights=baseline, minlength=names.size)
    generator = np.random.default_rng(seed)
    even = np.full(names.size, 1.0 / names.size)
    drawn = generator.multinomial(names.size, even, size=draws)
    ratios = (drawn @ above) / (drawn @ below)
    low, high = np.quantile(ratios, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return float(low), float(high)
