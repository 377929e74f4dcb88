"""Whether a role's turns are really of several kinds: log-rank test, Cox model, and a rule.

For reports only. Turns of one session are taken as independent, which they are not quite, so
small p-values are somewhat too small; and a daily test of this kind is no alarm.
"""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compactuary.errors import InputError
from estimator.histogram import Histogram
from estimator.life_table import life_table
from estimator.report_table import Cell, ReportTable, Value
from estimator.student_t import check_level

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Part", "Split", "hazard_ratio_pays", "log_rank", "split", "split_table"]

MIN_ENDS = 5
"""Ends a part needs to be tested; with fewer a hazard ratio says nothing, or is infinite."""

MAX_P = 0.01
# A large part has to differ by a quarter, a small one by half.
PAYING = ((1.25, 200), (1.5, 40))


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of turns within a role.

    Parameters
    ----------
    label : str
        The model, the project, the trigger or the first tool.
    turns : int
        Turns with at least one call.
    ends : int
        Ends at a call the turn was at risk for.
    mean, lower, upper : float or None
        m(0) with its interval, in calls; None without an end.
    hazard_ratio, hazard_ratio_lower, hazard_ratio_upper : float or None
        Cox's ratio of this part's hazard to the reference's with its interval; above 1 the part
        ends earlier. None for the reference, for a part that was not tested, and where the model
        has no finite answer.
    p : float or None
        Of the log-rank test against the reference.
    pays : bool
        Whether a table of its own pays for the part.
    """

    label: str
    turns: int
    ends: int
    mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    hazard_ratio: float | None = None
    hazard_ratio_lower: float | None = None
    hazard_ratio_upper: float | None = None
    p: float | None = None
    pays: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """What a split shows.

    Parameters
    ----------
    by : str
        What the turns were told apart by.
    parts : tuple of Part
        Largest first; the first is the reference of the others.
    chi2 : float or None
        The log-rank statistic over all tested parts; None where there are fewer than two.
    degrees_of_freedom : int
        Tested parts − 1.
    p : float or None
        Its p-value.
    pays : bool
        Whether one of the parts does.
    reason : str
        Why, in one sentence.
    level : float
        Two-sided level of the intervals.
    late_entries : int
        Turns observed from some call on; in the Cox model, not in the log-rank test.
    """

    by: str
    parts: tuple[Part, ...]
    chi2: float | None
    degrees_of_freedom: int
    p: float | None
    pays: bool
    reason: str
    level: float
    late_entries: int


def hazard_ratio_pays(hazard_ratio: float | None, turns: int) -> bool:
    """Apply the rule for a split: a ratio of 1.25 with 200 turns, or of 1.5 with 40.

    Parameters
    ----------
    hazard_ratio : float or None
        Either way round; None, no finite ratio, counts as large.
    turns : int
        Turns of the smaller of the two parts, which has to carry a table of its own.

    Notes
    -----
    The model, §2, which leaves open whose turns are meant.
    """
    size = math.inf if hazard_ratio is None else max(hazard_ratio, 1.0 / hazard_ratio)
    return any(size >= least and turns >= enough for least, enough in PAYING)


def log_rank(parts: Sequence[Histogram]) -> tuple[float, float]:
    """Compare the survival of several sets of turns.

    Parameters
    ----------
    parts : sequence of Histogram
        At least two. Turns that entered late are left out: the test has no place for them.

    Returns
    -------
    chi2, p : float
        The statistic, with parts − 1 degrees of freedom, and its p-value.

    Raises
    ------
    InputError
        If there are fewer than two parts, one of them has no end among its turns seen from the
        start, or turns have weights.

    References
    ----------
    .. [1] N. Mantel, "Evaluation of survival data and two new rank order statistics arising in
       its consideration", Cancer Chemotherapy Reports 50 (1966), 163-170.
    """
    from lifelines.statistics import multivariate_logrank_test  # noqa: PLC0415 - slow to import

    _refuse_weights(parts)
    seen = [_from_the_start(part) for part in parts]
    if len(seen) < 2 or not all(part.ends for part in seen):
        raise InputError(
            "a comparison needs two parts with an end in each",
            where="parts",
            value=[part.ends for part in seen],
            remedy="Leave out parts without an end",
        )
    rows = _rows(seen)
    result = multivariate_logrank_test(rows["exit"], rows["part"], rows["ended"], rows["count"])
    return float(result.test_statistic), float(result.p_value)


def split(parts: Mapping[str, Histogram], *, by: str, level: float = 0.9) -> Split:
    """Test whether the parts of a role differ enough for tables of their own.

    Parameters
    ----------
    parts : mapping of str to Histogram
        The role's turns by label.
    by : str
        What the labels are, such as 'model', for the sentence.
    level : float, default 0.9
        Two-sided level of the intervals.

    Returns
    -------
    Split
        Parts with fewer than 5 ends are listed and not tested. A part pays if the log-rank test
        over all parts and the one against the largest part both give p < .01, and its hazard
        ratio is at least 1.25 with 200 turns in the smaller of the two, or 1.5 with 40. The
        hazard ratios take about half a minute for a million turns.

    Raises
    ------
    InputError
        If there is no part, turns have weights, or `level` is not between 0 and 1.
    """
    check_level(level)
    if not parts:
        raise InputError(
            "no turn can be told apart", where=by, value=0, remedy="Split by something else"
        )
    _refuse_weights(parts.values())
    ordered = sorted(parts, key=lambda label: (-parts[label].turns_with_a_call, label))
    tested = [label for label in ordered if _from_the_start(parts[label]).ends >= MIN_ENDS]
    made = {label: _part(label, parts[label], level) for label in ordered}
    late = sum(int(part.count[part.entry > 0].sum()) for part in parts.values())
    if len(tested) < 2:
        reason = f"Fewer than two parts have {MIN_ENDS} ends: there is nothing to compare."
        return Split(by, tuple(made.values()), None, 0, None, False, reason, level, late)
    chi2, p = log_rank([parts[label] for label in tested])
    made |= _compared(parts, tested, made, p, level)
    leading = [made.pop(tested[0])]
    found = tuple(leading + list(made.values()))
    pays = any(part.pays for part in found)
    reason = _reason(found, by, p)
    return Split(by, found, chi2, len(tested) - 1, p, pays, reason, level, late)


def _part(label: str, histogram: Histogram, level: float) -> Part:
    part = Part(label, int(histogram.turns_with_a_call), int(histogram.ends))
    if not histogram.ends:
        return part
    first = life_table(histogram, level=level).at(0)
    return replace(part, mean=first.mean, lower=first.lower, upper=first.upper)


def _compared(
    parts: Mapping[str, Histogram],
    tested: Sequence[str],
    made: Mapping[str, Part],
    p: float,
    level: float,
) -> dict[str, Part]:
    """Compare every tested part with the first of them, the largest."""
    reference, *others = tested
    ratios = _hazard_ratios([parts[label] for label in tested], level)
    compared = {}
    for label, (ratio, lower, upper) in zip(others, ratios, strict=True):
        own_p = log_rank([parts[reference], parts[label]])[1] if len(tested) > 2 else p
        turns = min(made[label].turns, made[reference].turns)
        pays = p < MAX_P and own_p < MAX_P and hazard_ratio_pays(ratio, turns)
        compared[label] = replace(
            made[label],
            hazard_ratio=ratio,
            hazard_ratio_lower=lower,
            hazard_ratio_upper=upper,
            p=own_p,
            pays=pays,
        )
    return compared


def _hazard_ratios(
    parts: Sequence[Histogram], level: float
) -> list[tuple[float | None, float | None, float | None]]:
    """Cox's hazard ratios of all parts but the first to the first, ties after Efron."""
    from lifelines import CoxPHFitter  # noqa: PLC0415 - slow to import
    from lifelines.exceptions import ConvergenceError, ConvergenceWarning  # noqa: PLC0415

    cells = _rows(parts)
    # One row a turn: the fitter takes the ties within a weighted row for a single end.
    rows = cells.loc[cells.index.repeat(cells["count"])].drop(columns="count")
    names = [f"part {place}" for place in range(1, len(parts))]
    for place, name in enumerate(names, start=1):
        rows[name] = (rows["part"] == place).astype(float)
    fitter = CoxPHFitter(alpha=1 - level)
    try:
        with warnings.catch_warnings():
            # Parts that do not overlap have no finite ratio; the fitter warns or gives up.
            warnings.simplefilter("error", ConvergenceWarning)
            fitter.fit(rows.drop(columns="part"), "exit", "ended", entry_col="entry")
    except (ConvergenceError, ConvergenceWarning):
        return [(None, None, None)] * len(names)
    summary = fitter.summary
    columns = ["exp(coef)", *(name for name in summary.columns if name.startswith("exp(coef) "))]
    ratios = [[float(value) for value in summary.loc[name, columns]] for name in names]
    return [(ratio, lower, upper) for ratio, lower, upper in ratios]


