"""The standard table: real turns that ship with the project, for whoever has none yet.

The file beside this module says in its first lines what it was made of and how to make it again.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

from compactuary.errors import InputError
from estimator.histogram import Histogram

__all__ = ["harnesses", "kind_of_role", "standard_name", "standard_table"]

TABLE = Path(__file__).parent / "data" / "standard_table.csv"

#: Simulated customers, not coding agents: asked for by name only.
BENCHMARKS = frozenset({"tau-bench"})

Kind = Literal["main", "subagent"]


def kind_of_role(role: str) -> Kind:
    """Say which kind of role a role is.

    Parameters
    ----------
    role : str
        A role's name.

    Returns
    -------
    {'main', 'subagent'}
        'main' for the role of that name, the one that talks to the user, also behind a project's
        name.
    """
    return "main" if role.rpartition("/")[2] == "main" else "subagent"


def standard_name() -> str:
    """Give the table's name with its version, for every answer that rests on it."""
    with TABLE.open(encoding="utf-8") as lines:
        return next(lines).removeprefix("# ").rstrip("\n")


def harnesses() -> tuple[str, ...]:
    """Give the harnesses that the table tells apart, in alphabetical order."""
    return tuple(sorted({harness for harness, _, _ in _cells()}))


def standard_table(role: str, unit: str = "tool_calls", *, harness: str | None = None) -> Histogram:
    """Give the standard turns of a role's kind.

    Parameters
    ----------
    role : str
        Its kind decides: `kind_of_role`.
    unit : {'tool_calls', 'requests'}, default 'tool_calls'
        What ages and remainders count. Not every turn tells its requests.
    harness : str, optional
        One of `harnesses`. By default all coding agents together; benchmarks of other trades are
        left out.

    Returns
    -------
    Histogram
        Raw counts, cut turns among them. Empty where the harness has no such turn.

    Raises
    ------
    InputError
        If the unit or the harness is unknown.

    Notes
    -----
    The model, §2. The turns are of public logs, without files of 4 MiB and more: long turns are
    under-represented.

    Examples
    --------
    >>> standard_table("main").turns > 2000, standard_table("reviewer").ends > 200
    (True, True)
    """
    _one_of("unit", unit, sorted({unit for _, _, unit in _cells()}))
    if harness is not None:
        _one_of("harness", harness, harnesses())
    kind = kind_of_role(role)
    return _histogram(kind, unit, harness)


@cache
def _histogram(kind: Kind, unit: str, harness: str | None) -> Histogram:
    wanted = [harness] if harness else [name for name in harnesses() if name not in BENCHMARKS]
    return Histogram.from_rows(
        row for name in wanted for row in _cells().get((name, kind, unit), ())
    )


@cache
def _cells() -> dict[tuple[str, str, str], list[tuple[int, ...]]]:
    """Give (entry, exit, ended, count) by harness, kind of role and unit."""
    cells: dict[tuple[str, str, str], list[tuple[int, ...]]] = {}
    for harness, kind, unit, *numbers in _rows():
        cells.setdefault((harness, kind, unit), []).append(tuple(map(int, numbers)))
    return cells


def _rows() -> Iterator[list[str]]:
    with TABLE.open(encoding="utf-8") as lines:
        told = (line.rstrip("\n").split(",") for line in lines if not line.startswith("#"))
        next(told)  # the names of the columns
        yield from told


def _one_of(field: str, value: str, known: tuple[str, ...] | list[str]) -> None:
    if value not in known:
        raise InputError(
            f"is not one of {', '.join(known)}", where=field, value=value, remedy="Give one of them"
        )
