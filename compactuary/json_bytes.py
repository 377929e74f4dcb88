"""JSON as callers give it: SDK objects and numbers of other packages are taken as what they say."""

import json
from typing import Any

from compactuary.errors import InputError

__all__ = ["json_bytes"]

_WAYS = ("model_dump", "to_dict", "_asdict", "item")


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON, pydantic models and the like included.

    Raises
    ------
    InputError
        It holds something that JSON has no words for, such as NaN.
    """
    try:
        return json.dumps(value, default=_plain, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"is no JSON: {error}"
        remedy = "Give numbers, texts, lists and dictionaries"
        raise InputError(problem, where="value", remedy=remedy) from error


def _plain(value: Any) -> Any:
    for name in _WAYS:
        way = getattr(value, name, None)
        if callable(way):
            return way()
    if hasattr(value, "__dict__"):
        return {name: each for name, each in vars(value).items() if not name.startswith("_")}
    if isinstance(value, set | frozenset):
        return list(value)
    raise TypeError(f"{type(value).__name__} can't be told in JSON")
