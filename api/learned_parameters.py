"""Samples → parameters: each number blended with what the next wider level says."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from api.role_samples import KEPT_SHARE, CompactionSamples, SessionSamples, TokenSamples
from estimator.pauses import PAUSE_SECONDS, Pauses, blended_pauses
from estimator.samples import Sample, among_groups, credible
from policy.parameters import (
    ASSUMED,
    DEFAULT_STRATEGY,
    CompactionParameters,
    Parameter,
    Parameters,
    ParameterSource,
)
from policy.sizes import CONTEXT_AFTER_TOKENS, PREFIX_TOKENS

__all__ = ["Group", "blended", "fallback"]

#: K, the observations that weigh as much as what is borrowed; docs/learned.md tells from what.
SIZE_FULL = 1.0
CACHED_FULL = 0.1
REWORK_FULL = 10.0
GROWTH_FULL = 10.0
FIRST_GROWTH_FULL = 3.0
FIRST_CONTEXT_FULL = 0.1
MISS_FULL = 500.0
RESUME_FULL = 3.0
GAP_FULL = 10.0
AFTER_FULL = 1.0
PAUSE_FULL = 10.0


@dataclass(frozen=True, slots=True)
class Group:
    """Samples of a role, or of a role's turns on one model.

    Parameters
    ----------
    tokens : TokenSamples
    sessions : SessionSamples
        Empty for one model: how people pause does not depend on it.
    compactions : mapping of str to CompactionSamples
        By strategy.
    """

    tokens: TokenSamples = field(default_factory=TokenSamples)
    sessions: SessionSamples = field(default_factory=SessionSamples)
    compactions: Mapping[str, CompactionSamples] = field(default_factory=dict)


def blended(
    role: str, model: str, source: ParameterSource, own: Group, wider: Parameters
) -> Parameters:
    """Return what is known of a role, or of its turns on a model, borrowing from a wider level."""
    tokens, sessions = own.tokens, own.sessions
    prefix = _prefix(wider.prefix_tokens, source, tokens)
    survival, _ = blended_pauses(sessions.pauses, [share for _, share in wider.pauses], PAUSE_FULL)
    return Parameters(
        role,
        model,
        prefix,
        _below(wider.growth_tokens, source, tokens.growth, GROWTH_FULL),
        _below(wider.first_growth_tokens, source, tokens.first_growth, FIRST_GROWTH_FULL),
        _below(wider.miss_probability, source, tokens.misses, MISS_FULL),
        _below(wider.resume_probability, source, sessions.resume_probability, RESUME_FULL),
        _below(wider.gap_seconds, source, sessions.gap_seconds, GAP_FULL),
        _below(wider.requests_after_turn, source, sessions.requests_after_turn, AFTER_FULL),
        tuple(zip(PAUSE_SECONDS, survival.tolist(), strict=False)),
        {
            strategy: _compaction(
                strategy,
                source,
                own.compactions.get(strategy),
                wider.compactions,
                (wider.prefix_tokens.value, prefix.value),
            )
            for strategy in sorted(wider.compactions.keys() | own.compactions.keys())
        },
    )


def fallback(kin: Mapping[str, Group], everyone: Mapping[str, Group]) -> Parameters:
    """Return what stands in for a role that nothing is known of, and what every role borrows.

    Parameters
    ----------
    kin : mapping of str to Group
        Roles of its kind: how sessions go on is borrowed from them alone.
    everyone : mapping of str to Group
        All roles: they tell of compactions, and of contexts where its kind has none.
    """
    whole = Group(_tokens_among([group.tokens for group in everyone.values()]))
    base = blended("", "", "all_roles", whole, ASSUMED)
    own = _tokens_among([group.tokens for group in kin.values()])
    prefix = _prefix(base.prefix_tokens, "all_roles", own).value
    sessions = _sessions_among([group.sessions for group in kin.values()])
    strategies = {strategy for group in everyone.values() for strategy in group.compactions}
    compactions = {
        strategy: _compactions_among(strategy, everyone.values(), prefix) for strategy in strategies
    }
    return blended("", "", "all_roles", Group(own, sessions, compactions), base)


def _prefix(wider: Parameter, source: ParameterSource, own: TokenSamples) -> Parameter:
    return _below(wider, source, _scaled(own.first_context, KEPT_SHARE), FIRST_CONTEXT_FULL)


def _compaction(
    strategy: str,
    source: ParameterSource,
    own: CompactionSamples | None,
    known: Mapping[str, CompactionParameters],
    prefixes: tuple[float, float],
) -> CompactionParameters:
    """Return what compactions of a strategy leave, borrowing from a wider level.

    Parameters
    ----------
    prefixes : tuple of (float, float)
        P of the wider level and of this one. What a summary leaves grows with a session's first
        context, and the part of it that is cached in proportion; what clearing leaves does not.
    """
    theirs, ours = prefixes if strategy == DEFAULT_STRATEGY else (1.0, 1.0)
    own = own or CompactionSamples()
    wider = known.get(strategy)
    if wider is None:
        # Nobody assumes anything of this strategy: what is seen of it stands alone.
        wider = _alone(strategy, own)
    context = _as(wider.context_after_tokens, 1.0, (ours - theirs) / KEPT_SHARE)
    cached = _as(wider.cached_after_tokens, ours / theirs if theirs else 1.0)
    output = _below(wider.summary_output_tokens, source, own.summary_output, SIZE_FULL)
    rework = _below(wider.rework_tokens, source, own.rework, REWORK_FULL)
    call = own.calls or wider.observed_call
    return CompactionParameters(
        strategy,
        _below(context, source, own.context_after, SIZE_FULL),
        _below(cached, source, own.cached_after, CACHED_FULL),
        output,
        rework if rework.value >= 0 else replace(rework, value=0.0),
        {**call, "output_tokens": output.value} if call else None,
    )


def _alone(strategy: str, own: CompactionSamples) -> CompactionParameters:
    context, cached = own.context_after, own.cached_after
    return CompactionParameters(
        strategy,
        Parameter(context.value if context else CONTEXT_AFTER_TOKENS),
        Parameter(cached.value if cached else PREFIX_TOKENS),
        # Without a call of its own, a compaction writes nothing.
        Parameter(own.summary_output.value if own.summary_output else 0.0),
    )


def _below(
    wider: Parameter, source: ParameterSource, sample: Sample | None, full: float
) -> Parameter:
    """Return a parameter that borrows from the same one of a wider level."""
    if sample is None:
        return wider
    value, z = credible(sample, wider.value, full)
    quartiles = (sample.median, sample.lower_quartile, sample.upper_quartile)
    return Parameter(value, source, sample.observations, z, *quartiles)


def _as(wider: Parameter, factor: float, by: float = 0.0) -> Parameter:
    """Return a wider level's parameter as it would be here: times a factor, and moved."""
    if factor == 1 and not by:
        return wider
    return replace(wider, value=max(0.0, wider.value * factor + by))