def _from_the_start(part: Histogram) -> Histogram:
    seen = part.entry == 0
    return Histogram(part.entry[seen], part.exit[seen], part.ended[seen], part.count[seen])


def _refuse_weights(parts: Iterable[Histogram]) -> None:
    if any(part.squared is not None for part in parts):
        raise InputError(
            "the turns have weights, and the tests' variances are those of counts",
            where="parts",
            remedy="Compare raw histograms, not decayed ones",
        )


def _rows(parts: Sequence[Histogram]) -> "DataFrame":
    """Cells with exposure beyond call 0, as lifelines takes them; `part` is the place."""
    from pandas import DataFrame, concat  # noqa: PLC0415 - slow to import

    frames = []
    for place, part in enumerate(parts):
        kept = part.exit > part.entry
        columns = {name: getattr(part, name)[kept] for name in ("entry", "exit", "ended", "count")}
        frames.append(DataFrame({**columns, "part": place}))
    return concat(frames, ignore_index=True)


def _reason(parts: Sequence[Part], by: str, p: float) -> str:
    paying = [part for part in parts if part.pays]
    by = by.replace("_", " ")
    if paying:
        best = min(paying, key=lambda part: part.p or 0.0)
        ratio = (
            "no finite hazard ratio"
            if best.hazard_ratio is None
            else (f"hazard ratio {best.hazard_ratio:.2f}")
        )
        return (
            f"Splitting by {by} pays: {best.label} against {parts[0].label}, {ratio} with "
            f"{best.turns:,} turns, log-rank p = {best.p:.2g}."
        )
    if p >= MAX_P:
        return f"Splitting by {by} does not pay: log-rank p = {p:.2g} is not below {MAX_P:g}."
    return (
        f"Splitting by {by} does not pay: the parts differ (log-rank p = {p:.2g}), but no part "
        f"has a hazard ratio of 1.25 with 200 turns, or of 1.5 with 40, of its own."
    )


