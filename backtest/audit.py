"""The audit: what each past compaction cost and saved, and whether it paid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median
from typing import Literal, NamedTuple

from backtest.compaction_cases import CLEAR, CompactionCase, Remaining
from backtest.context_lines import MadeRequest
from compactuary.errors import InputError, UnknownPriceError
from policy.cache_state import CacheState
from policy.cost import CostTerms, compaction_terms
from policy.prices import PriceBook, Prices
from policy.sizes import PREFIX_TOKENS, SUMMARY_OUTPUT_TOKENS, Sizes
from policy.summary_call import NO_CALL, SummaryCall, observed_call, shared_prefix_call

__all__ = ["HORIZONS", "Audit", "AuditedCompaction", "Horizon", "Pricing", "audit"]

Horizon = Literal["turn", "session"]
HORIZONS: tuple[Horizon, ...] = ("turn", "session")

#: Caches live for an hour where the request before wrote for so long, else as their price says.
_HOUR_SECONDS = 3_600.0
_SHORT_SECONDS = 300.0
#: What a pause around a compaction is longer by than it would have been: its own call takes so
#: long, read off real ones in mid-turn and rounded.
_CALL_SECONDS = 80.0


@dataclass(frozen=True, slots=True)
class Pricing:
    """Whose prices count.

    Parameters
    ----------
    book : PriceBook
        Asked for each compaction's model at its date.
    model : str, optional
        Asked for instead of every compaction's own.
    weights : Prices, optional
        Counts instead of any price.
    """

    book: PriceBook
    model: str | None = None
    weights: Prices | None = None

    def prices(self, case: CompactionCase, model: str | None, context_tokens: int) -> Prices:
        """Return the prices of a request around a compaction.

        Raises
        ------
        UnknownPriceError
            No price is known, or the log names no model, or no date.
        """
        if self.weights is not None:
            return self.weights
        name = self.model or model
        if name is None or case.at_ms is None:
            raise UnknownPriceError(
                "the log does not tell it",
                where="model" if name is None else "date",
                remedy="Name one with --model, or give weights with --weight",
            )
        provider = None if self.model else case.provider
        at = datetime.fromtimestamp(case.at_ms / 1_000, UTC)
        return self.book.prices(name, provider, at=at, context_tokens=context_tokens)


@dataclass(frozen=True, slots=True)
class AuditedCompaction:
    """A compaction with its verdict; amounts in base tokens of its own model.

    Parameters
    ----------
    case : CompactionCase
    remaining : Remaining
        Within the horizon.
    terms : CostTerms or None
        Every term of C and s; None where they could not be priced.
    cost_source : {'observed', 'partly_observed', 'modelled', 'no_call'} or None
        Where the cost of its own call is from; partly, where the log tells its input alone.
    saving : float or None
        s, what each counted request cost less; None where X or X′ is not known.
    net : float or None
        n·s − C over the counted requests; of an undecided one what it was when the log stopped.
    verdict : {'paid', 'lost', 'undecided'} or None
        None where it could not be priced.
    rework_cost : float or None
        What the growth of the next requests beyond the usual cost, which n·s − C leaves out;
        None where too few followed.
    dollars_per_token : float or None
        Price of a base token; None where the caller gave weights.
    problem : str
        Why it could not be priced; empty where it was.
    """

    case: CompactionCase
    remaining: Remaining
    terms: CostTerms | None = None
    cost_source: str | None = None
    saving: float | None = None
    net: float | None = None
    verdict: str | None = None
    rework_cost: float | None = None
    dollars_per_token: float | None = None
    problem: str = ""

    @property
    def cost(self) -> float | None:
        """C; without any request after it nothing was cached again, and the call alone counts."""
        if self.terms is None:
            return None
        terms = self.terms
        if not self.remaining.counted_requests:
            return terms.read + terms.uncached + terms.output
        return terms.cost

    @property
    def break_even(self) -> float | None:
        """C/s in requests; None where nothing is saved, or not known."""
        if self.cost is None or not self.saving or self.saving <= 0:
            return None
        return self.cost / self.saving

    @property
    def idle(self) -> bool:
        """Whether it was made between turns, by hand, or after its cache had expired."""
        return self.case.between_turns or self.case.trigger == "manual" or self.after_pause

    @property
    def after_pause(self) -> bool:
        """Whether the cache had expired before it was made."""
        return _expired(self.case, self.case.pause_before_seconds, None)


class Audit(NamedTuple):
    """Compactions with their verdicts, and what stood in for what the logs do not tell.

    Parameters
    ----------
    horizon : {'turn', 'session'}
    compactions : tuple of AuditedCompaction
        By time.
    summary_output_tokens : float
        S + R of the calls that were modelled.
    summaries_seen : int
        How many believed calls that is the median of; 0 where it is assumed.
    """

    horizon: Horizon
    compactions: tuple[AuditedCompaction, ...]
    summary_output_tokens: float
    summaries_seen: int


def audit(cases: Sequence[CompactionCase], pricing: Pricing, horizon: Horizon = "turn") -> Audit:
    """Judge compactions.

    Parameters
    ----------
    cases : sequence of CompactionCase
    pricing : Pricing
    horizon : {'turn', 'session'}
        Whether what followed counts up to the end of the turn, or of the session.

    Raises
    ------
    InputError
        There is no such horizon.

    Notes
    -----
    Reference: the model, §3. Paid where n·s > C over the requests that were seen; lost where it
    is not and no more could come, or nothing is saved; else undecided.
    """
    if horizon not in HORIZONS:
        raise InputError(
            "no such horizon", where="horizon", value=horizon, remedy="Choose turn or session"
        )
    outputs = [case.call.output for case in cases if case.call and case.call.output is not None]
    output = median(outputs) if outputs else float(SUMMARY_OUTPUT_TOKENS)
    judged = tuple(_judged(case, pricing, horizon, round(output)) for case in cases)
    return Audit(horizon, judged, output, len(outputs))


def _judged(
    case: CompactionCase, pricing: Pricing, horizon: Horizon, summary_output_tokens: int
) -> AuditedCompaction:
    remaining = case.in_turn if horizon == "turn" else case.in_session
    context = case.context_before
    if context is None:
        return AuditedCompaction(
            case, remaining, problem="the log does not tell the context before it"
        )
    try:
        prices = pricing.prices(case, case.model, context)
        after = case.context_after
        prices_after = prices if after is None else pricing.prices(case, case.model, after)
        call, source = _call(case, context, prices, pricing, summary_output_tokens)
    except UnknownPriceError as error:
        return AuditedCompaction(case, remaining, problem=str(error))
    state = _state(case, remaining)
    terms = _terms(case, call, context, (prices, prices_after), state)
    dollars = prices.dollars_per_million.get("input")
    priced = AuditedCompaction(
        case,
        remaining,
        terms,
        source,
        saving=None if after is None else terms.saving,
        rework_cost=_rework_cost(
            case, remaining, state, prices_after, _level(prices, prices_after)
        ),
        dollars_per_token=None if dollars is None else dollars / 1e6,
    )
    return _with_verdict(priced)


def _with_verdict(priced: AuditedCompaction) -> AuditedCompaction:
    requests, cost, saving = priced.remaining.counted_requests, priced.cost, priced.saving
    assert cost is not None  # noqa: S101 - it was just priced
    net = requests * (saving or 0.0) - cost
    hopeless = priced.remaining.final or (saving is not None and saving <= 0)
    # What the next one replaced before any request, without a call of its own, did nothing.
    if net > 0 and requests:
        verdict = "paid"
    elif hopeless and (requests or cost):
        verdict = "lost"
    else:
        verdict = "undecided"
    return replace(priced, net=net, verdict=verdict)


def _expired(case: CompactionCase, pause: float | None, prices: Prices | None) -> bool:
    """Say whether the cache of the request before would have expired over a pause."""
    if pause is None:
        return False
    told = prices.cache_ttl_seconds if prices else None
    life = _SHORT_SECONDS if told is None else float(told)
    if case.before is not None and case.before.written_1h:
        life = _HOUR_SECONDS
    return pause - (0.0 if case.strategy == CLEAR else _CALL_SECONDS) > life


def _call(
    case: CompactionCase,
    context_tokens: int,
    prices: Prices,
    pricing: Pricing,
    summary_output_tokens: int,
) -> tuple[SummaryCall, str]:
    """Return what its own call cost, and where that is from."""
    if case.strategy == CLEAR:
        return NO_CALL, "no_call"
    if case.call is None:
        sizes = Sizes(context_tokens, summary_output_tokens=summary_output_tokens)
        cold = _expired(case, case.pause_before_seconds, prices)
        state = CacheState("after_pause" if cold else "warm")
        return shared_prefix_call(sizes, prices, state), "modelled"
    told = case.call
    others = prices
    if told.model and told.model != case.model:
        sent = told.uncached + told.cache_read + told.written_5m + told.written_1h
        others = pricing.prices(case, told.model, sent)
    used = observed_call(
        others,
        read_tokens=told.cache_read,
        uncached_tokens=told.uncached,
        written_5m_tokens=told.written_5m,
        written_1h_tokens=told.written_1h,
        output_tokens=summary_output_tokens if told.output is None else told.output,
    )
    level = _level(prices, others)
    scaled = SummaryCall(
        used.read * level, used.uncached * level, used.output * level, used.revives_prefix
    )
    return scaled, "partly_observed" if told.output is None else "observed"


def _state(case: CompactionCase, remaining: Remaining) -> CacheState:
    """Return for how long was cached, and the share q of counted requests that found nothing."""
    hour = any(made is not None and made.written_1h for made in (case.first, case.before))
    missed = remaining.missed / max(remaining.counted_requests, 1)
    return CacheState("warm", "1h" if hour else "5m", missed)


def _terms(
    case: CompactionCase,
    call: SummaryCall,
    context_tokens: int,
    levels: tuple[Prices, Prices],
    state: CacheState,
) -> CostTerms:
    """Return C and s; what the first request paid, and had to pay, as it was seen."""
    prices, prices_after = levels
    first = case.first
    after = context_tokens if case.context_after is None else case.context_after
    sizes = Sizes(context_tokens, after, min(PREFIX_TOKENS, after))
    later = None if prices_after is prices else prices_after
    terms = compaction_terms(call, sizes, prices, later, state)
    if case.context_after is None:
        return replace(terms, recache=0.0)
    if first is None:
        return terms
    cold = _expired(case, case.pause_seconds, prices)
    # What survived the pause on the short context would have survived it on the long one.
    gone = max(context_tokens - first.cache_read, 0) if cold else 0
    return replace(
        terms,
        recache=_level(prices, prices_after) * _surcharge(first, prices_after),
        recache_avoided=(state.write_weight(prices) - prices.cache_read) * gone,
    )


def _rework_cost(
    case: CompactionCase, remaining: Remaining, state: CacheState, prices: Prices, level: float
) -> float | None:
    """Return what L costs: written once, and read by every counted request after that."""
    if case.rework_tokens is None:
        return None
    read = state.read_weight(prices)
    each = state.write_weight(prices) + read * (remaining.counted_requests - 1)
    return level * max(case.rework_tokens, 0.0) * each


def _surcharge(first: MadeRequest, prices: Prices) -> float:
    """Return what a request cost beyond reading all of its context from the cache."""
    read = prices.cache_read
    return (
        (1.0 - read) * first.uncached
        + (prices.cache_write_5m - read) * first.written_5m
        + (prices.cache_write_1h - read) * first.written_1h
    )


def _level(prices: Prices, others: Prices) -> float:
    """Return the others' base price ÷ the base price; 1 where the caller gave weights."""
    own, other = (one.dollars_per_million.get("input") for one in (prices, others))
    return other / own if own and other else 1.0
