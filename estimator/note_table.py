"""The note's table: expected remaining calls by role, at chosen ages, against the break-even.

Examples
--------
>>> turns = Histogram.from_turns(calls=[2, 4, 9], ended=[True] * 3)
>>> table = note_table([RoleLife.of("dev", turns, break_even_requests=4)], ages=[0])
>>> table.records()[0]["m_0"], table.records()[0]["pays_0"], table.cells[0][-1].text
(5.0, True, '5.0')
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.life_table import AgeRow, LifeTable, life_table
from estimator.report_table import Cell, ReportTable, Value

__all__ = ["NOTE_AGES", "UNITS", "RoleLife", "note_table"]

NOTE_AGES = (0, 5, 10, 20, 40)
"""Ages shown where nobody names any, in calls made."""

UNITS = {"tool_calls": "tool calls", "requests": "requests"}
"""The units of a table, with the words for them."""

_FIGURES = ("turns", "mean", "p50", "p50_extrapolated", "requests_per_call", "break_even_requests")
_AT_AN_AGE = ("m", "lower", "upper", "at_risk", "extrapolated", "pays")


@dataclass(frozen=True, slots=True)
class RoleLife:
    """What a row of the table is made from.

    Parameters
    ----------
    role : str
        The role's name.
    turns : float
        Turns with at least one call; the sum of their weights where these are decayed.
    life : LifeTable or None
        None where no turn of the role has ended yet: the row then has its turns only.
    model : str, optional
        The model, where the rows are those of single models.
    requests_per_call : float, optional
        Turns tool calls into requests; 1 where it is not learned or the unit is requests.
    break_even_requests : float, optional
        C/s, the requests that must remain for a compaction to pay.

    Raises
    ------
    InputError
        If the pace is not positive, or the break-even negative or not finite.
    """

    role: str
    turns: float
    life: LifeTable | None
    model: str | None = None
    requests_per_call: float | None = None
    break_even_requests: float | None = None

    def __post_init__(self) -> None:
        pace, line = self.requests_per_call, self.break_even_requests
        if pace is not None and not (math.isfinite(pace) and pace > 0):
            raise InputError(
                "not a positive number of requests a tool call",
                where="requests_per_call",
                value=pace,
                remedy="Leave it out where it is not learned",
            )
        if line is not None and not (math.isfinite(line) and line >= 0):
            raise InputError(
                "not a number of requests",
                where="break_even_requests",
                value=line,
                remedy="Give C/s, such as 7.5, or leave it out",
            )

    @classmethod
    def of(
        cls,
        role: str,
        histogram: Histogram,
        *,
        level: float = 0.9,
        model: str | None = None,
        requests_per_call: float | None = None,
        break_even_requests: float | None = None,
    ) -> Self:
        """Make a row from a histogram of turns; the parameters are those of the class.

        Raises
        ------
        InputError
            If `level` is not between 0 and 1, or as for the class.
        """
        life = life_table(histogram, level=level) if histogram.ends else None
        turns = histogram.turns_with_a_call
        turns = int(turns) if histogram.squared is None else turns
        return cls(role, turns, life, model, requests_per_call, break_even_requests)

    @property
    def break_even_calls(self) -> float | None:
        """C/s in the table's unit: requests divided by the requests of one tool call."""
        if self.break_even_requests is None:
            return None
        return self.break_even_requests / (self.requests_per_call or 1.0)


def note_table(
    roles: Sequence[RoleLife],
    *,
    whole: RoleLife | None = None,
    ages: Sequence[int] = NOTE_AGES,
    unit: str = "tool_calls",
    detail: bool = False,
    half_life_turns: float | None = None,
) -> ReportTable:
    """Lay out mean, median and m(i) by role.

    Parameters
    ----------
    roles : sequence of RoleLife
        One a row, in this order.
    whole : RoleLife, optional
        All roles together, shown below a rule.
    ages : sequence of int, default 0, 5, 10, 20, 40
        Calls made so far, i.
    unit : {'tool_calls', 'requests'}
        What the life tables count.
    detail : bool, default False
        Whether printed cells carry the interval and the turns at risk; CSV and the frame always
        do.
    half_life_turns : float, optional
        The half-life of the turns' weights in `roles`, for the caption; by default raw, that is
        every turn counts alike.

    Returns
    -------
    ReportTable
        Columns role, (model,) turns, mean, p50, p50_extrapolated, requests_per_call,
        break_even_requests and, for each age i, m_i, lower_i, upper_i, at_risk_i,
        extrapolated_i, pays_i. Cells above the row's break-even are bold, those past the open
        tail carry a ~, and so does a p50 that the turns are too few or too often cut to show.

    Raises
    ------
    InputError
        If an age is negative or not whole, is named twice, or the unit is unknown.
    """
    _check(ages, unit)
    rows = [*roles, whole] if whole is not None else list(roles)
    by_model = any(role.model is not None for role in rows)
    own_line = len({role.break_even_requests for role in rows} - {None}) > 1
    names = ("role", "model") if by_model else ("role",)
    line = ("break-even",) if own_line else ()
    return ReportTable(
        columns=(*names, *_FIGURES, *(f"{name}_{age}" for age in ages for name in _AT_AN_AGE)),
        data=tuple(_data(role, ages, by_model=by_model) for role in rows),
        heads=(*names, *_FIGURES[:3], *line, *(f"m({age})" for age in ages)),
        cells=tuple(
            _cells(role, ages, by_model=by_model, own_line=own_line, detail=detail) for role in rows
        ),
        caption=_caption(rows, unit, own_line=own_line, detail=detail, half_life=half_life_turns),
        text_columns=len(names),
        total=whole is not None,
    )


