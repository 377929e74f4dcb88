"""The quote: what a compaction costs and saves for one question, and what was assumed for it."""

from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, cast

from compactuary.errors import UnknownPriceError
from policy.cache_state import CacheState, Moment, Ttl
from policy.cost import CostTerms, compaction_terms
from policy.inputs import Inputs, inputs_of
from policy.parameters import Parameters
from policy.prices import PriceBook, Prices
from policy.question import KINDS, Question, missing_context, missing_model
from policy.sizes import Sizes
from policy.summary_call import (
    NO_CALL,
    SummaryCall,
    observed_call,
    separate_call,
    shared_prefix_call,
)
from policy.weights import weights_from

__all__ = ["Pause", "Quote", "quote", "quotes"]

_STRATEGY_OF = {
    "summary": "summary",
    "separate": "summary",
    "clear": "clear",
    "server_side": "server_side",
}
_TTL_SECONDS = {"5m": 300, "1h": 3600, "12h": 43_200}
# What each kind's cost depends on beside the context after it.
_SIZES_OF = {
    "summary": ("prefix_tokens", "summary_output_tokens", "instruction_tokens"),
    "separate": ("prefix_tokens", "summary_output_tokens", "instruction_tokens"),
    "clear": ("prefix_tokens",),
    "server_side": ("prefix_tokens", "summary_output_tokens"),
}


class Pause(NamedTuple):
    """What is expected of the time before the next request.

    Parameters
    ----------
    resumed : float
        Probability that there is a next request at all: 1 within a turn, q_s after it.
    cold : float
        Probability p_c that it then finds the cache expired.
    ttl_seconds : float
        Time to live of the cached context.
    expired : bool
        Whether the cache has expired already, so that a compaction made now can't read it.
    """

    resumed: float
    cold: float
    ttl_seconds: float
    expired: bool = False


class Quote(NamedTuple):
    """C and s of one compaction, in base tokens, with where they are from.

    Parameters
    ----------
    kind : {'summary', 'separate', 'clear', 'server_side'}
        What makes the new context.
    cost, saving : float
        C, and s per remaining request.
    terms : CostTerms or None
        The terms of whatever was computed; None where the caller gave both.
    sizes : Sizes or None
        The token counts they were computed from.
    prices, prices_after : Prices or None
        The weights they were computed with, before and after the compaction.
    window_tokens : int or None
        What the model can hold; None where nobody says.
    inputs : Inputs
        What was given, learned and assumed about the compaction and the requests to come.
    pause : Pause
        When the next request is expected.
    used : tuple of str
        Names of the inputs that the figures depend on.
    assumed_weights : tuple of str
        Names of the weights that a fallback filled in.
    """

    kind: str
    cost: float
    saving: float
    terms: CostTerms | None
    sizes: Sizes | None
    prices: Prices | None
    prices_after: Prices | None
    window_tokens: int | None
    inputs: Inputs
    pause: Pause
    used: tuple[str, ...] = ()
    assumed_weights: tuple[str, ...] = ()

    @property
    def learned(self) -> tuple[str, ...]:
        """Names of the inputs used that the ledger taught."""
        return self.inputs.learned(self.used)

    @property
    def assumed(self) -> tuple[str, ...]:
        """Names of the inputs used that a default stood in for."""
        return self.inputs.assumed(self.used) + self.assumed_weights

    @property
    def crosses_cliff(self) -> bool:
        """Whether another price level holds after the compaction than before."""
        before, after = self.prices, self.prices_after
        if before is None or after is None or before is after:
            return False
        return before.dollars_per_million != after.dollars_per_million


