"""Pictures of m(i): a line and a band for each role, the break-even, the turns at risk below.

Drawn without a display and without pyplot's global state. Colours are those of Okabe and Ito,
which remain distinct to colour-blind readers; line styles tell roles apart in print.
"""

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from compactuary.errors import InputError
from estimator.life_table import LifeTable
from estimator.note_table import UNITS, RoleLife

__all__ = ["SAVE_FORMATS", "RemainingFigure", "plot_remaining", "save_figure"]

SAVE_FORMATS = ("png", "svg", "pdf")
"""File types a picture can be saved as."""

# On one pair of axes more bands than these hide each other.
MOST_TOGETHER = 4
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
STYLES = ("-", "--", "-.", ":")
BREAK_EVEN: Mapping[str, Any] = {"linewidth": 1.0, "linestyle": (0, (6, 3)), "zorder": 1.5}
# Values that span more than this are drawn on a logarithmic axis.
LINEAR_SPAN = 30.0
# A band wider than this many means is cut off rather than let it flatten every line.
HIGHEST_BAND = 3.0
LONGEST_NAME = 28
GREY = "0.35"


class RemainingFigure(Figure):
    """A figure that a notebook shows without further set-up."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()


def plot_remaining(
    roles: Sequence[RoleLife], *, unit: str = "tool_calls", until_age: int | None = None
) -> Figure:
    """Draw m(i) with its interval by role.

    Parameters
    ----------
    roles : sequence of RoleLife
        Up to 4 share one pair of axes; more get a panel each, on a common vertical axis. A role
        without a life table is left out and named below the picture.
    unit : {'tool_calls', 'requests'}
        What the life tables count.
    until_age : int, optional
        Last age drawn, in calls made; by default somewhat past the tail age.

    Returns
    -------
    Figure
        Lines are thick up to the role's tail age and thin beyond, where m is constant; each
        role's break-even is a horizontal line in the table's unit; turns at risk for the next
        call stand below the axis, – past the tail age. The vertical axis is logarithmic where
        values span more than a factor of 30.

    Raises
    ------
    InputError
        If no role has a life table, the unit is unknown, or the last age is not at least 1.
    """
    drawn = [role for role in roles if role.life is not None]
    if not drawn:
        raise InputError(
            "no role has a turn that ended",
            where="roles",
            value=[role.role for role in roles],
            remedy="Name roles with ended turns",
        )
    if unit not in UNITS:
        raise InputError(
            "no such unit", where="unit", value=unit, remedy=f"Choose one of {', '.join(UNITS)}"
        )
    if until_age is not None and until_age < 1:
        raise InputError(
            "the last age is not at least 1",
            where="until_age",
            value=until_age,
            remedy="Give the calls made up to which to draw",
        )
    if len(drawn) <= MOST_TOGETHER:
        figure = _together(drawn, until_age or max(map(_last_age, drawn)))
    else:
        figure = _panels(drawn, until_age)
    _label(figure, roles, drawn, unit)
    return figure


def save_figure(figure: Figure, path: Path | str) -> Path:
    """Save a picture in the type its name ends in.

    Parameters
    ----------
    figure : Figure
    path : Path or str
        Ends in .png (at 200 dots an inch), .svg or .pdf.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    InputError
        If the name ends otherwise, or the file can't be written.
    """
    target = Path(path).expanduser()
    kind = target.suffix.lower().lstrip(".")
    if kind not in SAVE_FORMATS:
        raise InputError(
            "not a type of picture",
            where="save",
            value=str(path),
            remedy=f"End the name in .{', .'.join(SAVE_FORMATS)}",
        )
    try:
        figure.savefig(target, format=kind, dpi=200)
    except OSError as error:
        raise InputError(
            "the picture can't be written",
            where=str(target),
            value=error.strerror,
            remedy="Name a folder that exists and can be written to",
        ) from error
    return target


def _life(role: RoleLife) -> LifeTable:
    assert role.life is not None  # noqa: S101 - chosen for it above
    return role.life


def _last_age(role: RoleLife) -> int:
    return max(5, math.ceil(1.1 * _life(role).tail_age))


def _together(roles: Sequence[RoleLife], last: int) -> Figure:
    """All roles on one pair of axes."""
    below = 0.3 + 0.22 * len(roles)
    figure = RemainingFigure(figsize=(8.0, 4.2 + below), layout="constrained")
    axes, counts = figure.subplots(2, 1, height_ratios=[3.8, below], sharex=True)
    for place, role in enumerate(roles):
        _draw(axes, role, last, COLOURS[place], STYLES[place])
    _break_evens(axes, roles)
    _scale(axes, roles, last)
    axes.tick_params(labelbottom=True)
    legend = axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False, fontsize=9
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    _risk_table(counts, roles, last)
    return figure


def _risk_table(axes: Axes, roles: Sequence[RoleLife], last: int) -> None:
    """Write the turns at risk below the ticks, one line a role."""
    axes.set_ylim(len(roles) - 0.4, -0.6)
    names = axes.set_yticks(range(len(roles)), [_short(role.role) for role in roles], fontsize=8)
    axes.tick_params(length=0, labelbottom=False)
    # Room for the count at age 0, which is centred on the axis.
    axes.tick_params(axis="y", pad=20)
    axes.spines[:].set_visible(False)
    axes.set_title("turns at risk for the next call", fontsize=8, loc="left", color=GREY)
    for place, (role, tick) in enumerate(zip(roles, names, strict=True)):
        tick.label1.set(color=COLOURS[place], parse_math=False)
        for age in _ticks(axes, last):
            axes.text(
                age, place, _at_risk(role, age), ha="center", va="center", fontsize=8,
                color=COLOURS[place],
            )  # fmt: skip


def _panels(roles: Sequence[RoleLife], until_age: int | None) -> Figure:
    """Give each role a small panel, with the turns at risk below the ages."""
    wide = 3 if len(roles) <= 9 else 4
    high = math.ceil(len(roles) / wide)
    figure = RemainingFigure(figsize=(2.7 * wide, 2.3 * high + 0.7), layout="constrained")
    grid = figure.subplots(high, wide, sharey=True, squeeze=False).ravel()
    for axes, role in zip(grid, roles, strict=False):
        last = until_age or _last_age(role)
        _draw(axes, role, last, COLOURS[0], "-")
        if role.break_even_calls is not None:
            axes.axhline(role.break_even_calls, color="black", **BREAK_EVEN)
        axes.set_title(_short(role.role), fontsize=9, loc="left", parse_math=False)
        _scale(axes, roles, last, ticks=4)
        ages = _ticks(axes, last)
        axes.set_xticks(ages, [f"{age}\n{_at_risk(role, age)}" for age in ages], fontsize=8)
    for axes in grid[len(roles) :]:
        axes.set_axis_off()
    return figure


def _ticks(axes: Axes, last: int) -> list[int]:
    return [int(tick) for tick in axes.get_xticks() if 0 <= tick <= last]


def _at_risk(role: RoleLife, age: int) -> str:
    life = _life(role)
    return f"{life.at_risk[age]:,.0f}" if age <= life.tail_age else "–"


def _draw(axes: Axes, role: RoleLife, last: int, colour: str, style: str) -> None:
    life = _life(role)
    ages = np.arange(last + 1)
    rows = np.minimum(ages, life.tail_age)
    mean, lower, upper = life.mean[rows], life.lower[rows], life.upper[rows]
    known = np.isfinite(lower) & np.isfinite(upper)
    within, beyond = ages <= life.tail_age, ages >= life.tail_age
    for part, alpha in ((within, 0.18), (beyond, 0.1)):
        axes.fill_between(
            ages, lower, upper, where=known & part, color=colour, alpha=alpha, linewidth=0
        )
    axes.plot(ages[beyond], mean[beyond], color=colour, linewidth=1.0, linestyle=":")
    name = _short(role.role)
    # A label that begins with an underscore would be left out of the legend.
    label = f"\N{ZERO WIDTH SPACE}{name}" if name.startswith("_") else name
    dot = "o" if life.tail_age == 0 else None
    axes.plot(
        ages[within], mean[within], color=colour, linewidth=2.0, linestyle=style, label=label,
        marker=dot, markersize=4,
    )  # fmt: skip


def _break_evens(axes: Axes, roles: Sequence[RoleLife]) -> None:
    """Draw one black line for all roles, or one each in its colour; either has one name."""
    lines = [role.break_even_calls for role in roles]
    given = sorted({line for line in lines if line is not None})
    if not given:
        return
    told = f"{given[0]:,.1f}" if len(given) == 1 else f"{given[0]:,.1f}–{given[-1]:,.1f}"
    axes.plot([], [], color="black", label=f"break-even, {told}", **BREAK_EVEN)
    for line, colour in zip(lines, COLOURS, strict=False):
        if line is not None:
            axes.axhline(line, color=colour if len(set(lines)) > 1 else "black", **BREAK_EVEN)


def _scale(axes: Axes, roles: Sequence[RoleLife], last: int, *, ticks: int = 7) -> None:
    lives = [_life(role) for role in roles]
    means = np.concatenate([life.mean for life in lives])
    uppers = np.concatenate([_seen(life) for life in lives])
    lines = [role.break_even_calls for role in roles if role.break_even_calls is not None]
    top = max(float(uppers.max()), float(means.max()), *lines, 2.0)
    axes.set_xlim(0, last)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=ticks, integer=True, steps=[1, 2, 5, 10]))
    if max(float(means.max()), *lines, 1.0) / float(means.min()) > LINEAR_SPAN:
        axes.set_yscale("log")
        lowest = np.concatenate([life.lower[np.isfinite(life.lower)] for life in lives])
        least = min([float(means.min()), *lowest.tolist()])
        axes.set_ylim(0.85 * least, 1.3 * top)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda _value, _: ""))
    else:
        axes.set_ylim(0, 1.06 * top)


def _seen(life: LifeTable) -> NDArray[np.float64]:
    """Return the upper ends of a band, as high as they may drive the axis."""
    upper = np.minimum(life.upper, HIGHEST_BAND * life.mean)
    finite: NDArray[np.float64] = upper[np.isfinite(upper)]
    return finite if finite.size else life.mean


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _label(figure: Figure, roles: Sequence[RoleLife], drawn: Sequence[RoleLife], unit: str) -> None:
    words = UNITS[unit]
    figure.axes[0].set_ylabel(f"expected remaining {words}, m(i)")
    notes = [f"Bands: {_life(drawn[0]).level:.0%} interval."]
    notes.append("Dotted, –: past the open tail, where m is constant.")
    if len(drawn) > MOST_TOGETHER:
        figure.axes[0].set_ylabel("")
        figure.supylabel(f"expected remaining {words}, m(i)", fontsize=10)
        notes.append("Below the ages: turns at risk for the next call.")
        lines = {role.break_even_calls for role in drawn} - {None}
        if len(lines) == 1:
            notes.append(f"Dashed: break-even, {lines.pop():,.1f}.")
        elif lines:
            notes.append("Dashed: the role's break-even.")
    left_out = [_short(role.role) for role in roles if role.life is None]
    if left_out:
        notes.append(f"No ended turn yet: {', '.join(left_out)}.")
    wrapped = wrap(" ".join(notes), width=int(13 * figure.get_figwidth()))
    text = figure.supxlabel("\n".join([f"{words} made so far, i", *wrapped]), fontsize=8)
    text.set_parse_math(False)
