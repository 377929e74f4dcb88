"""Prices of a model at a time and context size, as weights relative to its base input price."""

import importlib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from compactuary.errors import InputError, MissingExtraError, UnknownPriceError
from policy.listed_prices import WEIGHTS, Listing, cliffs_of, completed, listed_dollars, with_facts
from policy.price_overlay import PriceOverlay, bundled_rows, user_file, user_rows

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

__all__ = ["GenaiPriceBook", "PriceBook", "Prices"]

#: What is known of a model's cache beside the weights.
CACHE_FACTS = (
    "cache_write_12h",
    "cache_ttl_seconds",
    "cache_policy",
    "cache_clock",
    "minimum_cacheable_tokens",
    "cache_storage_dollars",
)

_TOLD = (*CACHE_FACTS, "context_window")

# No published price window begins within a quarter of an hour.
_SLOT_SECONDS = 900
_CACHE_ENTRIES = 4096

# Quarter of an hour, band between cliffs, and the price context.
_Key = tuple[int, int, frozenset[tuple[str, str]] | None]


@dataclass(frozen=True, slots=True)
class Prices:
    """What one model's tokens cost, in base tokens and in dollars.

    Parameters
    ----------
    model, provider : str
        As the price source names them; 'caller' for weights given by the caller.
    cache_read : float
        Weight r of a token read from the prompt cache.
    cache_write_5m, cache_write_1h : float
        Weight w of a token written to the cache for 5 (or 30) minutes, and for an hour. 1 where
        no write fee is charged: the token is then plain input that is cached as well.
    output : float
        Weight o of an output token.
    dollars_per_million : mapping of str to float
        Dollars per million tokens, under the names of the weights; empty for caller's weights.
    context_window : int or None
        Tokens the model can hold; None where the source does not say.
    source : str
        Where the prices are from, such as 'genai-prices 0.2.3', or 'caller'.
    as_of : str or None
        ISO date the prices hold at; None for caller's weights.
    input : float
        Weight of an uncached input token: always 1, the base token.
    assumed : tuple of str
        Names of the weights that the source lacks and a fallback filled in.
    cache_write_12h : float or None
        Weight of a token written to the cache for 12 hours; None where that can't be bought, or
        nobody says its price.
    cache_ttl_seconds : int or None
        How long a cached prefix lives at the 5 min (or 30 min) weight; None where nothing is
        promised.
    cache_policy : {'refresh', 'fixed', 'evict'} or None
        Whether a hit renews the time to live, or not, or the prefix may go at any time.
    cache_clock : {'request', 'response', 'unknown'} or None
        When the time to live begins to run: at the start of a request or of its response.
    minimum_cacheable_tokens : int or None
        A shorter prefix is not cached, without a word.
    cache_storage_dollars : float or None
        What an explicit cache costs, in dollars per million tokens and hour.
    overlay_sources : mapping of str to str
        Who says so, for every value that the price source itself does not have.
    """

    model: str
    provider: str
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float
    output: float
    dollars_per_million: Mapping[str, float]
    context_window: int | None
    source: str
    as_of: str | None
    input: float = 1.0
    assumed: tuple[str, ...] = ()
    cache_write_12h: float | None = None
    cache_ttl_seconds: int | None = None
    cache_policy: str | None = None
    cache_clock: str | None = None
    minimum_cacheable_tokens: int | None = None
    cache_storage_dollars: float | None = None
    overlay_sources: Mapping[str, str] = field(default_factory=dict)

    def as_payload(self) -> dict[str, Any]:
        """Return the prices as plain JSON values."""
        return {
            "model": self.model,
            "provider": self.provider,
            "weights": {name: getattr(self, name) for name in WEIGHTS},
            "dollars_per_million": dict(self.dollars_per_million),
            "source": self.source,
            "as_of": self.as_of,
            "context_window": self.context_window,
            "assumed": list(self.assumed),
            "cache": {name: getattr(self, name) for name in CACHE_FACTS},
            "overlay_sources": dict(self.overlay_sources),
        }


class PriceBook(Protocol):
    """Whatever knows prices by model, provider, time and context size."""

    def prices(
        self,
        model: str,
        provider: str | None,
        *,
        at: datetime,
        context_tokens: int,
        price_context: Mapping[str, str] | None = None,
    ) -> Prices:
        """Return the prices of a request of `context_tokens` in total, made at `at`.

        `price_context` names a service tier, a speed or a kind of processing that has prices of
        its own; None is the standard.

        Raises
        ------
        UnknownPriceError
            No price is known; never answered with 0.
        """
        ...


