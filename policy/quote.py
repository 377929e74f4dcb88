"""The quote: what a compaction costs and saves for one question, and what was assumed for it."""

from datetime import datetime
from typing import NamedTuple

from compactuary.errors import UnknownPriceError
from policy.cost import CostTerms, warm_summary
from policy.prices import PriceBook, Prices
from policy.question import Question, missing_context, missing_model
from policy.sizes import CONTEXT_AFTER_TOKENS, Sizes
from policy.weights import weights_from

__all__ = ["Quote", "quote"]

_COST_SIZES = ("prefix_tokens", "summary_output_tokens", "instruction_tokens")


class Quote(NamedTuple):
    """C and s of one compaction, in base tokens, with where they are from.

    Parameters
    ----------
    cost, saving : float
        C, and s per remaining request.
    terms : CostTerms or None
        The terms of whatever was computed; None where the caller gave both.
    sizes : Sizes or None
        The token counts they were computed from.
    prices : Prices or None
        The weights they were computed with.
    window_tokens : int or None
        What the model can hold; None where nobody says.
    assumed : tuple of str
        Names of the inputs that a default stood in for.
    """

    cost: float
    saving: float
    terms: CostTerms | None
    sizes: Sizes | None
    prices: Prices | None
    window_tokens: int | None
    assumed: tuple[str, ...]


def quote(question: Question, price_book: PriceBook, *, at: datetime) -> Quote:
    """Return cost and saving for a valid question, looking up prices only where needed.

    Parameters
    ----------
    question : Question
        What was asked. Weights go before the model's prices; a cost or saving that is given
        goes before both.
    price_book : PriceBook
        Asked, for the time `at`, only if cost or saving has to be computed without weights.

    Raises
    ------
    InputError
        A weight is wrong; an UnknownPriceError where no price is known.
    """
    cost, saving, context = question.cost, question.saving, question.context_tokens
    if cost is not None and saving is not None:
        window = _window(question, price_book, at)
        return Quote(float(cost), float(saving), None, None, None, window, ())
    if context is None:
        raise missing_context()
    after = question.context_after_tokens
    sizes = Sizes(context, CONTEXT_AFTER_TOKENS if after is None else after)
    prices, prices_after = _prices(question, sizes, price_book, at)
    terms = warm_summary(sizes, prices, prices_after)
    assumed: tuple[str, ...] = () if after is not None else ("context_after_tokens",)
    if cost is None:
        assumed += _COST_SIZES
    if prices.assumed:
        assumed += tuple(name for name in prices.assumed if name in _USED_WEIGHTS)
    window = question.window_tokens
    return Quote(
        terms.cost if cost is None else float(cost),
        terms.saving if saving is None else float(saving),
        terms,
        sizes,
        prices,
        prices.context_window if window is None else window,
        assumed,
    )


def _window(question: Question, price_book: PriceBook, at: datetime) -> int | None:
    """Return the window of a question that needs no price, so that the hard limit can act."""
    context, model = question.context_tokens, question.model
    if question.window_tokens is not None or context is None or model is None:
        return question.window_tokens
    try:
        prices = price_book.prices(model, question.provider, at=at, context_tokens=context)
    except UnknownPriceError:
        # No price is asked for here, and the answer's `assumed` names the missing window.
        return None
    return prices.context_window


# A summary on a warm cache is written back for 5 minutes; the 1 h weight plays no part.
_USED_WEIGHTS = ("weights.cache_read", "weights.cache_write")


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
