"""Values as the ledger can keep them: what a log's field must hold, or the log is refused."""

from compactuary.errors import InputError

__all__ = ["MAX_COUNT", "count", "text", "text_or_none"]

#: More calls or tokens than anything can have; a larger number is a fault of the log.
MAX_COUNT = 1_000_000_000


def text(value: object, where: str) -> str:
    """Return a text that both databases can keep: not empty, without the character NUL.

    Raises
    ------
    InputError
        Naming the field, if it is anything else.
    """
    if type(value) is not str or not value or "\0" in value:
        raise InputError(
            "not a text", where=where, value=value, remedy="Write a string without NUL."
        )
    return value


def text_or_none(value: object, where: str) -> str | None:
    """Return a text, or None where there is none."""
    return None if value is None or value == "" else text(value, where)


def count(value: object, where: str) -> int | None:
    """Return a count, or None where there is none.

    Raises
    ------
    InputError
        Naming the field, if it is no integer from 0 to :data:`MAX_COUNT`.
    """
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise InputError(
            f"not a count from 0 to {MAX_COUNT:,}",
            where=where,
            value=value,
            remedy="Write a non-negative integer.",
        )
    return value
