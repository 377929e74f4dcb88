"""Prices of a model at a time and context size, as weights relative to its base input price."""

import importlib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from compactuary.errors import InputError, MissingExtraError, UnknownPriceError

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

__all__ = ["GenaiPriceBook", "PriceBook", "Prices", "weights_from"]

#: Names of the weights, as an answer shows them.
WEIGHTS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")

# Every 1 h write price published by November 2026 is twice the input price; billing a 1 h write
# at the 5 min price is a known accounting error.
HOUR_WRITE_WEIGHT = 2.0

# No published price window begins within a quarter of an hour.
_SLOT_SECONDS = 900
_CACHE_ENTRIES = 4096


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
        }


class PriceBook(Protocol):
    """Whatever knows prices by model, provider, time and context size."""

    def prices(
        self, model: str, provider: str | None, *, at: datetime, context_tokens: int
    ) -> Prices:
        """Return the prices of a request of `context_tokens` in total, made at `at`.

        Raises
        ------
        UnknownPriceError
            No price is known; never answered with 0.
        """
        ...


@dataclass(slots=True)
class _Listing:
    """One model of the bundled data, with where its price cliffs are."""

    provider: str
    model: "ModelInfo"
    cliffs: tuple[int, ...]
    priced: dict[tuple[int, int], Prices] = field(default_factory=dict)