def quote(question: Question, price_book: PriceBook, known: Parameters, *, at: datetime) -> Quote:
    """Return cost and saving for a valid question, looking up prices only where needed.

    Parameters
    ----------
    question : Question
        What was asked. Weights go before the model's prices; a cost or saving that is given
        goes before both.
    price_book : PriceBook
        Asked, for the time `at`, only if cost or saving has to be computed without weights.
    known : Parameters
        What the ledger teaches about the role.

    Raises
    ------
    InputError
        A weight is wrong; an UnknownPriceError where no price is known.

    Notes
    -----
    Reference: the model, §3. At the end of a turn, and while idle, the next request comes only
    with probability q_s: what it would pay is weighed by that.
    """
    of_kind = _STRATEGY_OF[question.kind]
    inputs = inputs_of(question, known, question.strategy or of_kind, of_kind)
    cost, saving = question.cost, question.saving
    if cost is not None and saving is not None:
        window, ttl = _window(question, price_book, at)
        pause = _pause(question, inputs, ttl)
        none = (None, None, None, None)
        return Quote(question.kind, float(cost), float(saving), *none, window, inputs, pause)
    if question.context_tokens is None:
        raise missing_context()
    sizes = _sizes(question.context_tokens, inputs)
    prices, prices_after = _prices(question, sizes, price_book, at)
    pause = _pause(question, inputs, prices.cache_ttl_seconds)
    call = _call(question, price_book, sizes, prices, pause, known, inputs, at)
    terms = _terms(question, call, sizes, prices, prices_after, pause, inputs)
    return Quote(
        question.kind,
        terms.cost if cost is None else float(cost),
        terms.saving if saving is None else float(saving),
        terms,
        sizes,
        prices,
        prices_after,
        prices.context_window if question.window_tokens is None else question.window_tokens,
        inputs,
        pause,
        _used(question),
        tuple(name for name in prices.assumed if name in _weights_used(question)),
    )


def quotes(
    question: Question, price_book: PriceBook, known: Parameters, *, at: datetime
) -> tuple[Quote, ...]:
    """Return a quote for every kind of compaction that can be quoted, in no order.

    Parameters
    ----------
    question, price_book, known, at
        As of `quote`. What the question says of one kind's sizes does not hold for the others,
        so only the kind asked takes them.

    Notes
    -----
    'separate' needs the question's `summary_model`; 'server_side' needs usage of such compactions
    in the ledger, and 'clear' the context that one leaves, given or learned.
    """
    made = []
    for kind in KINDS:
        asked = question
        if kind != question.kind:
            asked = replace(question, kind=kind, cost=None, saving=None, strategy=None)
            if {kind, question.kind} != {"summary", "separate"}:
                asked = _ungiven(asked)
        if kind == question.kind or _quotable(asked, known):
            made.append(quote(asked, price_book, known, at=at))
    return tuple(made)


def _ungiven(question: Question) -> Question:
    """Return a question that leaves all sizes to what was learned of its kind."""
    return replace(
        question,
        context_after_tokens=None,
        prefix_tokens=None,
        summary_output_tokens=None,
        rework_tokens=None,
    )


def _quotable(question: Question, known: Parameters) -> bool:
    if question.context_tokens is None or (question.model is None and question.weights is None):
        return False
    seen = known.compactions.get(question.kind)
    if question.kind == "separate":
        return question.summary_model is not None
    if question.kind == "clear":
        return seen is not None and seen.context_after_tokens.source != "assumed"
    if question.kind == "server_side":
        return seen is not None and bool(seen.observed_call)
    return True


def _sizes(context_tokens: int, inputs: Inputs) -> Sizes:
    return Sizes(
        context_tokens,
        inputs.context_after_tokens,
        inputs.prefix_tokens,
        inputs.summary_output_tokens,
        inputs.instruction_tokens,
    )


def _pause(question: Question, inputs: Inputs, ttl_seconds: int | None) -> Pause:
    """Return what comes before the next request, at each moment a question may be asked."""
    ttl: float = _TTL_SECONDS[question.ttl]
    if question.ttl == "5m" and ttl_seconds is not None:
        ttl = ttl_seconds
    idle = question.idle_seconds
    if question.at == "resume":
        expired = idle is None or idle >= ttl
        return Pause(1.0, float(expired), ttl, expired)
    if question.at == "call":
        return Pause(1.0, 0.0, ttl)
    waited = idle or 0.0
    return Pause(inputs.resumed(waited), inputs.cold_probability(ttl, waited), ttl, waited >= ttl)