def _check(ages: Sequence[int], unit: str) -> None:
    if unit not in UNITS:
        raise InputError(
            "no such unit", where="unit", value=unit, remedy=f"Choose one of {', '.join(UNITS)}"
        )
    if len(set(ages)) < len(ages):
        raise InputError(
            "an age is named twice", where="ages", value=list(ages), remedy="Name each age once"
        )


def _pays(role: RoleLife, row: AgeRow) -> bool | None:
    line = role.break_even_calls
    return None if line is None else row.mean > line


def _data(role: RoleLife, ages: Sequence[int], *, by_model: bool) -> tuple[Value, ...]:
    names = (role.role, role.model) if by_model else (role.role,)
    line = role.break_even_requests
    terms = (role.requests_per_call, None if line is None else float(line))
    if role.life is None:
        return (*names, role.turns, None, None, None, *terms, *[None] * len(_AT_AN_AGE) * len(ages))
    values: list[Value] = []
    for row in map(role.life.at, ages):
        values += [row.mean, row.lower, row.upper, row.at_risk, row.extrapolated, _pays(role, row)]
    return (*names, role.turns, role.life.overall_mean, *role.life.whole_median, *terms, *values)


def _cells(
    role: RoleLife, ages: Sequence[int], *, by_model: bool, own_line: bool, detail: bool
) -> tuple[Cell, ...]:
    cells = [Cell(role.role)]
    if by_model:
        cells.append(Cell(role.model or ""))
    cells.append(Cell(f"{role.turns:,.0f}"))
    line = role.break_even_requests
    own = [Cell("" if line is None else f"{line:,.1f}")] if own_line else []
    if role.life is None:
        return (*cells, Cell(""), Cell(""), *own, *[Cell("")] * len(ages))
    cells += [Cell(f"{role.life.overall_mean:,.1f}"), Cell(role.life.whole_median.text), *own]
    for row in map(role.life.at, ages):
        text = f"{row.mean:,.1f}" + "~" * row.extrapolated
        more = f"({row.lower:,.1f}–{row.upper:,.1f}; {row.at_risk:,.0f})" if detail else ""
        cells.append(Cell(text, more, bool(_pays(role, row))))
    return tuple(cells)


def _caption(
    rows: Sequence[RoleLife], unit: str, *, own_line: bool, detail: bool, half_life: float | None
) -> str:
    words = UNITS[unit]
    levels = [role.life.level for role in rows if role.life is not None]
    told = [
        f"Expected remaining {words} m(i), given that the turn has made i.",
        f"Turns are those with at least one call; mean and p50: their {words}.",
    ]
    if detail and levels:
        told.append(f"In parentheses: {levels[0]:.0%} interval; turns at risk for the next call.")
    told.append(_what_bold_means(rows, own_line=own_line))
    if any(role.requests_per_call is not None for role in rows) and unit == "tool_calls":
        told.append("Tool calls become requests by the role's own ratio, 1 where none is known.")
    told.append("~: past the open tail, where m is constant.")
    if any(role.life is not None and role.life.whole_median.extrapolated for role in rows):
        told.append("~ at p50: too many turns are cut to see it, so it is the open tail's.")
    if any(role.life is not None and role.life.sessions is not None for role in rows):
        told.append("Intervals take turns of one session as alike.")
    if half_life is None:
        told.append("Raw: every turn counts alike.")
    else:
        told.append(f"Decayed: weights halve every {half_life:g} turns of the role.")
    return " ".join(told)


def _what_bold_means(rows: Sequence[RoleLife], *, own_line: bool) -> str:
    if own_line:
        return "Bold: above the row's break-even, in requests."
    lines = (role.break_even_requests for role in rows)
    line = next((line for line in lines if line is not None), None)
    if line is None:
        return "No break-even was given, so nothing is bold."
    return f"Bold: above the break-even of {line:,.1f} requests."
