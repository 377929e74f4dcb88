"""Observed turns and compactions of a role → samples of what they teach; nothing is borrowed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

from estimator.pauses import OVER_SECONDS, Pauses, pauses
from estimator.samples import Sample, mean_sample, median_sample, share_sample
from ledger.compaction_observations import CompactionSeen, SummaryUsage
from ledger.observations import FALL, TurnSeen

__all__ = [
    "KEPT_SHARE",
    "CompactionSamples",
    "SessionSamples",
    "TokenSamples",
    "compaction_samples",
]

#: Share of a session's first context that survives a compaction, measured on real compactions:
#: system prompt, tools and memory do, the first prompt does not.
KEPT_SHARE = 2 / 3
#: Compactions of a role that are looked at: its latest.
LATEST_COMPACTIONS = 50
#: Of these, the ones that tell p′: the same bytes again, until an update of the agent changes them.
LATEST_PREFIXES = 5
#: Steps behind a compaction from which on its growth is compared with the usual.
LEAST_FOLLOWED = 5
#: Summary calls whose usage is known, from which on it is told.
LEAST_CALLS = 3

_MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class TokenSamples:
    """What turns tell of contexts and the cache; None where they tell nothing.

    Parameters
    ----------
    first_context : Sample or None
        Context tokens of a session's first request, its median.
    growth, first_growth : Sample or None
        Growth per request within turns, and of a turn's first request over the turn before; means.
    misses : Sample or None
        Share of requests that missed a cache that should have held their prefix.
    """

    first_context: Sample | None = None
    growth: Sample | None = None
    first_growth: Sample | None = None
    misses: Sample | None = None

    @classmethod
    def of(cls, turns: Sequence[TurnSeen]) -> "TokenSamples":
        """Return the samples of turns."""
        first = [turn.first_context for turn in turns if turn.opens_session and turn.first_context]
        growths = list(chain.from_iterable(turn.growths for turn in turns))
        steps = sum(turn.cached_steps for turn in turns)
        return cls(
            median_sample(first),
            mean_sample(growths),
            mean_sample(list(_first_growths(lines_of(turns)))),
            share_sample(sum(turn.misses for turn in turns), steps),
        )


@dataclass(frozen=True, slots=True)
class SessionSamples:
    """What a role's turns tell of how sessions go on.

    Parameters
    ----------
    pauses : Pauses or None
        None where no turn tells a session.
    gap_seconds : Sample or None
        Time before the next turn, its median.
    requests_after_turn : Sample or None
        Further requests of the session once a turn is over, their mean: of sessions that are
        over, or of all while none is.
    """

    pauses: Pauses | None = None
    gap_seconds: Sample | None = None
    requests_after_turn: Sample | None = None

    @property
    def resume_probability(self) -> Sample | None:
        """The share of turns after which the session goes on within a day."""
        if self.pauses is None or not self.pauses.turns:
            return None
        return Sample(self.pauses.turns, self.pauses.resume_probability)

    @classmethod
    def of(cls, turns: Sequence[TurnSeen], standing: Iterable[TurnSeen] = ()) -> "SessionSamples":
        """Return the samples of a role's turns.

        Parameters
        ----------
        turns : sequence of TurnSeen
            All that are looked at. The log ends with the last of them.
        standing : iterable of TurnSeen
            Those of them that are still open: no pause has begun yet.
        """
        lines = lines_of(turns)
        if not lines:
            return cls()
        end_ms = max(turn.last_ms for turn in turns if turn.last_ms is not None)
        unfinished = {id(turn) for turn in standing}
        gaps: list[float] = []
        waited: list[float] = []
        after: list[int] = []
        after_over: list[int] = []
        for line in lines:
            gaps += [_seconds(sooner.last_ms, later.started_ms) for sooner, later in pairwise(line)]
            rested = _seconds(line[-1].last_ms, end_ms)
            further = _requests_after(line)
            after += further
            if id(line[-1]) not in unfinished:
                waited.append(rested)
                after_over += further if rested >= OVER_SECONDS else []
        return cls(pauses(gaps, waited), median_sample(gaps), mean_sample(after_over or after))


@dataclass(frozen=True, slots=True)
class CompactionSamples:
    """What compactions of one strategy left behind; medians, but the mean of rework.

    ``excess`` is X′ beyond the session's first context, ``kept_share`` is p′ as a share of it:
    what another role's compactions tell of this one's.
    """

    context_after: Sample | None = None
    cached_after: Sample | None = None
    excess: Sample | None = None
    kept_share: Sample | None = None
    summary_output: Sample | None = None
    rework: Sample | None = None
    calls: Mapping[str, float] = field(default_factory=dict)


def compaction_samples(seen: Sequence[CompactionSeen], growth_tokens: float) -> CompactionSamples:
    """Return the samples of compactions.

    Parameters
    ----------
    seen : sequence of CompactionSeen
        Newest first.
    growth_tokens : float
        What a request usually adds to the context: growth beyond it is rework.
    """
    seen = seen[:LATEST_COMPACTIONS]
    left = [one for one in seen if one.context_after]
    kept = [one for one in seen if one.cached_after is not None][:LATEST_PREFIXES]
    calls = [one.call for one in seen if one.call]
    return CompactionSamples(
        median_sample([one.context_after or 0 for one in left]),
        median_sample([one.cached_after or 0 for one in kept]),
        median_sample(
            [(one.context_after or 0) - one.opening_context for one in left if one.opening_context]
        ),
        median_sample(
            [(one.cached_after or 0) / one.opening_context for one in kept if one.opening_context]
        ),
        median_sample([call.output_tokens for call in calls if call.output_tokens is not None]),
        mean_sample(
            [
                one.followed_tokens - growth_tokens * one.followed_requests
                for one in seen
                if one.followed_requests >= LEAST_FOLLOWED
            ]
        ),
        _median_call(calls),
    )


def _median_call(calls: Sequence[SummaryUsage]) -> dict[str, float]:
    """Return the median tokens of calls by class of input, or nothing while there are few."""
    if len(calls) < LEAST_CALLS:
        return {}
    classes = ("read_tokens", "uncached_tokens", "written_5m_tokens", "written_1h_tokens")
    medians = {name: median_sample([getattr(call, name) for call in calls]) for name in classes}
    return {name: sample.value for name, sample in medians.items() if sample}


def lines_of(turns: Iterable[TurnSeen]) -> list[list[TurnSeen]]:
    """Return the turns that tell their session and their times, by line of work, in order."""
    lines: dict[str, list[TurnSeen]] = {}
    for turn in turns:
        if turn.thread_id and turn.started_ms is not None and turn.last_ms is not None:
            lines.setdefault(turn.thread_id, []).append(turn)
    return [sorted(line, key=_started) for line in lines.values()]


def _started(turn: TurnSeen) -> int:
    return turn.started_ms or 0


def _first_growths(lines: Iterable[Sequence[TurnSeen]]) -> Iterable[int]:
    for line in lines:
        for sooner, later in pairwise(line):
            before, after = sooner.last_context, later.first_context
            # A context that fell was compacted in between.
            same = sooner.last_model == later.first_model
            if before and after and same and after >= before * (1 - FALL):
                yield after - before


def _requests_after(line: Sequence[TurnSeen]) -> list[int]:
    """Return how many requests follow after each turn of a line of work."""
    further, after = 0, []
    for turn in reversed(line):
        after.append(further)
        further += turn.requests
    return after


def _seconds(from_ms: int | None, to_ms: int | None) -> float:
    return max(0.0, ((to_ms or 0) - (from_ms or 0)) / _MILLISECONDS)
