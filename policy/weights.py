"""Weights that the caller gives instead of a model's name."""

from collections.abc import Mapping

from compactuary.errors import InputError
from policy.listed_prices import hour_weight
from policy.prices import Prices

__all__ = ["weights_from"]


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
    write_1h, assumed = hour_weight(write)
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
