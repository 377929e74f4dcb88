"""Bootstrap by session: intervals of relative bills, and what holds for all rules at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DRAWS", "Ratios", "drawn_ratios"]

DRAWS = 1_000
"""Resamplings by default."""

_LEVEL = 0.9
#: Every claim of a table holds together with this probability.
_FAMILY_LEVEL = 0.95
_ROUNDING = 1e-12
#: Counts drawn at a time.
_CELLS = 4_000_000

_Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Σ numerator ÷ Σ denominator of several rows, with intervals from resampled sessions.

    Parameters
    ----------
    estimate : ndarray of float, shape (rows,)
    lower, upper : ndarray of float, shape (rows,)
        90% percentile intervals, each for itself.
    shown : ndarray of bool, shape (rows,)
        Whether the interval leaves 0 out.
    shown_together : ndarray of bool, shape (rows,)
        Whether 0 is left out by intervals that hold 95% for all rows at once.

    Notes
    -----
    Together, the largest and the smallest studentized deviation over rows are what is looked up
    [1]_, each draw with its own standard error [2]_: savings are skewed, and percentiles of as few
    as a hundred sessions claim too much.

    References
    ----------
    .. [1] P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", 1993.
    .. [2] P. Hall, "Theoretical Comparison of Bootstrap Confidence Intervals", Annals of
       Statistics 16 (1988), 927-953.
    """

    estimate: _Numbers
    lower: _Numbers
    upper: _Numbers
    shown: NDArray[np.bool_]
    shown_together: NDArray[np.bool_]


def drawn_ratios(
    numerators: _Numbers,
    denominator: _Numbers,
    sessions: Sequence[str],
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> Ratios:
    """Resample sessions and return the ratios with their intervals.

    Parameters
    ----------
    numerators : ndarray of float, shape (rows, units)
        Such as the paired differences of bills.
    denominator : ndarray of float, shape (units,) or (rows, units)
        Such as the bill to compare with. A draw in which a row has none counts as its estimate.
    sessions : sequence of str, one a unit
        Units of one session are drawn together.
    draws : int, default 1,000
        Resamplings; all rows share them.
    seed : int, default 0
        Of the draws.
    """
    names, code = np.unique(np.array(sessions), return_inverse=True)
    above = _by_session(numerators, code, names.size)
    below = np.broadcast_to(_by_session(np.atleast_2d(denominator), code, names.size), above.shape)
    estimate = _divided(above.sum(axis=0), below.sum(axis=0), np.zeros(above.shape[1]))
    drawn, errors = [], []
    for counts in _counts(names.size, draws, seed):
        ratios = _divided(counts @ above, counts @ below, estimate)
        drawn.append(ratios)
        errors.append(_errors(counts, above, below, ratios))
    ratios = np.concatenate(drawn)
    own = _errors(np.ones((1, names.size), dtype=np.int64), above, below, estimate[None])[0]
    lower, upper = np.quantile(ratios, [(1.0 - _LEVEL) / 2.0, (1.0 + _LEVEL) / 2.0], axis=0)
    return Ratios(
        estimate,
        lower,
        upper,
        shown=(lower > 0) | (upper < 0),
        shown_together=_together(estimate, own, ratios, np.concatenate(errors)),
    )


def _errors(
    counts: NDArray[np.int64], above: _Numbers, below: _Numbers, ratios: _Numbers
) -> _Numbers:
    """Return the standard error of each draw's ratios, linearised: of Σ (a − ratio·b) ÷ Σ b."""
    squares = counts @ above**2
    squares -= 2.0 * ratios * (counts @ (above * below))
    squares += ratios**2 * (counts @ below**2)
    return _divided(np.sqrt(np.maximum(squares, 0.0)), counts @ below, np.zeros(above.shape[1]))


def _counts(sessions: int, draws: int, seed: int) -> Iterator[NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    even = np.full(sessions, 1.0 / sessions)
    left = draws
    while left:
        some = min(left, max(1, _CELLS // sessions))
        yield generator.multinomial(sessions, even, size=some)
        left -= some


def _by_session(rows: _Numbers, code: NDArray[np.intp], sessions: int) -> _Numbers:
    return np.stack([np.bincount(code, row, minlength=sessions) for row in rows], axis=1)


def _divided(above: _Numbers, below: _Numbers, otherwise: _Numbers) -> _Numbers:
    """Return ratios, and something else where there is nothing to divide by."""
    positive = np.broadcast_to(below > 0, above.shape)
    found: _Numbers = np.where(positive, above / np.where(positive, below, 1.0), otherwise)
    return found


def _together(
    estimate: _Numbers, error: _Numbers, drawn: _Numbers, errors: _Numbers
) -> NDArray[np.bool_]:
    # What is the same in every session is no matter of chance, up to rounding.
    moves = error > _ROUNDING * np.maximum(np.abs(estimate), 1e-6)
    found: NDArray[np.bool_] = ~moves & (np.abs(estimate) > _ROUNDING)
    if moves.any():
        # Draws that repeat one session have no error of their own, and say nothing.
        known = errors[:, moves] > _ROUNDING
        away = np.where(known, (drawn - estimate)[:, moves], 0.0)
        scaled = away / np.where(known, errors[:, moves], 1.0)
        tail = (1.0 - _FAMILY_LEVEL) / 2.0
        least = np.quantile(scaled.min(axis=1), tail)
        most = np.quantile(scaled.max(axis=1), 1.0 - tail)
        standing = estimate[moves] / error[moves]
        found[moves] = (standing > most) | (standing < least)
    return found