class GenaiPriceBook:
    """The prices bundled with genai-prices: dated, offline, never updated over a network.

    A price cliff applies to the whole request, and begins where the total context is strictly
    larger than its start. Times of day and start dates of prices are honoured. A missing read
    price counts as input (that is how it is billed); a missing write price, or one below input,
    as 1; a missing 1 h price as twice the input where a write fee is charged. Every such fallback
    is named in `Prices.assumed`, except for the plain absence of a write fee.

    What genai-prices lacks is filled in from a bundled overlay (`policy.price_overlay`); a user's
    price file goes before both, and its dollars hold for every context size and service tier.

    Parameters
    ----------
    price_file : Path, optional
        The user's price file; the one that ``COMPACTUARY_PRICES`` names when left out. It is read
        once, here.

    Raises
    ------
    MissingExtraError
        genai-prices is not installed.
    InputError
        The price file can't be read, or something in it is wrong.
    """

    def __init__(self, price_file: Path | None = None) -> None:
        try:
            package = importlib.import_module("genai_prices")
            data = importlib.import_module("genai_prices.data_snapshot")
        except ImportError as error:
            raise MissingExtraError(
                "prices by model name need genai-prices",
                remedy="Install compactuary[analysis], or give weights, or cost and saving",
            ) from error
        self._data: DataSnapshot = data.get_snapshot()
        self._source = f"genai-prices {package.__version__}"
        self._listings: dict[tuple[str, str | None], tuple[Listing, dict[_Key, Prices]]] = {}
        rows, file = bundled_rows(), price_file or user_file()
        if file is not None:
            known = {one.id: [model.id for model in one.models] for one in self._data.providers}
            rows += user_rows(file, known)
        self._price_file = file.name if file else None
        self._overlay = PriceOverlay(rows)

    def prices(
        self,
        model: str,
        provider: str | None = None,
        *,
        at: datetime,
        context_tokens: int,
        price_context: Mapping[str, str] | None = None,
    ) -> Prices:
        """Return the prices of one request; a repeated look-up reads memory only.

        Parameters
        ----------
        model : str
            A name or alias.
        provider : str, optional
            Who bills for it; found by the model's name when left out.
        at : datetime
            When the request is made, with a time zone.
        context_tokens : int
            Total input of the request, cached or not.
        price_context : mapping of str to str, optional
            Such as ``{"service_tier": "flex"}``, ``{"speed": "fast"}`` or
            ``{"processing": "batch"}``. Standard prices when left out.

        Raises
        ------
        UnknownPriceError
            The model, the provider, an input or output price of it, or a price for an entry of
            `price_context`, is unknown.
        InputError
            `at` has no time zone.
        """
        listing, priced = self._listings.get((model, provider)) or self._list(model, provider)
        if at.tzinfo is None:
            raise InputError("has no time zone", where="at", value=at, remedy="Give a UTC time")
        key = (
            int(at.timestamp()) // _SLOT_SECONDS,
            bisect_left(listing.cliffs, context_tokens),
            frozenset(price_context.items()) if price_context else None,
        )
        known = priced.get(key)
        if known is not None:
            return known
        if len(priced) >= _CACHE_ENTRIES:
            priced.clear()
        listed = listed_dollars(listing, at, context_tokens, price_context)
        found = self._priced(listing, listed, at)
        priced[key] = found
        return found

    def _list(self, model: str, provider: str | None) -> tuple[Listing, dict[_Key, Prices]]:
        owner = self._overlay.new_model(model, provider)
        if owner is not None:
            listing = Listing(owner, model, None, ())
        else:
            try:
                found, info = self._data.find_provider_model(model, None, provider, None)
            except LookupError as error:
                raise _unknown(model, provider, "no price is known for this model") from error
            listing = Listing(found.id, info.id, info, cliffs_of(info))
        if len(self._listings) >= _CACHE_ENTRIES:
            self._listings.clear()
        entry = self._listings[model, provider] = (listing, {})
        return entry

    def _priced(self, listing: Listing, listed: dict[str, Decimal], at: datetime) -> Prices:
        day = at.astimezone(UTC).date()
        window = None if listing.info is None else listing.info.context_window
        known = {*listed, "context_window"} if window else listed.keys()
        facts = {
            name: fact
            for name, fact in self._overlay.facts(listing.provider, listing.model, day).items()
            if fact.overrides or name not in known
        }
        dollars = with_facts(listed, facts)
        for name in ("input", "output"):
            if name not in dollars:
                problem = f"no {name} price is known"
                raise _unknown(listing.model, listing.provider, problem)
        dollars, assumed = completed(dollars)
        weights = {name: float(dollars[name] / dollars["input"]) for name in WEIGHTS}
        told: dict[str, Any] = {name: facts[name].value for name in _TOLD if name in facts}
        overridden = any(fact.overrides for fact in facts.values())
        return Prices(
            model=listing.model,
            provider=listing.provider,
            dollars_per_million={name: float(dollars[name]) for name in WEIGHTS},
            source=f"{self._source}, {self._price_file}" if overridden else self._source,
            as_of=day.isoformat(),
            assumed=assumed,
            overlay_sources={name: fact.source for name, fact in facts.items()},
            **({"context_window": window} | weights | told),
        )


def _unknown(model: str, provider: str | None, problem: str) -> UnknownPriceError:
    whose = "" if provider is None else f" with provider {provider!r}"
    return UnknownPriceError(
        problem + whose,
        where="model",
        value=model,
        remedy="Check its spelling, name its provider, give weights where they are taken, or put "
        "its prices into the file that COMPACTUARY_PRICES names (docs/prices.md)",
    )
