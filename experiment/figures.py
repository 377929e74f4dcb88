"""The picture of a sweep: quality and bill by documents, and both over the threshold.

Drawn without a display and without pyplot's global state, in the colours of Okabe and Ito.
"""

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from experiment.graph import ReportRun
from experiment.sweep import SWEPT, Sweep

__all__ = ["plot_sweep"]

#: Colour, line and mark of each arm: told apart in print and by colour-blind readers.
_STYLES = {
    "baseline": ("0.35", ":", "o"),
    "trimming": ("#E69F00", "-.", "s"),
    "naive": ("#D55E00", "--", "^"),
    "preserving": ("#0072B2", "-", "D"),
    "framework": ("#CC79A7", (0, (5, 1, 1, 1, 1, 1)), "v"),
}
_THOUSANDS = FuncFormatter(lambda value, _: f"{value / 1e3:,.0f}k")


def plot_sweep(found: Sweep, note: str = "") -> Figure:
    """Draw a sweep.

    Parameters
    ----------
    found : Sweep
    note : str
        What is said above: that the model is simulated, or which one it is.
    """
    panels = 3 if found.thresholds else 2
    figure = Figure(figsize=(3.7 * panels, 3.7), layout="constrained")
    axes = figure.subplots(1, panels)
    _draw_arms(axes[0], found, _score)
    axes[0].set_ylim(-0.03, 1.04)
    axes[0].set_ylabel("quality")
    axes[0].legend(frameon=False, fontsize=8, loc="lower left")
    _draw_arms(axes[1], found, _cost)
    axes[1].set_ylim(bottom=0)
    axes[1].set_ylabel("bill, base tokens")
    axes[1].yaxis.set_major_formatter(_THOUSANDS)
    if found.thresholds:
        _draw_thresholds(axes[2], found)
    if note:
        figure.suptitle(note, fontsize=9, x=0.01, ha="left")
    return figure


def _score(run: ReportRun) -> float:
    return run.quality.score


def _cost(run: ReportRun) -> float:
    return run.bill.cost


def _draw_arms(axes: Axes, found: Sweep, value: Callable[[ReportRun], float]) -> None:
    for arm in found.plan.arms:
        colour, line, mark = _STYLES[arm]
        runs = sorted(found.of_arm(arm), key=lambda one: one.setting.documents)
        axes.plot(
            [one.setting.documents for one in runs],
            [value(one) for one in runs],
            color=colour,
            linestyle=line,
            marker=mark,
            markersize=5,
            label=arm,
        )
    axes.set_xticks(sorted(found.plan.documents))
    axes.set_xlabel("injected documents")
    axes.grid(color="0.92")
    axes.set_axisbelow(True)


def _draw_thresholds(axes: Axes, found: Sweep) -> None:
    colour = _STYLES[SWEPT][0]
    runs = sorted(found.thresholds, key=lambda one: one.setting.threshold_tokens)
    at = [one.setting.threshold_tokens for one in runs]
    axes.plot(at, list(map(_score, runs)), color=colour, marker="D", markersize=5)
    axes.set_ylim(-0.03, 1.04)
    axes.set_ylabel(f"quality of {SWEPT} (line)", color=colour)
    axes.set_xlabel(f"threshold, tokens ({runs[0].setting.documents} documents)")
    axes.xaxis.set_major_formatter(_THOUSANDS)
    bills = axes.twinx()
    bills.plot(at, list(map(_cost, runs)), color="black", marker="x", linestyle="--")
    bills.set_ylim(bottom=0)
    bills.set_ylabel("bill (dashes)")
    bills.yaxis.set_major_formatter(_THOUSANDS)