def _call(
    question: Question,
    price_book: PriceBook,
    sizes: Sizes,
    prices: Prices,
    pause: Pause,
    known: Parameters,
    inputs: Inputs,
    at: datetime,
) -> SummaryCall:
    """Return what the compaction's own call costs."""
    moment = "after_pause" if pause.expired else "warm"
    state = _state(moment, question.ttl, inputs.miss_probability)
    if question.kind == "clear":
        return NO_CALL
    if question.kind == "separate":
        sent = sizes.context_tokens
        other = price_book.prices(
            cast(str, question.summary_model), None, at=at, context_tokens=sent
        )
        return separate_call(sizes, prices, other, state)
    seen = known.compaction("server_side").observed_call if question.kind == "server_side" else None
    if seen:
        tokens = {"output_tokens": sizes.summary_output_tokens}
        tokens |= {name: round(count) for name, count in seen.items()}
        return observed_call(prices, **tokens)
    return shared_prefix_call(sizes, prices, state)


def _terms(
    question: Question,
    call: SummaryCall,
    sizes: Sizes,
    prices: Prices,
    prices_after: Prices | None,
    pause: Pause,
    inputs: Inputs,
) -> CostTerms:
    """Return C and s, with what the next request pays weighed by whether and how it comes."""

    def in_state(moment: Moment) -> CostTerms:
        return compaction_terms(
            call,
            sizes,
            prices,
            prices_after,
            _state(moment, question.ttl, inputs.miss_probability),
            rework_tokens=inputs.rework_tokens,
            quality_cost=question.quality_cost,
        )

    if pause.expired:
        cold = in_state("after_pause")
        return cold if pause.resumed == 1 else _weighed(cold, cold, pause.resumed, 1.0)
    warm = in_state("warm")
    if pause.resumed == 1 and not pause.cold:
        return warm
    return _weighed(warm, in_state("before_pause"), pause.resumed, pause.cold)


@lru_cache(maxsize=1024)
def _state(moment: Moment, ttl: str, miss_probability: float) -> CacheState:
    """Return a state, checked once: every decision asks for one of a few."""
    return CacheState(moment, cast(Ttl, ttl), miss_probability)


def _weighed(warm: CostTerms, cold: CostTerms, resumed: float, cold_share: float) -> CostTerms:
    """Blend what the next request pays on a warm and on a cold cache, by probabilities."""
    on_warm, on_cold = resumed * (1.0 - cold_share), resumed * cold_share
    return replace(
        warm,
        recache=on_warm * warm.recache + on_cold * cold.recache,
        recache_avoided=on_cold * cold.recache_avoided,
        rework=on_warm * warm.rework + on_cold * cold.rework,
    )


def _window(
    question: Question, price_book: PriceBook, at: datetime
) -> tuple[int | None, int | None]:
    """Return window and time to live for a question that needs no price."""
    context, model = question.context_tokens, question.model
    if question.window_tokens is not None or context is None or model is None:
        return question.window_tokens, None
    try:
        prices = price_book.prices(model, question.provider, at=at, context_tokens=context)
    except UnknownPriceError:
        # No price is asked for here, and the answer's `assumed` names the missing window.
        return None, None
    return prices.context_window, prices.cache_ttl_seconds


def _used(question: Question) -> tuple[str, ...]:
    """Return names of the inputs that a question's cost and saving depend on."""
    sizes = _SIZES_OF[question.kind] if question.cost is None else ()
    after = ("resume_probability", "requests_after_turn")
    return (
        "context_after_tokens",
        *sizes,
        "rework_tokens",
        "miss_probability",
        *(after if question.at in ("turn_end", "idle") else ()),
    )


def _weights_used(question: Question) -> tuple[str, ...]:
    """Return names of the weights in play: of writes, those of one time to live alone."""
    write = {"5m": "weights.cache_write", "1h": "weights.cache_write_1h"}
    return ("weights.cache_read", write.get(question.ttl, ""))


def _prices(
    question: Question, sizes: Sizes, price_book: PriceBook, at: datetime
) -> tuple[Prices, Prices | None]:
    """Return the prices before the compaction, and after it where a cliff may lie between."""
    if question.weights is not None:
        return weights_from(question.weights), None
    model, provider = question.model, question.provider
    if model is None:
        raise missing_model()
    before = price_book.prices(model, provider, at=at, context_tokens=sizes.context_tokens)
    after = price_book.prices(model, provider, at=at, context_tokens=sizes.context_after_tokens)
    return before, after
