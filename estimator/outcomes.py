"""Decisions held against what their turns then did: m, P(pays), and what advice was worth."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimator.clustering import SessionTurns, clustered_life_table
from estimator.paid_share import PaidShare, paid_share
from estimator.student_t import t_quantile

__all__ = [
    "AdviceWorth",
    "ContinueCheck",
    "Judged",
    "RemainingCheck",
    "Tenth",
    "WaitWorth",
    "advice_worth",
    "continue_check",
    "probability_tenths",
    "remaining_check",
    "wait_worth",
]

_Floats = NDArray[np.float64]
_Truths = NDArray[np.bool_]
_Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Decisions with what their turns then did, one row each, in the order they were made.

    Parameters
    ----------
    turn, session : ndarray of int, shape (decisions,)
        Equal for decisions of one turn, of one session.
    ended : ndarray of bool
        Whether the turn came to its end; else the numbers that follow are what at least remained.
    remaining : ndarray of float
        What remained in the unit asked; NaN where unknown.
    requests : ndarray of float
        Requests that remained, the next one included; NaN where unknown.
    expected : ndarray of float
        m(i) in the unit asked; NaN where the answer had none.
    continue_probability : ndarray of float
        That there is another call at all; NaN where the answer had none, or where it is no
        forecast because requests are counted, and the one asked about is about to be made.
    probability_pays : ndarray of float
        NaN where the answer had none.
    break_even : ndarray of float
        C/s in requests; infinite where nothing is saved.
    cost, saving : ndarray of float
        C, and s per request, in base tokens.
    compact, forced : ndarray of bool
        Whether compaction was advised, and whether by the hard limit, whatever it is worth.
    """

    turn: _Whole
    session: _Whole
    ended: _Truths
    remaining: _Floats
    requests: _Floats
    expected: _Floats
    continue_probability: _Floats
    probability_pays: _Floats
    break_even: _Floats
    cost: _Floats
    saving: _Floats
    compact: _Truths
    forced: _Truths

    def only(self, rows: _Truths | _Whole) -> "Judged":
        """Return some of the rows."""
        return Judged(*(getattr(self, name)[rows] for name in Judged.__slots__))

    @property
    def went_on(self) -> _Truths:
        """Whether the turn is known to have made another call, which m and P(pays) suppose."""
        return self.remaining >= 1

    @property
    def net(self) -> _Floats:
        """n·s − C in base tokens; of a turn without an end, what it at least is."""
        return self.requests * self.saving - self.cost

    def paid_share(self, level: float = 0.9) -> PaidShare:
        """Return how often more requests remained than the break-even, where they are known."""
        known = self.only(~np.isnan(self.requests))
        return paid_share(known.requests, known.ended, known.break_even, known.session, level)


@dataclass(frozen=True, slots=True)
class RemainingCheck:
    """Expected remaining calls against those that remained.

    Parameters
    ----------
    decisions, ended : int
        Those whose turn went on, and how many of them are known to the end.
    expected : float
        Mean of m(i).
    observed : float or None
        Mean of what remained, see `remaining_check`; None while no turn has ended.
    ratio, lower, upper : float or None
        Observed ÷ expected, with an interval; above 1, turns went on for longer than forecast.
    """

    decisions: int
    ended: int
    expected: float
    observed: float | None = None
    ratio: float | None = None
    lower: float | None = None
    upper: float | None = None


def remaining_check(judged: Judged, level: float = 0.9) -> RemainingCheck | None:
    """Hold m(i) against the calls that remained, in the unit asked.

    Parameters
    ----------
    judged : Judged
        Of one unit.
    level : float, default 0.9
        Two-sided.

    Returns
    -------
    RemainingCheck or None
        None where no turn is known to have gone on.

    Notes
    -----
    What remained is the mean of a life table of its own, whose age 0 is the decision: without cut
    turns the plain mean, with them Kaplan-Meier's, with an open tail. Its interval takes decisions
    of one session as alike. It supposes that a cut tells nothing of what would have remained.
    Reference: the model, §2.
    """
    rows = judged.only(judged.went_on & ~np.isnan(judged.expected))
    if not rows.ended.size:
        return None
    expected = float(rows.expected.mean())
    counts = (rows.ended.size, int(rows.ended.sum()), expected)
    if not rows.ended.any():
        return RemainingCheck(*counts)
    # Of a turn without an end, one call less than it made was survived: it may be its last.
    exit_ = np.floor(rows.remaining).astype(np.int64) - ~rows.ended
    turns = SessionTurns(np.zeros_like(exit_), exit_, rows.ended, rows.session)
    at = clustered_life_table(turns, level=level).at(0)
    ratio = at.mean / expected
    return RemainingCheck(*counts, at.mean, ratio, at.lower / expected, at.upper / expected)


@dataclass(frozen=True, slots=True)
class ContinueCheck:
    """Turns that made no further call against those that were expected not to.

    Parameters
    ----------
    decisions, ended : int
        Those where it is known whether another call was made, and those where none was.
    expected : float
        Sum of 1 − `continue_probability`.
    ratio, lower, upper : float or None
        Ended ÷ expected, with an interval; None while too few have ended.
    """

    decisions: int
    ended: int
    expected: float
    ratio: float | None = None
    lower: float | None = None
    upper: float | None = None


