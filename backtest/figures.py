"""Pictures of an audit and a backtest: P(paid) by calls ahead, cost by rule, contexts over time.

Drawn without a display and without pyplot's global state, in the colours of Okabe and Ito.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from backtest.audit_summary import AuditSummary, CallsAhead
from backtest.backtest import Backtest, RuleResult
from backtest.crossing import Crossing
from backtest.observed import observed_compactions
from backtest.sequences import Sequences
from compactuary.errors import InputError
from estimator.plots import RemainingFigure

__all__ = ["MOST_SESSIONS", "plot_contexts", "plot_costs", "plot_crossing"]

MOST_SESSIONS = 6
"""Sessions that the picture of contexts shows: more panels are too small to read."""

_BLUE, _RED, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "0.35"


def plot_crossing(summary: AuditSummary, unit: str = "requests") -> Figure:
    """Draw the share of compactions that paid by what was ahead, with the crossing.

    Parameters
    ----------
    summary : AuditSummary
    unit : {'calls', 'requests'}
        What is counted ahead.

    Raises
    ------
    InputError
        If no compaction is known to its end.
    """
    rows = [row for row in summary.ahead[unit] if row.share_paid is not None]
    if not rows:
        raise InputError(
            "no compaction is known to its end",
            where="audit",
            value=summary.whole.compactions,
            remedy="Name logs with compactions in turns that ended",
        )
    figure = RemainingFigure(figsize=(7.0, 3.6), layout="constrained")
    axes = figure.subplots()
    places = np.array([_middle(row) for row in rows])
    _draw_shares(axes, rows, places)
    _draw_crossing(axes, summary.crossings[unit], unit)
    axes.axhline(0.5, color=_GREY, linewidth=0.8, linestyle=":")
    _scale_ahead(axes, float(places.max()), unit)
    # Above, where no compaction can be.
    axes.legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0, frameon=False,
        fontsize=9,
    )  # fmt: skip
    return figure


def _draw_shares(axes: Axes, rows: list[CallsAhead], places: NDArray[np.float64]) -> None:
    shares = np.array([row.share_paid or 0.0 for row in rows])
    spans = np.array(
        [row.interval or (share, share) for row, share in zip(rows, shares, strict=True)]
    )
    axes.errorbar(
        places,
        shares,
        yerr=np.maximum(np.abs(spans.T - shares), 0.0),
        fmt="o",
        color=_BLUE,
        capsize=3,
        label="share that paid, 90% interval",
    )
    for place, share, row in zip(places, shares, rows, strict=True):
        axes.annotate(
            f"{row.compactions}", (place, share), xytext=(7, -4), textcoords="offset points",
            fontsize=8, color=_GREY,
        )  # fmt: skip


def _scale_ahead(axes: Axes, largest: float, unit: str) -> None:
    axes.set_xscale("symlog", linthresh=1.0, linscale=0.5)
    ticks = [0, 1, 2, 5, 10, 20, 50, 100, 200]
    shown = [tick for tick in ticks if tick <= 2.5 * largest]
    axes.set_xticks(shown, [str(tick) for tick in shown])
    axes.minorticks_off()
    axes.set_xlim(-0.3, 2.5 * max(largest, 1.0))
    axes.set_ylim(-0.04, 1.04)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel(f"{unit} ahead (numbers: compactions)")
    axes.set_ylabel("paid")


def _middle(row: CallsAhead) -> float:
    last = 2 * row.first if row.last is None else row.last
    return float(np.expm1((np.log1p(row.first) + np.log1p(last)) / 2.0))


def _draw_crossing(axes: Axes, found: Crossing, unit: str) -> None:
    if found.lower is None:
        return
    upper = axes.get_xlim()[1] if found.upper is None else found.upper
    axes.axvspan(found.lower, upper, color=_RED, alpha=0.13, linewidth=0)
    if found.calls is not None:
        axes.axvline(
            found.calls, color=_RED, linewidth=1.5, label=f"crosses ½ at {found.calls:.1f} {unit}"
        )


def plot_costs(found: Backtest) -> Figure:
    """Draw every rule's bill against that of the trigger, cheapest first, with intervals."""
    rows = sorted(found.rules, key=lambda one: one.relative, reverse=True)
    figure = RemainingFigure(figsize=(7.0, 0.9 + 0.24 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows):
        colour = _colour(row)
        axes.plot(row.interval, (place, place), color=colour, linewidth=2.0, solid_capstyle="butt")
        axes.plot(
            row.relative, place, marker="D" if row.hindsight else "o", color=colour, markersize=5
        )
    axes.axvline(0.0, color="black", linewidth=0.8)
    names = [f"{row.rule} (hindsight)" if row.hindsight else row.rule for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    _cut_far_ends(axes, rows)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    limit = found.scenario.limit_tokens
    axes.set_xlabel(
        f"bill less that of a trigger at {limit / 1e3:,.0f}k, 90% interval by session "
        "(grey: covers 0)",
        fontsize=9,
    )
    return figure


def _colour(row: RuleResult) -> str:
    if not row.shown:
        return _GREY
    return _GREEN if row.relative < 0 else _RED


def _cut_far_ends(axes: Axes, rows: Sequence[RuleResult]) -> None:
    """Keep a rule that costs far more from pressing all others together."""
    low = min(row.interval[0] for row in rows)
    high = max(row.interval[1] for row in rows)
    reach = max(abs(low), 0.02)
    if high > reach:
        axes.set_xlim(1.1 * low, reach)
        for place, row in enumerate(rows):
            if row.relative > reach:
                axes.annotate(
                    f"{100 * row.relative:+.0f}% →", (reach, place), xytext=(-4, -3),
                    textcoords="offset points", ha="right", fontsize=8, color=_RED,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                )  # fmt: skip


def plot_contexts(sequences: Sequences, *, limit_tokens: float | None = None) -> Figure:
    """Draw the context over the requests of the main sessions that compacted most.

    Parameters
    ----------
    sequences : Sequences
        Whose largest six sessions are drawn, by compactions and then by requests.
    limit_tokens : float, optional
        A line to draw, such as the trigger's.
    """
    seen = observed_compactions(sequences)
    made = np.bincount(seen.unit, minlength=sequences.units)
    order = np.lexsort((-sequences.lengths, -made))[:MOST_SESSIONS].tolist()
    wide = min(2, len(order))
    high = -(-len(order) // wide)
    figure = RemainingFigure(figsize=(3.6 * wide + 0.4, 1.7 * high + 0.5), layout="constrained")
    grid = figure.subplots(high, wide, squeeze=False, sharey=True).ravel()
    for axes, unit in zip(grid, order, strict=False):
        _draw_contexts(axes, sequences, unit, limit_tokens)
    grid[0].set_ylim(0, 1.05 * _highest(sequences, order, limit_tokens))
    for axes in grid[len(order) :]:
        axes.set_axis_off()
    figure.supxlabel(
        "requests of the session (dots: turns begin; lines: the agent compacted; "
        "dashed: the trigger)",
        fontsize=8,
    )
    figure.supylabel("context, tokens", fontsize=9)
    return figure


def _highest(sequences: Sequences, units: Sequence[int], limit_tokens: float | None) -> float:
    begins, context = sequences.begins, sequences.context_tokens
    tops = (float(context[begins[unit] : begins[unit + 1]].max()) for unit in units)
    return max(limit_tokens or 0.0, *tops)


def _draw_contexts(axes: Axes, sequences: Sequences, unit: int, limit_tokens: float | None) -> None:
    rows = slice(int(sequences.begins[unit]), int(sequences.begins[unit + 1]))
    context = sequences.context_tokens[rows]
    number = np.arange(1, context.size + 1)
    axes.fill_between(number, context, color=_BLUE, alpha=0.15, linewidth=0)
    axes.plot(number, context, color=_BLUE, linewidth=1.0)
    opens = sequences.age[rows] == 0
    axes.plot(number[opens], context[opens], ".", color="black", markersize=3)
    fell = _falls(sequences, unit)
    axes.vlines(fell + 1, 0, context[fell - 1], color=_RED, linewidth=1.0)
    if limit_tokens is not None:
        axes.axhline(limit_tokens, color=_GREY, linewidth=0.8, linestyle="--")
    axes.set_title(
        f"{context.size:,} requests, {fell.size} compaction{'s' * (fell.size != 1)}",
        fontsize=8,
        loc="left",
    )
    axes.set_xlim(1, max(context.size, 2))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e3:,.0f}k"))
    axes.tick_params(labelsize=8)


def _falls(sequences: Sequences, unit: int) -> NDArray[np.int64]:
    """Return the places within a unit behind which the agent had compacted."""
    alone = sequences.chosen(np.arange(sequences.units) == unit)
    return observed_compactions(alone).row