def _scaled(sample: Sample | None, factor: float, by: float = 0.0) -> Sample | None:
    """Return a sample of values times a factor, and moved."""
    if sample is None:
        return None
    value, *quartiles = (
        None if part is None else part * factor + by
        for part in (
            sample.value,
            sample.median,
            sample.lower_quartile,
            sample.upper_quartile,
        )
    )
    return Sample(sample.observations, value or 0.0, *quartiles)


def _among(samples: Iterable[Sample | None], full: float) -> Sample | None:
    return among_groups([sample for sample in samples if sample], full)


def _tokens_among(groups: Collection[TokenSamples]) -> TokenSamples:
    return TokenSamples(
        _among((group.first_context for group in groups), FIRST_CONTEXT_FULL),
        _among((group.growth for group in groups), GROWTH_FULL),
        _among((group.first_growth for group in groups), FIRST_GROWTH_FULL),
        _among((group.misses for group in groups), MISS_FULL),
    )


def _sessions_among(groups: Collection[SessionSamples]) -> SessionSamples:
    resumed = _among((group.resume_probability for group in groups), RESUME_FULL)
    known = [group.pauses for group in groups if group.pauses and group.pauses.resumed]
    weights = [one.resumed / (one.resumed + PAUSE_FULL) for one in known]
    survival = np.zeros(len(PAUSE_SECONDS))
    if known:
        survival = np.average([one.survival for one in known], axis=0, weights=weights)
    count = sum(one.resumed for one in known)
    together = Pauses(resumed.observations, count, resumed.value, survival) if resumed else None
    return SessionSamples(
        together,
        _among((group.gap_seconds for group in groups), GAP_FULL),
        _among((group.requests_after_turn for group in groups), AFTER_FULL),
    )


def _compactions_among(
    strategy: str, groups: Iterable[Group], prefix_tokens: float
) -> CompactionSamples:
    """Return what all roles' compactions would have left with a prefix of so many tokens."""
    seen = [group.compactions[strategy] for group in groups if strategy in group.compactions]
    context = _among((one.context_after for one in seen), SIZE_FULL)
    cached = _among((one.cached_after for one in seen), CACHED_FULL)
    if strategy == DEFAULT_STRATEGY:
        excess = _among((one.excess for one in seen), SIZE_FULL)
        kept_share = _among((one.kept_share for one in seen), CACHED_FULL)
        context = _scaled(excess, 1.0, prefix_tokens / KEPT_SHARE) or context
        cached = _scaled(kept_share, prefix_tokens / KEPT_SHARE) or cached
    return CompactionSamples(
        context_after=context,
        cached_after=cached,
        summary_output=_among((one.summary_output for one in seen), SIZE_FULL),
        rework=_among((one.rework for one in seen), REWORK_FULL),
        calls=next((one.calls for one in seen if one.calls), {}),
    )
