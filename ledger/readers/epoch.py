"""Times that a log tells as numbers since 1970-01-01 UTC."""

from compactuary.errors import InputError

__all__ = ["epoch_ms"]

#: Later than any date that can be written, the end of the year 9999.
_MAX_MS = 253_402_300_799_999


def epoch_ms(value: object, where: str, *, per_second: int = 1000) -> int | None:
    """Return milliseconds, or None where there is no time or it is 0.

    Parameters
    ----------
    value : object
        An integer, or a text of digits, as 64-bit numbers are written in JSON.
    where : str
        The field, as a refusal names it.
    per_second : int, default 1000
        How many of the value's units a second has.

    Raises
    ------
    InputError
        Naming the field, if it is no time before the year 10000.
    """
    if value in (None, "", 0):
        return None
    told = int(value) if isinstance(value, str) and value.isdecimal() else value
    if type(told) is float and told.is_integer():
        told = int(told)
    if type(told) is not int or not 0 <= told * 1000 // per_second <= _MAX_MS:
        raise InputError(
            "not a time since 1970",
            where=where,
            value=value,
            remedy="Write a non-negative integer.",
        )
    return told * 1000 // per_second or None
