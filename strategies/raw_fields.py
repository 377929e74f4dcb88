"""Reading and changing the messages that callers hold: mappings, or objects of an SDK."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compactuary.errors import InputError

__all__ = ["changed", "field_of", "is_list", "kind_of", "plain", "size_of"]


def field_of(raw: Any, name: str, default: Any = None) -> Any:
    """Return a field of a mapping or an attribute of an object."""
    # A dict is what nearly every caller holds, and asking its class is what costs here.
    if type(raw) is dict or isinstance(raw, Mapping):
        return raw.get(name, default)
    return getattr(raw, name, default)


def kind_of(raw: Any) -> str:
    """Return the type that a message or block names; empty where it names none by a text."""
    kind = field_of(raw, "type")
    return kind if isinstance(kind, str) else ""


def is_list(value: Any) -> bool:
    """Whether a value is a list of blocks and not a text."""
    # Nearly all values are of these two, and asking an abstract class is what costs here.
    if type(value) is list:
        return True
    if type(value) is str:
        return False
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def changed(raw: Any, **updates: Any) -> Any:
    """Return a copy of a message or block with some fields changed; the original stays as it is.

    Raises
    ------
    InputError
        The object is neither a mapping nor a model that can be copied.
    """
    if isinstance(raw, Mapping):
        return {**raw, **updates}
    copy = getattr(raw, "model_copy", None)
    if copy is None:
        raise InputError(
            "can't be copied with another content",
            where="messages",
            value=type(raw).__name__,
            remedy="Hold messages as dicts or as pydantic models.",
        )
    return copy(update=updates)


def plain(value: Any) -> Any:
    """Return a message as values that JSON can hold; what it can't hold becomes text."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return plain(dump())
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(inner) for inner in value]
    return str(value)


def size_of(value: Any) -> int:
    """Return the characters of a value as a request carries it; 0 for nothing."""
    if isinstance(value, str):
        return len(value)
    if value is None:
        return 0
    return len(str(value if type(value) in (dict, list) else plain(value)))
