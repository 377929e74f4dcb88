"""The record every usage object becomes: tokens of one request in classes that never overlap."""

from dataclasses import dataclass

from compactuary.errors import InputError

__all__ = ["MAX_TOKENS", "Usage", "classes_of_total", "write_rest"]

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

    Raises
    ------
    InputError
        If more reasoning than output tokens are told.
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

    def __post_init__(self) -> None:
        if self.reasoning > self.output:
            raise InputError(
                f"more reasoning than the {self.output} output tokens",
                where="usage.reasoning",
                value=self.reasoning,
                remedy="Reasoning tokens are a part of the output; send the whole output.",
            )

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


def write_rest(where: str, total: int | None, told: int) -> int:
    """Return the cache writes of unknown lifetime: of a total, what no lifetime is told for.

    Parameters
    ----------
    where : str
        The field that tells the total, as a refusal names it.
    total : int or None
        Tokens written, all lifetimes; None where only lifetimes are told.
    told : int
        Tokens told by lifetime.

    Raises
    ------
    InputError
        If more is told by lifetime than in total: one of them is stale, and would be billed twice.
    """
    if total is None:
        return 0
    if told > total:
        raise InputError(
            f"fewer cache writes than the {told} told by lifetime",
            where=f"usage.{where}",
            value=total,
            remedy="The lifetimes are parts of the total; send the usage as it stood last.",
        )
    return total - told


def classes_of_total(
    where: str,
    total: int,
    *,
    read: int,
    output: int,
    reasoning: int = 0,
    **writes: int,
) -> Usage:
    """Return the record of an input total that includes what was read and written.

    ``writes`` are named as in `Usage`, such as ``cache_write_1h``.

    Raises
    ------
    InputError
        If more was read and written than the total: it does not include them.
    """
    cached = read + sum(writes.values())
    if cached > total:
        raise InputError(
            f"fewer input tokens than the {cached} read from the cache and written to it",
            where=f"usage.{where}",
            value=total,
            remedy="This convention's total includes both. If yours does not, name another "
            "convention, or send uncached, cache_read, cache_write and output.",
        )
    return Usage(
        uncached=total - cached, cache_read=read, **writes, output=output, reasoning=reasoning
    )
