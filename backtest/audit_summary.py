"""Verdicts summed up: by role, trigger, model, month and project, and by calls ahead."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from backtest.audit import Audit, AuditedCompaction
from backtest.crossing import Crossing, crossing
from estimator.paid_share import paid_share
from estimator.wilson import wilson_interval
from ledger.clock import iso

__all__ = ["BINS", "AuditSummary", "CallsAhead", "GroupSummary", "Interval", "summarize"]

Interval = tuple[float, float]

#: Calls ahead from which each bin begins.
BINS = (0, 1, 5, 10, 20, 40)
_DRAWS = 2_000
#: Counts of sessions held at once: memory must not grow with their number.
_CELLS = 1_000_000
_LEVEL = 0.9
#: Characters of a time, such as 2026-02.
_MONTH = 7


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Compactions that have something in common.

    Parameters
    ----------
    name : str
        What they have in common.
    compactions, sessions : int
    paid, lost, undecided, unpriced : int
        They add up to `compactions`.
    share_paid : float or None
        Share that paid; an undecided one counts up to where the log stopped (Kaplan-Meier). None
        while none was seen far enough.
    share_interval : tuple of float or None
        Wilson's, on those decided, each for itself.
    share_interval_by_session : tuple of float or None
        Wilson's on the number of independent ones, those of a session being alike.
    net : float
        Σ net in base tokens as far as it was seen: what undecided ones went on to save is
        missing.
    net_interval : tuple of float or None
        Percentiles of the sum over sessions drawn with replacement; None for fewer than two.
    net_dollars : float or None
        Σ net in dollars; None where weights were given.
    hit_worth_misses : float or None
        Mean net of those that paid ÷ mean loss of those that lost.
    net_with_rework : float
        `net` less the cost of the rework that was seen.
    """

    name: str
    compactions: int
    sessions: int
    paid: int
    lost: int
    undecided: int
    unpriced: int
    share_paid: float | None
    share_interval: Interval | None
    share_interval_by_session: Interval | None
    net: float
    net_interval: Interval | None
    net_dollars: float | None
    hit_worth_misses: float | None
    net_with_rework: float

    @property
    def shows_difference(self) -> bool:
        """Whether the interval of the net leaves 0 out."""
        return self.net_interval is not None and not (
            self.net_interval[0] <= 0.0 <= self.net_interval[1]
        )


@dataclass(frozen=True, slots=True)
class CallsAhead:
    """Compactions with so many calls ahead, exactly known: undecided and cut ones are left out.

    Parameters
    ----------
    first, last : int or None
        Range of calls, both included; `last` is None where it is open.
    compactions, paid : int
    share_paid : float or None
    interval : tuple of float or None
        Wilson's.
    """

    first: int
    last: int | None
    compactions: int
    paid: int
    share_paid: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class AuditSummary:
    """What an audit says as a whole.

    Parameters
    ----------
    whole : GroupSummary
    idle : GroupSummary
        Those made between turns, by hand, or after the cache had expired.
    never_resumed : int
        Idle ones that no request followed.
    groups : mapping of str to sequence of GroupSummary
        By 'role', 'trigger', 'model', 'month', 'strategy' and, where it is told, 'project'.
    ahead : mapping of str to sequence of CallsAhead
        P(paid) by 'calls' and by 'requests' ahead.
    crossings : mapping of str to Crossing
        Where it crosses ½, by 'calls' and by 'requests'.
    break_even : tuple of float or None
        Quartiles of the compactions' own C/s in requests.
    rework : tuple of float or None
        Quartiles of rework in tokens.
    """

    whole: GroupSummary
    idle: GroupSummary
    never_resumed: int
    groups: Mapping[str, Sequence[GroupSummary]]
    ahead: Mapping[str, Sequence[CallsAhead]]
    crossings: Mapping[str, Crossing]
    break_even: tuple[float, float, float] | None
    rework: tuple[float, float, float] | None


def summarize(audited: Audit) -> AuditSummary:
    """Sum up an audit; every interval is a two-sided one at 90%."""
    rows = audited.compactions
    keys: dict[str, Callable[[AuditedCompaction], str | None]] = {
        "role": lambda one: one.case.role,
        "trigger": lambda one: one.case.trigger or "not told",
        "model": lambda one: one.case.model or "not told",
        "month": lambda one: (iso(one.case.at_ms) or "not told")[:_MONTH],
        "strategy": lambda one: one.case.strategy,
        "project": lambda one: one.case.project,
    }
    idle = [one for one in rows if one.idle]
    exact = [one for one in rows if one.remaining.final and one.verdict in ("paid", "lost")]
    counted = {
        "calls": [one.remaining.counted_calls for one in exact],
        "requests": [one.remaining.counted_requests for one in exact],
    }
    paid = [one.verdict == "paid" for one in exact]
    return AuditSummary(
        whole=_group("all", rows),
        idle=_group("idle", idle),
        never_resumed=sum(not one.case.in_session.requests for one in idle),
        groups={name: _groups(rows, key) for name, key in keys.items()},
        ahead={unit: _ahead(numbers, paid) for unit, numbers in counted.items()},
        crossings={unit: crossing(numbers, paid, _LEVEL) for unit, numbers in counted.items()},
        break_even=_quartiles(one.break_even for one in rows if one.remaining.counted_requests),
        rework=_quartiles(one.case.rework_tokens for one in rows),
    )


