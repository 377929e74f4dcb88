"""Curves as text: a letter for each arm, in a column for each number of documents."""

from collections.abc import Mapping, Sequence

from experiment.arms import ARMS
from experiment.sweep import Sweep

__all__ = ["bill_curves", "letter_curves", "quality_curves"]

_STEPS = 10
_COLUMN = 8


def quality_curves(found: Sweep) -> str:
    """Draw quality by documents."""
    series = {arm: [one.quality.score for one in found.of_arm(arm)] for arm in found.plan.arms}
    ticks = [f"{step / _STEPS:.1f}" for step in range(_STEPS + 1)]
    return letter_curves("quality", series, found.plan.documents, 1.0, ticks)


def bill_curves(found: Sweep) -> str:
    """Draw the bill by documents."""
    series = {arm: [one.bill.cost for one in found.of_arm(arm)] for arm in found.plan.arms}
    top = max(max(values) for values in series.values()) or 1.0
    ticks = [f"{top * step / _STEPS / 1e3:,.0f}k" for step in range(_STEPS + 1)]
    return letter_curves("bill, base tokens", series, found.plan.documents, top, ticks)


def letter_curves(
    title: str,
    series: Mapping[str, Sequence[float]],
    documents: Sequence[int],
    top: float,
    ticks: Sequence[str],
) -> str:
    """Draw curves with letters.

    Parameters
    ----------
    title : str
        What goes up.
    series : mapping of str to sequence of float
        Values by arm, one for each entry of `documents`, from 0 to `top`.
    documents : sequence of int
    top : float
        Value of the uppermost line.
    ticks : sequence of str
        What stands before each line, the lowest first.

    Returns
    -------
    str
        Lines of text, the last one ended. An arm's letter is the first of its name; those that
        fall on one place stand beside each other.
    """
    steps = len(ticks) - 1
    cells: dict[tuple[int, int], str] = {}
    for arm in sorted(series, key=ARMS.index):
        for column, value in enumerate(series[arm]):
            place = round(steps * value / top), column
            cells[place] = cells.get(place, "") + arm[0]
    width = max(map(len, ticks))
    lines = [title]
    for step in range(steps, -1, -1):
        row = "".join(f"{cells.get((step, k), ''):<{_COLUMN}}" for k in range(len(documents)))
        lines.append(f"{ticks[step]:>{width}} | {row}".rstrip())
    lines.append(f"{'':>{width}} +-{'-' * (_COLUMN * len(documents) - 1)}")
    axis = "".join(f"{count:<{_COLUMN}}" for count in documents)
    lines.append(f"{'':>{width}}   {axis.rstrip()} injected documents")
    legend = ", ".join(f"{arm[0]} {arm}" for arm in sorted(series, key=ARMS.index))
    return "\n".join([*lines, f"{'':>{width}}   {legend}", ""])
