"""The dollars that genai-prices lists for one request, and what fills their gaps."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from compactuary.errors import UnknownPriceError
from policy.price_overlay import Fact

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, TieredPrices

__all__ = [
    "WEIGHTS",
    "Listing",
    "cliffs_of",
    "completed",
    "hour_weight",
    "listed_dollars",
    "with_facts",
]

#: Names of the weights, as an answer shows them.
WEIGHTS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")

# Every 1 h write price published by November 2026 is twice the input price; billing a 1 h write
# at the 5 min price is a known accounting error.
HOUR_WRITE_WEIGHT = 2.0


@dataclass(frozen=True, slots=True)
class Listing:
    """One model, with where its price cliffs are; only a price file knows one without info."""

    provider: str
    model: str
    info: "ModelInfo | None"
    cliffs: tuple[int, ...]


def listed_dollars(
    listing: Listing,
    at: datetime,
    context_tokens: int,
    price_context: Mapping[str, str] | None,
) -> dict[str, Decimal]:
    """Return the listed dollars of a request, by class of token, as far as there are any."""
    if price_context:
        _check_context(listing, at, price_context)
    if listing.info is None:
        return {}
    prices = listing.info.get_prices(at, price_context)
    classes = {
        "input": prices.input_mtok,
        "cache_read": prices.cache_read_mtok,
        "cache_write_5m": prices.cache_write_5m_mtok or prices.cache_write_mtok,
        "cache_write_1h": prices.cache_write_1h_mtok,
        "output": prices.output_mtok,
    }
    found = {name: _price(price, context_tokens) for name, price in classes.items()}
    return {name: price for name, price in found.items() if price}


def _check_context(listing: Listing, at: datetime, price_context: Mapping[str, str]) -> None:
    """Refuse what the model has no price for: it would be answered with the standard price."""
    variants = () if listing.info is None else listing.info.price_variants or ()
    priced = {
        pair
        for variant in variants
        if variant.constraint is None or variant.constraint.active(at)
        for pair in variant.when.items()
    }
    for pair in price_context.items():
        if pair not in priced and pair[1] not in _STANDARD:
            known = ", ".join(sorted(f"{name} {value}" for name, value in priced)) or "none"
            raise UnknownPriceError(
                f"has no price on {listing.model} ({listing.provider}) at that time",
                where=f"price_context.{pair[0]}",
                value=pair[1],
                remedy=f"Leave it out for the standard price; known: {known}",
            )


# Names that providers have for the price list itself.
_STANDARD = ("default", "standard")


def with_facts(listed: dict[str, Decimal], facts: Mapping[str, Fact]) -> dict[str, Decimal]:
    """Return dollars with gaps filled, and overridden where a user says so."""
    found = dict(listed)
    for name in WEIGHTS:
        fact = facts.get(f"dollars_per_million.{name}")
        if fact is not None:
            found[name] = Decimal(str(fact.value))
    base = found.get("input")
    for name in WEIGHTS if base else ():
        fact = facts.get(name)
        if base and fact is not None and (fact.overrides or name not in found):
            found[name] = base * Decimal(str(fact.value))
    return found


def hour_weight(write: float) -> tuple[float, tuple[str, ...]]:
    """Return the 1 h write weight where none is listed, and the name of what was assumed."""
    if write <= 1:
        return write, ()
    return max(write, HOUR_WRITE_WEIGHT), ("weights.cache_write_1h",)


def _price(price: "Decimal | TieredPrices | None", context_tokens: int) -> Decimal | None:
    """Return the price that holds for the whole of a request of this size."""
    if price is None or isinstance(price, Decimal):
        return price
    found = price.base
    for tier in price.tiers:
        if context_tokens > tier.start:
            found = tier.price
    return found


def completed(dollars: dict[str, Decimal]) -> tuple[dict[str, Decimal], tuple[str, ...]]:
    """Return dollars of every class, and the names of those that had to be assumed."""
    base, assumed = dollars["input"], list[str]()
    read = dollars.get("cache_read")
    if read is None:
        assumed.append("weights.cache_read")
        read = base
    write = dollars.get("cache_write_5m", base)
    if write < base:
        assumed.append("weights.cache_write")
        write = base
    write_1h = dollars.get("cache_write_1h")
    if write_1h is None:
        weight, names = hour_weight(float(write / base))
        assumed.extend(names)
        write_1h = base * int(HOUR_WRITE_WEIGHT) if weight == HOUR_WRITE_WEIGHT else write
    filled = {"cache_read": read, "cache_write_5m": write, "cache_write_1h": write_1h}
    return dollars | filled, tuple(assumed)


def cliffs_of(info: "ModelInfo") -> tuple[int, ...]:
    """Return every context size, in tokens, beyond which some price of a model changes."""
    dated = info.prices if isinstance(info.prices, list) else None
    listed = [entry.prices for entry in dated] if dated else [info.prices]
    listed += [variant.prices for variant in info.price_variants or ()]
    starts = {
        tier.start
        for prices in listed
        for price in vars(prices).values()
        for tier in getattr(price, "tiers", ())
    }
    return tuple(sorted(starts))
