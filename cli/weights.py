"""``--weight NAME=VALUE``: weights of one's own instead of a model's prices."""

from collections.abc import Iterable
from typing import Annotated

import typer

from compactuary.errors import InputError

__all__ = ["Weights", "weights_of"]

Weights = Annotated[
    list[str] | None,
    typer.Option("--weight", help="NAME=VALUE, such as cache_read=0.1; may be repeated."),
]


def weights_of(given: Iterable[str] | None) -> dict[str, float] | None:
    """Return weights written like ``cache_read=0.1``, or None where there are none.

    Raises
    ------
    InputError
        If one of them is not written so.
    """
    weights: dict[str, float] = {}
    for part in given or ():
        name, _, value = part.partition("=")
        try:
            weights[name] = float(value)
        except ValueError as error:
            raise InputError(
                "not NAME=NUMBER",
                where="--weight",
                value=part,
                remedy="Write it like --weight cache_read=0.1.",
            ) from error
    return weights or None
