"""The life table as actuaries print it: l, d, q, p and e, with m and what it rests on."""

from collections.abc import Sequence

import numpy as np

from compactuary.errors import InputError
from estimator.life_table import LifeTable
from estimator.report_table import Cell, ReportTable, Value

__all__ = ["RADIX", "actuarial_table", "life_table_rows"]

RADIX = 100_000
"""Turns that a printed life table starts with."""

_COLUMNS = (
    "age", "l", "d", "q", "p", "e", "m", "lower", "upper", "median", "at_risk", "ended", "open",
)  # fmt: skip


def life_table_rows(table: LifeTable, ages: Sequence[int] | None = None) -> list[dict[str, Value]]:
    """Give the life table row by row.

    Parameters
    ----------
    table : LifeTable
    ages : sequence of int, optional
        Calls made, i; by default every age from 0 to the tail age τ.

    Returns
    -------
    list of dict
        ``age``, ``at_risk`` and ``ended`` (turns, at the next call), ``hazard``, ``survival``,
        ``m``, ``lower``, ``upper`` and ``median`` (calls), ``extrapolated``.

    Raises
    ------
    InputError
        If an age is negative or not whole.
    """
    rows = map(table.at, range(table.tail_age + 1) if ages is None else ages)
    medians = _medians(table)
    return [
        {
            "age": row.age,
            "at_risk": row.at_risk,
            "ended": row.ended,
            "hazard": row.hazard,
            "survival": row.survival,
            "m": row.mean,
            "lower": row.lower,
            "upper": row.upper,
            "median": medians[min(row.age, table.tail_age)],
            "extrapolated": row.extrapolated,
        }
        for row in rows
    ]


def actuarial_table(
    table: LifeTable,
    *,
    role: str,
    unit: str = "tool calls",
    radix: float = RADIX,
    half_life_turns: float | None = None,
) -> ReportTable:
    """Lay out a life table in the actuary's columns.

    Parameters
    ----------
    table : LifeTable
    role : str
        Whose it is, for the caption.
    unit : str, default 'tool calls'
        What an age counts, in words.
    radix : float, default 100,000
        l(0).
    half_life_turns : float, optional
        The half-life of the turns' weights, for the caption; by default raw.

    Returns
    -------
    ReportTable
        One row an age x from 0 to the tail age τ: ``l`` turns still going after x calls, ``d``
        of them that end with the next one, ``q`` = d/l, ``p`` = 1 − q, ``e`` the curtate
        expectation m − 1, ``m``, its interval ``lower``, ``upper``, the ``median`` (calls), and
        the observed turns ``at_risk`` and ``ended``. The last row is the open interval τ+
        (``open``): q = 1 and ``ended`` counts all its ends, so that d adds up to the radix.

    Raises
    ------
    InputError
        If the radix is not positive and finite.

    Notes
    -----
    The complete expectation, which assumes ends spread over the call, is e + ½.
    """
    if not (np.isfinite(radix) and radix > 0):
        raise InputError(
            "the radix is not a positive number",
            where="radix",
            value=radix,
            remedy="Give the turns to start with, such as 100000",
        )
    rows = _rows(table, radix)
    whole = table.whole_median.text
    return ReportTable(
        columns=_COLUMNS,
        data=rows,
        heads=("x", "l", "d", "q", "p", "e", "m", f"{table.level:.0%}", "p50", "n", "ended"),
        cells=tuple(_cells(row, None if number else whole) for number, row in enumerate(rows)),
        caption=_caption(table, role, unit, half_life_turns),
        text_columns=0,
    )


def _rows(table: LifeTable, radix: float) -> tuple[tuple[Value, ...], ...]:
    living = radix * table.survival
    rate = np.append(table.hazard[:-1], 1.0)
    open_ = np.arange(table.tail_age + 1) == table.tail_age
    columns = (
        np.arange(table.tail_age + 1),
        living,
        living - np.append(living[1:], 0.0),
        rate,
        1.0 - rate,
        table.mean - 1.0,
        table.mean,
        table.lower,
        table.upper,
        np.array(_medians(table)),
        table.at_risk,
        np.where(open_, table.ends, table.ended),
        open_,
    )
    return tuple(zip(*(column.tolist() for column in columns), strict=True))


def _medians(table: LifeTable) -> list[int]:
    """Median residual lives up to τ; at age 0 that of whole turns, as the note's table has it."""
    return [table.whole_median.calls, *table.medians[1:].tolist()]


def _cells(row: tuple[Value, ...], whole_median: str | None) -> tuple[Cell, ...]:
    age, living, ending, rate, go_on, curtate, mean, lower, upper, median, at_risk, ended, last = (
        row
    )
    texts = (
        f"{age}+" if last else f"{age}",
        f"{living:,.0f}",
        f"{ending:,.0f}",
        f"{rate:.5f}",
        f"{go_on:.5f}",
        f"{curtate:,.2f}",
        f"{mean:,.2f}",
        f"{lower:,.1f}–{upper:,.1f}",
        whole_median or f"{median:,}",
        f"{at_risk:,.0f}",
        f"{ended:,.0f}",
    )
    return tuple(map(Cell, texts))


def _caption(table: LifeTable, role: str, unit: str, half_life: float | None) -> str:
    raw = "Raw: every turn counts alike."
    decayed = f"Decayed: weights halve every {half_life:g} turns." if half_life else raw
    if table.sessions is not None:
        decayed = f"{decayed} Intervals take turns of one session as alike."
    return (
        f"Life table of {role}: {table.turns_with_a_call:,.0f} turns with at least one call, "
        f"{table.total_ends:,.0f} ends. Ages x in {unit}. l turns still going, d of them ending "
        f"with the next call, q = d/l, p = 1 − q, e = m − 1 the curtate expectation, m the mean "
        f"residual life with its {table.level:.0%} interval, p50 the median; n turns at risk, and "
        f"those that ended. The last row is the open interval. {decayed}"
    )
