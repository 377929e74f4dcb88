"""Every exception this project raises on purpose, in one tree.

::

    CompactuaryError
    ├── InputError          a value somebody gave is wrong: names the field, the value, the remedy
    │   ├── UnknownPriceError   no price is known for this model at this date
    │   └── SourceError         a log or table file can't be read as what it claims to be
    ├── LedgerError         the database is missing, locked, read-only, full or of another version
    └── MissingExtraError   a command needs packages that an extra of the wheel brings

An ``InputError`` is exit code 2 on the command line and a 4xx of the service; a ``LedgerError``
is exit code 1 and a 503.
"""

__all__ = [
    "CompactuaryError",
    "InputError",
    "LedgerError",
    "MissingExtraError",
    "SourceError",
    "UnknownPriceError",
]


class CompactuaryError(Exception):
    """What went wrong, where, with which value, and what to do about it.

    Parameters
    ----------
    problem : str
        One clause that says what is wrong.
    where : str, optional
        The field, or the file and line, that the problem is in.
    value : object, optional
        The offending value; shown shortened to 80 characters.
    remedy : str, optional
        One sentence that says what to do.
    """

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        value: object = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.where = where
        self.value = value
        self.remedy = remedy
        super().__init__(problem)

    def __str__(self) -> str:
        head = f"{self.where}: {self.problem}" if self.where else self.problem
        if self.value is not None:
            shown = repr(self.value)
            head += f" (got {shown if len(shown) <= 80 else shown[:77] + '...'})"
        return f"{head}. {self.remedy}" if self.remedy else head


class InputError(CompactuaryError):
    """A value that somebody gave is wrong."""


class UnknownPriceError(InputError):
    """No price is known for a model; never answered with a price of 0."""


class SourceError(InputError):
    """A log or table file can't be read as what it claims to be."""


class LedgerError(CompactuaryError):
    """The database is missing, locked, read-only, full or of another version."""


class MissingExtraError(CompactuaryError):
    """A command needs packages that an extra of the wheel brings."""