_COLUMNS = (
    "part", "turns", "ends", "mean", "lower", "upper", "hazard_ratio", "hazard_ratio_lower",
    "hazard_ratio_upper", "p", "pays",
)  # fmt: skip


def split_table(found: Split, *, role: str, unknown_turns: int = 0) -> ReportTable:
    """Lay out a split.

    Parameters
    ----------
    found : Split
    role : str
        Whose turns were split, for the caption.
    unknown_turns : int, default 0
        Turns that could not be told apart, for the caption.

    Returns
    -------
    ReportTable
        One row a part: turns, ends, m(0) with its interval, hazard ratio with its interval and
        log-rank p, both against the first part; the parts that pay are bold.
    """
    level = f"{found.level:.0%}"
    caption = [f"Turns of {role} by {found.by}.", found.reason]
    if found.chi2 is not None:
        caption.append(
            f"Log-rank over all tested parts: chi-squared {found.chi2:.2f}, "
            f"p = {found.p:.2g}, degrees of freedom: {found.degrees_of_freedom}."
        )
    caption.append(
        f"m(0) in calls and hazard ratio (Cox) with {level} intervals; ratio and log-rank p "
        f"against the first part, above 1 ends earlier. Bold: a table of its own pays."
    )
    if found.late_entries:
        caption.append(f"{found.late_entries:,} turns seen from a later call on: in Cox only.")
    if unknown_turns:
        caption.append(f"{unknown_turns:,} turns tell no {found.by.replace('_', ' ')}: left out.")
    return ReportTable(
        columns=_COLUMNS,
        data=tuple(_data(part) for part in found.parts),
        heads=(found.by.replace("_", " "), "turns", "ends", "m(0)", "hazard ratio", "p"),
        cells=tuple(_cells(part) for part in found.parts),
        caption=" ".join(caption),
    )


def _data(part: Part) -> tuple[Value, ...]:
    return (part.label, *(getattr(part, name) for name in _COLUMNS[1:]))


def _cells(part: Part) -> tuple[Cell, ...]:
    return (
        Cell(part.label, bold=part.pays),
        Cell(f"{part.turns:,}"),
        Cell(f"{part.ends:,}"),
        _bounded(part.mean, part.lower, part.upper, digits=1),
        _bounded(part.hazard_ratio, part.hazard_ratio_lower, part.hazard_ratio_upper, digits=2),
        Cell("" if part.p is None else f"{part.p:.2g}"),
    )


def _bounded(value: float | None, lower: float | None, upper: float | None, *, digits: int) -> Cell:
    if value is None:
        return Cell("")
    return Cell(f"{value:,.{digits}f}", f"({lower:,.{digits}f}–{upper:,.{digits}f})")
