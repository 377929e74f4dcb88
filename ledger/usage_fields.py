"""Fields of a raw usage object: a count, a part, or a refusal that names the field."""

from collections.abc import Mapping
from typing import Any

from compactuary.errors import InputError
from ledger.token_classes import MAX_TOKENS

__all__ = ["misshapen", "part", "tokens", "tokens_or_none"]


def tokens_or_none(raw: Mapping[str, Any], name: str) -> int | None:
    """Return a count of tokens, None where it is absent or null; refuses as `tokens`."""
    return None if raw.get(name) is None else tokens(raw, name)


def tokens(raw: Mapping[str, Any], name: str) -> int:
    """Return a count of tokens, 0 where it is absent or null.

    Raises
    ------
    InputError
        If it is no integer, negative, or more than any request can carry.
    """
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


def part(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an inner object, empty where it is absent or null.

    Raises
    ------
    InputError
        If it is no object.
    """
    value = raw.get(name) or {}
    if not isinstance(value, Mapping):
        raise misshapen(name, value, "an object")
    return value


def misshapen(name: str, value: object, wanted: str) -> InputError:
    """Return the refusal of a field of another shape."""
    return InputError(
        f"not {wanted}",
        where=f"usage.{name}",
        value=value,
        remedy="Send the provider's usage object as it came.",
    )