class GenaiPriceBook:
    """The prices bundled with genai-prices: dated, offline, never updated over a network.

    A price cliff applies to the whole request, and begins where the total context is strictly
    larger than its start. Times of day and start dates of prices are honoured. A missing read
    price counts as input (that is how it is billed); a missing write price, or one below input,
    as 1; a missing 1 h price as twice the input where a write fee is charged. Every such fallback
    is named in `Prices.assumed`, except for the plain absence of a write fee.

    Raises
    ------
    MissingExtraError
        genai-prices is not installed.
    """

    def __init__(self) -> None:
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
        self._listings: dict[tuple[str, str | None], _Listing] = {}

    def prices(
        self, model: str, provider: str | None = None, *, at: datetime, context_tokens: int
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

        Raises
        ------
        UnknownPriceError
            The model, the provider, or an input or output price of it, is unknown.
        InputError
            `at` has no time zone.
        """
        listing = self._listings.get((model, provider)) or self._list(model, provider)
        if at.tzinfo is None:
            raise InputError("has no time zone", where="at", value=at, remedy="Give a UTC time")
        key = (int(at.timestamp()) // _SLOT_SECONDS, bisect_left(listing.cliffs, context_tokens))
        known = listing.priced.get(key)
        if known is not None:
            return known
        if len(listing.priced) >= _CACHE_ENTRIES:
            listing.priced.clear()
        found = self._priced(listing, at, context_tokens)
        listing.priced[key] = found
        return found

    def _list(self, model: str, provider: str | None) -> _Listing:
        try:
            owner, info = self._data.find_provider_model(model, None, provider, None)
        except LookupError as error:
            raise _unknown(model, provider, "no price is known for this model") from error
        if len(self._listings) >= _CACHE_ENTRIES:
            self._listings.clear()
        listing = _Listing(owner.id, info, _cliffs(info))
        self._listings[model, provider] = listing
        return listing

    def _priced(self, listing: _Listing, at: datetime, context_tokens: int) -> Prices:
        info = listing.model
        listed = info.get_prices(at)
        base = _price(listed.input_mtok, context_tokens)
        output = _price(listed.output_mtok, context_tokens)
        if not base or not output:
            missing = "output" if base else "input"
            raise _unknown(info.id, listing.provider, f"no {missing} price is known")
        read, write, write_1h, assumed = _cache_prices(listed, base, context_tokens)
        dollars = {
            "input": base,
            "cache_read": read,
            "cache_write_5m": write,
            "cache_write_1h": write_1h,
            "output": output,
        }
        return Prices(
            model=info.id,
            provider=listing.provider,
            cache_read=float(read / base),
            cache_write_5m=float(write / base),
            cache_write_1h=float(write_1h / base),
            output=float(output / base),
            dollars_per_million={name: float(value) for name, value in dollars.items()},
            context_window=info.context_window,
            source=self._source,
            as_of=at.astimezone(UTC).date().isoformat(),
            assumed=assumed,
        )


def weights_from(weights: Mapping[str, float]) -> Prices:
    """Return caller-supplied weights as prices.

    Parameters
    ----------
    weights : mapping of str to float
        `cache_read`, `output`, and `cache_write` (or `cache_write_5m`) are required.
        `cache_write_1h` defaults to twice the input where a write fee is charged, else to 1.
        `input` defaults to 1; any other positive value rescales all of them, so prices in
        dollars per million may be given as they are listed.

    Raises
    ------
    InputError
        A weight is missing, unknown, negative, not finite, or writes cost less than input.
    """
    _check_names(weights)
    base = _weight(weights, "input") if "input" in weights else 1.0
    if not base:
        raise InputError("must be positive", where="weights.input", value=base, remedy="Give 1")
    name = "cache_write_5m" if "cache_write_5m" in weights else "cache_write"
    write = _write_weight(weights, name, base)
    write_1h, assumed = _hour_weight(write)
    if "cache_write_1h" in weights:
        write_1h, assumed = _write_weight(weights, "cache_write_1h", base), ()
    return Prices(
        model="caller",
        provider="caller",
        cache_read=_weight(weights, "cache_read") / base,
        cache_write_5m=write,
        cache_write_1h=write_1h,
        output=_weight(weights, "output") / base,
        dollars_per_million={},
        context_window=None,
        source="caller",
        as_of=None,
        assumed=assumed,
    )


_NAMES = frozenset(
    ("input", "cache_read", "cache_write", "cache_write_5m", "cache_write_1h", "output")
)
_LARGEST_WEIGHT = 1e6


def _check_names(weights: Mapping[str, float]) -> None:
    if not isinstance(weights, Mapping):
        raise InputError(
            "must be a mapping of names to numbers",
            where="weights",
            value=weights,
            remedy="Give cache_read, cache_write and output",
        )
    for name in weights:
        if name not in _NAMES:
            raise InputError(
                "is not a weight",
                where=f"weights.{name}",
                value=weights[name],
                remedy=f"Known weights: {', '.join(sorted(_NAMES))}",
            )
    if "cache_write" in weights and "cache_write_5m" in weights:
        raise InputError(
            "is given twice, also as weights.cache_write_5m",
            where="weights.cache_write",
            value=weights["cache_write"],
            remedy="Give one of them",
        )


def _weight(weights: Mapping[str, float], name: str) -> float:
    value = weights.get(name)
    if value is None:
        raise InputError(
            "is missing",
            where=f"weights.{name}",
            remedy="Give its price relative to the price of an uncached input token",
        )
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= _LARGEST_WEIGHT:
        raise InputError(
            f"must be a number from 0 to {_LARGEST_WEIGHT:.0f}",
            where=f"weights.{name}",
            value=value,
            remedy="Give its price relative to the price of an uncached input token",
        )
    return float(value)


def _write_weight(weights: Mapping[str, float], name: str, base: float) -> float:
    weight = _weight(weights, name) / base
    if weight < 1:
        raise InputError(
            "makes writing cheaper than input",
            where=f"weights.{name}",
            value=weights[name],
            remedy="A written token is processed as input too: without a write fee give 1",
        )
    return weight


def _hour_weight(write: float) -> tuple[float, tuple[str, ...]]:
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


def _cache_prices(
    listed: "ModelPrice", base: Decimal, context_tokens: int
) -> tuple[Decimal, Decimal, Decimal, tuple[str, ...]]:
    """Return the prices of a read, a write, a 1 h write, and the names of those assumed."""
    assumed: list[str] = []
    read = _price(listed.cache_read_mtok, context_tokens)
    if not read:
        assumed.append("weights.cache_read")
        read = base
    write = _price(listed.cache_write_5m_mtok or listed.cache_write_mtok, context_tokens) or base
    if write < base:
        assumed.append("weights.cache_write")
        write = base
    write_1h = _price(listed.cache_write_1h_mtok, context_tokens)
    if not write_1h:
        weight, names = _hour_weight(float(write / base))
        assumed.extend(names)
        write_1h = base * int(HOUR_WRITE_WEIGHT) if weight == HOUR_WRITE_WEIGHT else write
    return read, write, write_1h, tuple(assumed)


def _cliffs(info: "ModelInfo") -> tuple[int, ...]:
    """Return every context size, in tokens, beyond which some price of a model changes."""
    dated = info.prices if isinstance(info.prices, list) else None
    listed = [entry.prices for entry in dated] if dated else [info.prices]
    starts = {
        tier.start
        for prices in listed
        for price in vars(prices).values()
        for tier in getattr(price, "tiers", ())
    }
    return tuple(sorted(starts))


def _unknown(model: str, provider: str | None, problem: str) -> UnknownPriceError:
    where = "model" if provider is None else f"model (provider {provider})"
    return UnknownPriceError(
        problem,
        where=where,
        value=model,
        remedy="Give weights, or cost and saving, or name another provider",
    )
