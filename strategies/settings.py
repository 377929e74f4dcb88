"""Checks of the settings that strategies are made with."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from compactuary.errors import InputError

__all__ = ["at_least", "check_types"]

#: What to give for a type.
_NAMES: dict[object, str] = {
    bool: "true or false",
    int: "a whole number",
    str: "a text",
    Path: "a path",
    Sequence: "a list of texts",
    Callable: "a function",
    NoneType: "nothing",
}


def at_least(least: int, **settings: int) -> None:
    """Check that settings are whole numbers of some least size.

    Raises
    ------
    InputError
        One is not; names it.
    """
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            remedy = f"Give a whole number of at least {least}."
            raise InputError("is out of range", where=name, value=value, remedy=remedy)


def check_types(made: Any) -> None:
    """Check every setting of a strategy, or of a summarizer, against its declared type.

    Parameters
    ----------
    made : dataclass instance
        Where a tuple of texts is declared, a list of texts does as well.

    Raises
    ------
    InputError
        One is of another type; names it.
    """
    for each in fields(made):
        value = getattr(made, each.name)
        types = list(_single_types(each.type))
        if not any(_is_of(value, one) for one in types):
            told = dict.fromkeys(_NAMES.get(one) or f"a {one.__name__}" for one in types)
            problem, remedy = "is no value of this setting", f"Give {' or '.join(told)}."
            raise InputError(problem, where=each.name, value=value, remedy=remedy)


def _single_types(declared: Any) -> Iterator[Any]:
    """Yield the types of a union, those of a literal's values, and a generic's origin."""
    origin = get_origin(declared)
    if origin is UnionType:
        for one in get_args(declared):
            yield from _single_types(one)
    elif origin is Literal:
        yield from {type(value) for value in get_args(declared)}
    else:
        yield Sequence if origin is tuple else origin or declared


def _is_of(value: object, one: Any) -> bool:
    if one is Sequence:
        return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    # True is a whole number to Python, and to nobody else.
    return isinstance(value, one) and not (one is int and isinstance(value, bool))
