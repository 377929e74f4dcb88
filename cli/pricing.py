"""Whose prices an audit goes by: each compaction's own model's, another one's, or weights."""

from datetime import UTC, datetime

from backtest.audit import Pricing
from cli.weights import weights_of
from compactuary.errors import InputError
from policy.prices import GenaiPriceBook
from policy.weights import weights_from

__all__ = ["check_one_price", "pricing_of"]


def pricing_of(model: str | None, weight: list[str] | None) -> Pricing:
    """Return the prices that ``--model`` and ``--weight`` ask for.

    Raises
    ------
    InputError
        If both are given, or a weight is wrong.
    UnknownPriceError
        If no price is known for the model: of it alone nothing could be told. Where none is named,
        a compaction whose own model is unpriced stays in the report, as such.
    """
    check_one_price(model, weight)
    weights = weights_of(weight)
    if weights is None:
        book = GenaiPriceBook()
        if model is not None:
            book.prices(model, at=datetime.now(UTC), context_tokens=0)
        return Pricing(book, model)
    return Pricing(GenaiPriceBook(), weights=weights_from(weights))


def check_one_price(model: str | None, weight: list[str] | None) -> None:
    """Refuse a model beside weights.

    Raises
    ------
    InputError
        If both are given.
    """
    if model is not None and weight:
        raise InputError(
            "weights stand instead of a model's prices",
            where="--model, --weight",
            value=model,
            remedy="Give one of them",
        )
