"""Usage objects of providers → one record of token classes that never overlap."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compactuary.errors import InputError

__all__ = ["Usage", "anthropic_usage", "usage_from"]

#: More tokens than any request can carry; a larger count is a fault of the log, not a measurement.
MAX_TOKENS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, by price class.

    Parameters
    ----------
    uncached : int
        Input tokens neither read from the cache nor written to it.
    cache_read : int
        Input tokens read from the cache.
    cache_write_5m, cache_write_30m, cache_write_1h, cache_write_12h, cache_write_other : int
        Input tokens written to the cache, by time to live; ``other`` where the log does not say.
    output : int
        Output tokens, reasoning included.
    reasoning : int
        The part of ``output`` spent on reasoning, 0 where unknown.
    """

    uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_30m: int = 0
    cache_write_1h: int = 0
    cache_write_12h: int = 0
    cache_write_other: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def cache_write(self) -> int:
        """Input tokens written to the cache, whatever the time to live."""
        return (
            self.cache_write_5m
            + self.cache_write_30m
            + self.cache_write_1h
            + self.cache_write_12h
            + self.cache_write_other
        )

    @property
    def context_tokens(self) -> int:
        """Input tokens of the request, all classes."""
        return self.uncached + self.cache_read + self.cache_write


_OWN_FIELDS = (*Usage.__dataclass_fields__, "cache_write")


def usage_from(raw: Mapping[str, Any]) -> Usage:
    """Read a usage object: Anthropic's as it came, or this project's own token classes.

    Parameters
    ----------
    raw : mapping
        Either an Anthropic Messages ``usage`` (``input_tokens`` excludes the cache), or any of
        ``uncached, cache_read, cache_write, cache_write_5m, cache_write_1h, output, …``.

    Raises
    ------
    InputError
        If a count is negative or no integer, or the object is of neither kind.
    """
    if "input_tokens" in raw or "cache_read_input_tokens" in raw:
        foreign = {"input_tokens_details", "input_token_details", "prompt_tokens"} & set(raw)
        if foreign:
            raise InputError(
                "not Anthropic's usage: its input_tokens includes the cache",
                where=f"usage.{min(foreign)}",
                remedy="Send uncached, cache_read, cache_write and output instead.",
            )
        return anthropic_usage(raw)
    unknown = sorted(set(raw) - set(_OWN_FIELDS))
    if unknown:
        raise InputError(
            "unknown field",
            where=f"usage.{unknown[0]}",
            value=raw[unknown[0]],
            remedy=f"Send Anthropic's usage object, or any of: {', '.join(_OWN_FIELDS)}.",
        )
    counts = {name: _tokens(raw, name) for name in _OWN_FIELDS}
    total = counts.pop("cache_write")
    by_lifetime = sum(n for name, n in counts.items() if name.startswith("cache_write_"))
    counts["cache_write_other"] += max(0, total - by_lifetime)
    return _checked(Usage(**counts))


def anthropic_usage(raw: Mapping[str, Any]) -> Usage:
    """Read an Anthropic Messages usage object.

    With several ``iterations`` the top-level input counts are their sum; the last ``message``
    iteration is what the context really held.

    Raises
    ------
    InputError
        Naming the field, if a count is negative or no integer, or a part is of another shape.
    """
    counted: Mapping[str, Any] = raw
    iterations = raw.get("iterations")
    if iterations:
        if not isinstance(iterations, list) or not all(isinstance(i, dict) for i in iterations):
            raise _misshapen("iterations", iterations, "a list of objects")
        messages = [i for i in iterations if i.get("type") == "message"]
        counted = messages[-1] if messages and len(iterations) > 1 else raw
    lifetimes = _object(counted, "cache_creation")
    write_5m = _tokens(lifetimes, "ephemeral_5m_input_tokens")
    write_1h = _tokens(lifetimes, "ephemeral_1h_input_tokens")
    details = _object(raw, "output_tokens_details")
    return _checked(
        Usage(
            uncached=_tokens(counted, "input_tokens"),
            cache_read=_tokens(counted, "cache_read_input_tokens"),
            cache_write_5m=write_5m,
            cache_write_1h=write_1h,
            cache_write_other=max(
                0, _tokens(counted, "cache_creation_input_tokens") - write_5m - write_1h
            ),
            output=_tokens(raw, "output_tokens"),
            reasoning=_tokens(details, "thinking_tokens"),
        )
    )


def _checked(usage: Usage) -> Usage:
    if usage.reasoning > usage.output:
        raise InputError(
            "more reasoning than output tokens",
            where="usage.reasoning",
            value=usage.reasoning,
            remedy="Reasoning tokens are a part of the output; send the whole output.",
        )
    return usage


def _object(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = raw.get(name) or {}
    if not isinstance(value, Mapping):
        raise _misshapen(name, value, "an object")
    return value


def _misshapen(name: str, value: object, wanted: str) -> InputError:
    return InputError(
        f"not {wanted}",
        where=f"usage.{name}",
        value=value,
        remedy="Send Anthropic's usage object as it came.",
    )


def _tokens(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value <= MAX_TOKENS:
        raise InputError(
            f"not a token count from 0 to {MAX_TOKENS:,}",
            where=f"usage.{name}",
            value=value,
            remedy="Send a non-negative integer.",
        )
    return value