def _groups(
    rows: Sequence[AuditedCompaction], key: Callable[[AuditedCompaction], str | None]
) -> list[GroupSummary]:
    members: dict[str, list[AuditedCompaction]] = {}
    for one in rows:
        name = key(one)
        if name is not None:
            members.setdefault(name, []).append(one)
    return [_group(name, members[name]) for name in sorted(members)]


def _group(name: str, rows: Sequence[AuditedCompaction]) -> GroupSummary:
    verdicts = [one.verdict for one in rows]
    paid, lost = verdicts.count("paid"), verdicts.count("lost")
    share, by_session = _share(rows)
    priced = [one for one in rows if one.verdict]
    nets = [one.net or 0.0 for one in priced]
    dollars = [
        net * one.dollars_per_token
        for net, one in zip(nets, priced, strict=True)
        if one.dollars_per_token is not None
    ]
    return GroupSummary(
        name=name,
        compactions=len(rows),
        sessions=len({one.case.session_id for one in rows}),
        paid=paid,
        lost=lost,
        undecided=verdicts.count("undecided"),
        unpriced=verdicts.count(None),
        share_paid=share,
        share_interval=None if share is None else _wilson(share, paid + lost),
        share_interval_by_session=by_session,
        net=sum(nets),
        net_interval=_net_interval(priced, nets),
        net_dollars=sum(dollars) if priced and len(dollars) == len(priced) else None,
        hit_worth_misses=_hit_worth_misses(rows),
        net_with_rework=sum(nets) - sum(one.rework_cost or 0.0 for one in priced),
    )


def _share(rows: Sequence[AuditedCompaction]) -> tuple[float | None, Interval | None]:
    """Return the share that paid, with its interval by session."""
    # One whose X′ nobody saw, but whose turn goes on, says nothing at all.
    told = [
        one for one in rows if one.verdict and (one.saving is not None or one.verdict == "lost")
    ]
    if not told:
        return None, None
    sessions = np.unique([one.case.session_id for one in told], return_inverse=True)[1]
    found = paid_share(
        np.array([float(one.remaining.counted_requests) for one in told]),
        np.array([one.remaining.final for one in told]),
        np.array([_needed(one) for one in told]),
        sessions.astype(np.int64),
        _LEVEL,
    )
    if found.share is None or found.lower is None or found.upper is None:
        return None, None
    return found.share, (found.lower, found.upper)


def _needed(one: AuditedCompaction) -> float:
    """Return C/s; infinite where nothing is saved, or no request followed."""
    needed = one.break_even
    return float("inf") if needed is None or not one.remaining.counted_requests else needed


def _wilson(share: float, size: int) -> Interval:
    lower, upper = wilson_interval(share, size, _LEVEL)
    return float(lower[0]), float(upper[0])


def _net_interval(rows: Sequence[AuditedCompaction], nets: Sequence[float]) -> Interval | None:
    """Return percentiles of Σ net over sessions drawn with replacement."""
    if not rows:
        return None
    code: NDArray[np.intp] = np.unique([one.case.session_id for one in rows], return_inverse=True)[
        1
    ]
    sums = np.bincount(code, weights=nets)
    if sums.size < 2:
        return None
    even = np.full(sums.size, 1.0 / sums.size)
    generator = np.random.default_rng(0)
    block = max(1, _CELLS // sums.size)
    drawn = np.concatenate(
        [
            generator.multinomial(sums.size, even, size=min(block, _DRAWS - done)) @ sums
            for done in range(0, _DRAWS, block)
        ]
    )
    lower, upper = np.quantile(drawn, [(1.0 - _LEVEL) / 2.0, (1.0 + _LEVEL) / 2.0])
    return float(lower), float(upper)


def _hit_worth_misses(rows: Sequence[AuditedCompaction]) -> float | None:
    won = [one.net for one in rows if one.verdict == "paid" and one.net is not None]
    lost = [-one.net for one in rows if one.verdict == "lost" and one.net is not None]
    if not won or not lost or not fmean(lost):
        return None
    return fmean(won) / fmean(lost)


def _ahead(numbers: Sequence[int], paid: Sequence[bool]) -> list[CallsAhead]:
    found = []
    for place, first in enumerate(BINS):
        last = BINS[place + 1] - 1 if place + 1 < len(BINS) else None
        inside = [
            won
            for number, won in zip(numbers, paid, strict=True)
            if number >= first and (last is None or number <= last)
        ]
        share = fmean(inside) if inside else None
        interval = None if share is None else _wilson(share, len(inside))
        found.append(CallsAhead(first, last, len(inside), sum(inside), share, interval))
    return found


def _quartiles(values: Iterable[float | None]) -> tuple[float, float, float] | None:
    told = [value for value in values if value is not None]
    if not told:
        return None
    lower, middle, upper = np.quantile(told, [0.25, 0.5, 0.75]).tolist()
    return lower, middle, upper
