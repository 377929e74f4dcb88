"""Clustering by session: turns of one session are alike, so they tell less than as many others."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.interval import mean_interval
from estimator.life_table import LifeTable, life_table
from estimator.mean_residual_life import backward_recursion
from estimator.turn_rows import (
    MAX_CALLS,
    refuse_ends_before_entry,
    same_length,
    truths,
    whole_numbers,
)

__all__ = ["SessionTurns", "clustered_life_table"]

# Sessions × ages held at once.
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class SessionTurns:
    """Single turns with the session each belongs to: a histogram no longer knows it.

    Parameters
    ----------
    entry, exit, ended : array_like, shape (turns,)
        As in `Histogram`, one row a turn.
    session : array_like of int or str, shape (turns,)
        A code or name, equal for turns of one session.

    Attributes
    ----------
    session : ndarray of int64, shape (turns,)
        Numbered from 0; the rows sorted by it.

    Raises
    ------
    InputError
        If sessions are neither whole numbers nor texts, or as for `Histogram`.
    """

    entry: NDArray[np.int64]
    exit: NDArray[np.int64]
    ended: NDArray[np.bool_]
    session: NDArray[np.int64]

    def __post_init__(self) -> None:
        entry = whole_numbers("entry", self.entry, low=0, high=MAX_CALLS)
        exit_ = whole_numbers("exit", self.exit, low=-1, high=MAX_CALLS)
        ended = truths("ended", self.ended)
        session = _session_numbers(self.session)
        same_length(("entry", "exit", "ended", "session"), (entry, exit_, ended, session))
        refuse_ends_before_entry(entry, exit_, ended)
        order = np.argsort(session, kind="stable")
        columns = {"entry": entry, "exit": exit_, "ended": ended, "session": session}
        for name, column in columns.items():
            object.__setattr__(self, name, column[order])

    @property
    def histogram(self) -> Histogram:
        """The turns counted, without their sessions."""
        return Histogram(self.entry, self.exit, self.ended, np.ones_like(self.entry))


def clustered_life_table(
    turns: SessionTurns, *, min_at_risk: int = 20, min_ends: int = 3, level: float = 0.9
) -> LifeTable:
    """Estimate a life table whose variance and interval respect sessions.

    Parameters
    ----------
    turns : SessionTurns
        Cut ones included.
    min_at_risk, min_ends, level
        As for `life_table`, whose table this is but for `variance`, `lower`, `upper` and
        `sessions`. The open interval still starts where turns, not sessions, become few.

    Returns
    -------
    LifeTable
        `variance` is Σ over sessions of the squared sum of its turns' influences on m(i);
        `sessions` counts those with an end beyond min(i, τ), and the interval has that number
        − 1 degrees of freedom. Its √(G/(G−1)) of G sessions is the finite-sample factor, as
        √(D/(D−1)) is that of turns: `variance` itself carries none. With every turn a session of
        its own and no late entry it is the variance of `life_table` exactly; under late entry
        that one leaves out cross terms whose expectation is 0.

    Raises
    ------
    InputError
        As for `life_table`.

    Notes
    -----
    The model, §2. One session with an end gives no variance between sessions, so the interval
    there is the credibility interval on one end [1]_.

    References
    ----------
    .. [1] K.-Y. Liang and S. L. Zeger, "Longitudinal data analysis using generalized linear
       models", Biometrika 73 (1986), 13-22, for the sum of influences by cluster.

    Examples
    --------
    >>> turns = SessionTurns([0] * 4, [2, 2, 8, 8], [True] * 4, ["a", "a", "b", "b"])
    >>> table = clustered_life_table(turns)
    >>> table.mean.tolist(), table.variance.tolist(), table.sessions.tolist()
    ([5.0], [4.5], [2])
    """
    table = life_table(turns.histogram, min_at_risk=min_at_risk, min_ends=min_ends, level=level)
    variance = np.zeros_like(table.mean)
    sessions = np.zeros(len(table.mean), dtype=np.int64)
    for rows in _blocks(turns.session, len(table.mean)):
        influence = _influence(turns, rows, table)
        variance += (influence**2).sum(axis=0)
        sessions += _with_an_end_beyond(turns, rows, table.tail_age)
    lower, upper = mean_interval(table.mean, variance, sessions, level)
    return replace(table, variance=variance, lower=lower, upper=upper, sessions=sessions)


def _influence(turns: SessionTurns, rows: slice, table: LifeTable) -> NDArray[np.float64]:
    """Σ over a session's turns of their influence on m(i), by session and age.

    Ψ(i) = (1−h)·Ψ(i+1) − m(i+1)·(d − h·n_own)/n with h = h_{i+1}, d and n_own the session's ended
    and at risk; at the tail age Ψ(τ) = Σ(e − m·δ)/D.
    """
    tail_age = table.tail_age
    own_at_risk, own_ended = _by_session(turns, rows, tail_age)
    hazard = table.hazard[:-1]
    step = np.empty((len(own_at_risk), tail_age + 1))
    weight = table.mean[1:] / np.maximum(table.at_risk[:-1], 1)
    step[:, :-1] = (hazard * own_at_risk - own_ended) * weight
    step[:, -1] = _tail_influence(turns, rows, table)
    return backward_recursion(step, np.tile(np.append(1.0 - hazard, 0.0), (len(step), 1)))


def _by_session(
    turns: SessionTurns, rows: slice, ages: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count turns at risk for, and ended at, calls 1 … `ages`, by session."""
    session = _local(turns, rows)
    shape = (int(session[-1]) + 1, ages + 1)
    entry, exit_ = turns.entry[rows], turns.exit[rows]
    exposed = exit_ > entry
    ended = turns.ended[rows] & exposed & (exit_ <= ages)
    change = np.zeros(shape)
    np.add.at(change, (session[exposed], np.minimum(entry[exposed], ages)), 1)
    np.add.at(change, (session[exposed], np.minimum(exit_[exposed], ages)), -1)
    ends = np.zeros(shape)
    np.add.at(ends, (session[ended], exit_[ended] - 1), 1)
    return np.cumsum(change, axis=1)[:, :-1], ends[:, :-1]


