"""Checks of the settings that strategies are made with."""

from compactuary.errors import InputError

__all__ = ["at_least"]


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