def continue_check(judged: Judged, level: float = 0.9) -> ContinueCheck | None:
    """Hold the chance that a turn goes on against whether it did.

    Exact under cuts: each decision is judged by its own next call alone, and one whose turn was
    cut right there is left out, as it was not at risk.

    Parameters
    ----------
    judged : Judged
    level : float, default 0.9
        Two-sided.
    """
    known = ~np.isnan(judged.continue_probability) & (judged.went_on | judged.ended)
    rows = judged.only(known & ~np.isnan(judged.remaining))
    if not rows.ended.size:
        return None
    gone = rows.ended & (rows.remaining < 1)
    hazard = 1.0 - rows.continue_probability
    counts = (gone.size, int(gone.sum()), float(hazard.sum()))
    sessions = np.unique(rows.session, return_inverse=True)[1]
    sums = np.bincount(sessions, gone - hazard)
    if counts[1] < 2 or sums.size < 2 or not counts[2]:
        return ContinueCheck(*counts)
    ratio = counts[1] / counts[2]
    spread = np.sqrt((sums**2).sum() * sums.size / (sums.size - 1)) / counts[1]
    factor = float(np.exp(t_quantile(sums.size - 1, level) * spread).item())
    return ContinueCheck(*counts, ratio, ratio / factor, ratio * factor)


@dataclass(frozen=True, slots=True)
class Tenth:
    """Decisions whose P(pays) lies within a tenth, and how often it paid.

    Parameters
    ----------
    lowest, highest : float
        From, and up to but not including, except 1.
    probability : float
        Mean of their P(pays).
    paid : PaidShare
    """

    lowest: float
    highest: float
    probability: float
    paid: PaidShare


def probability_tenths(judged: Judged, level: float = 0.9) -> list[Tenth]:
    """Hold P(pays) against how often it paid, by tenths of P(pays); empty tenths are left out.

    Parameters
    ----------
    judged : Judged
        Rows whose turn is not known to have gone on are left out, as P(pays) supposes that.
    level : float, default 0.9
        Two-sided.
    """
    known = judged.went_on & ~np.isnan(judged.probability_pays) & ~np.isnan(judged.requests)
    rows = judged.only(known)
    place = np.minimum(np.floor(rows.probability_pays * 10), 9).astype(np.int64)
    return [
        Tenth(
            tenth / 10,
            (tenth + 1) / 10,
            float(rows.probability_pays[place == tenth].mean()),
            rows.only(place == tenth).paid_share(level),
        )
        for tenth in np.unique(place).tolist()
    ]


@dataclass(frozen=True, slots=True)
class AdviceWorth:
    """What the advice to compact was worth: the first of each turn, the hard limit's left out.

    Parameters
    ----------
    turns, ended : int
        Turns advised to compact, and those of them that ended.
    forced : int
        Decisions of the hard limit, which are not judged.
    paid : PaidShare
        One decision a turn.
    net_tokens : float
        Sum of n·s − C over the ended turns, in base tokens.
    cut_net_tokens : float
        The same over the others where they stand: what it at least is.
    """

    turns: int
    ended: int
    forced: int
    paid: PaidShare
    net_tokens: float
    cut_net_tokens: float


def advice_worth(judged: Judged, level: float = 0.9) -> AdviceWorth:
    """Judge the first advice of each turn to compact: later ones rest on the same requests.

    Parameters
    ----------
    judged : Judged
        In the order they were made.
    level : float, default 0.9
        Two-sided.
    """
    advised = judged.only(judged.compact & ~judged.forced & ~np.isnan(judged.requests))
    first = advised.only(np.sort(np.unique(advised.turn, return_index=True)[1]))
    return AdviceWorth(
        turns=first.ended.size,
        ended=int(first.ended.sum()),
        forced=int((judged.compact & judged.forced).sum()),
        paid=first.paid_share(level),
        net_tokens=float(first.net[first.ended].sum()),
        cut_net_tokens=float(first.net[~first.ended].sum()),
    )


@dataclass(frozen=True, slots=True)
class WaitWorth:
    """What waiting avoided and missed, had the answer been to compact once, then and there.

    Parameters
    ----------
    decisions, ended : int
        Decisions to wait, and those whose turn ended.
    would_have_paid : PaidShare
    missed_tokens, avoided_tokens : float or None
        Means over the ended ones of n·s − C where that is positive, and of C − n·s where that is,
        in base tokens a decision. Their sums mean nothing: a turn compacts once.
    """

    decisions: int
    ended: int
    would_have_paid: PaidShare
    missed_tokens: float | None
    avoided_tokens: float | None


def wait_worth(judged: Judged, level: float = 0.9) -> WaitWorth:
    """Judge the decisions to wait.

    Parameters
    ----------
    judged : Judged
    level : float, default 0.9
        Two-sided.
    """
    rows = judged.only(~judged.compact & ~np.isnan(judged.requests))
    net = rows.net[rows.ended]
    return WaitWorth(
        decisions=rows.ended.size,
        ended=net.size,
        would_have_paid=rows.paid_share(level),
        missed_tokens=float(np.maximum(net, 0).mean()) if net.size else None,
        avoided_tokens=float(np.maximum(-net, 0).mean()) if net.size else None,
    )