def _tail_influence(turns: SessionTurns, rows: slice, table: LifeTable) -> NDArray[np.float64]:
    calls = turns.exit[rows] - np.maximum(turns.entry[rows], table.tail_age)
    passes = calls > 0
    told = np.where(passes, calls - table.mean[-1] * turns.ended[rows], 0.0)
    influence: NDArray[np.float64] = np.bincount(_local(turns, rows), told) / table.ends[-1]
    return influence


def _with_an_end_beyond(turns: SessionTurns, rows: slice, tail_age: int) -> NDArray[np.int64]:
    """Sessions of the block with an end beyond each age up to τ."""
    session = _local(turns, rows)
    observed = turns.ended[rows] & (turns.exit[rows] > turns.entry[rows])
    last = np.zeros(int(session[-1]) + 1, dtype=np.int64)
    np.maximum.at(last, session[observed], turns.exit[rows][observed])
    # An end at call N is beyond the ages 0 … N − 1.
    beyond = np.bincount(np.minimum(last, tail_age + 1), minlength=tail_age + 2)
    return np.cumsum(beyond[::-1])[::-1][1:]


def _local(turns: SessionTurns, rows: slice) -> NDArray[np.int64]:
    """Sessions of a block, numbered from 0."""
    session = turns.session[rows]
    numbers: NDArray[np.int64] = session - session[0]
    return numbers


def _blocks(session: NDArray[np.int64], ages: int) -> list[slice]:
    """Rows of as many whole sessions as are held at once."""
    most = max(1, _BLOCK // ages)
    first = np.arange(0, int(session[-1]) + 1, most)
    starts = [*np.searchsorted(session, first).tolist(), session.size]
    return [slice(start, stop) for start, stop in pairwise(starts)]


def _session_numbers(values: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(values)
    if given.dtype.kind == "O" and all(isinstance(value, str) for value in given.flat):
        given = given.astype(str)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iuU"):
        raise InputError(
            "sessions are neither whole numbers nor texts, one a turn",
            where="session",
            value=given.tolist(),
            remedy="Give one code or name a turn; a turn of unknown session one of its own",
        )
    numbers: NDArray[np.int64] = np.unique(given, return_inverse=True)[1].astype(np.int64)
    return numbers
