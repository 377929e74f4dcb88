"""A backtest as tables and sentences that fit a terminal of 80 columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from backtest.backtest import Backtest, RuleResult
from backtest.backtest_payload import role_payload, rule_payload
from backtest.role_savings import WITH_M, WITHOUT_M, RoleSaving
from backtest.sensitivity import Run
from backtest.short_name import short_name
from estimator.report_table import Cell, ReportTable, Value

__all__ = ["backtest_headlines", "roles_table", "rules_table", "runs_table"]

_UNKNOWN = "-"
_WIDEST_ROLE, _WIDEST_RUN = 24, 22
_SWITCH = {"no difference shown": "?", "nothing to decide": "=", "too few sessions": "few"}


def backtest_headlines(found: Backtest) -> list[str]:
    """Return what the backtest found, a sentence or two each."""
    scored = found.trial.scored
    sessions = np.unique(np.array(found.sequences.session)[scored]).size
    told = [
        (
            f"{found.sequences.requests:,} requests in {len(set(found.sequences.session)):,} "
            f"sessions; billed on {int(found.sequences.lengths[scored].sum()):,} requests in "
            f"{sessions:,} sessions, by {found.options.split}, to the end of the "
            f"{found.options.horizon}."
        )
    ]
    usable = [one for one in found.rules if not one.hindsight]
    best = usable[0]
    hindsight, ceiling = found.rules[-2:]
    trigger = f"the trigger at {found.scenario.limit_tokens / 1e3:,.0f}k"
    share = "" if best.share is None else f", {best.share:.0%} of what a clairvoyant saves"
    told.append(
        f"Cheapest: {best.rule}, {_difference(best.relative, best.interval)} of the bill of "
        f"{trigger}{share}{_doubt(best)}."
    )
    told.append(
        f"The best fixed threshold, chosen in hindsight ({_thresholds(found)}): "
        f"{_difference(hindsight.relative, hindsight.interval)}. {best.rule} less that: "
        f"{_difference(best.over_best, best.over_best_interval)}"
        + ("." if _apart(best.over_best_interval) else ", so no difference is shown.")
    )
    told.append(f"A clairvoyant: {_difference(ceiling.relative, ceiling.interval)}.")
    return told


def rules_table(found: Backtest) -> ReportTable:
    """Return one row a rule, least cost first; then the baseline, and what hindsight chose."""
    usable = [one for one in found.rules if not one.hindsight]
    rows = [*usable, found.baseline, *found.rules[-2:]]
    records = [_flat(rule_payload(one)) for one in rows]
    return ReportTable(
        columns=tuple(records[0]),
        data=tuple(tuple(record.values()) for record in records),
        heads=("rule", "bill, %", "of best", "cost", "dollars", "made", "paid"),
        cells=tuple(_rule_cells(one, found) for one in rows),
        caption="Bill: less that of the trigger, 90% interval paired by session; ≈0: no difference "
        "shown, the interval covers 0. Bold: cheaper, and so for all rules at once (95%). Of best: "
        "share of the clairvoyant's saving. Cost: base tokens. Made: compactions; paid: % of them "
        "that saved more than they cost. Best threshold and clairvoyant: chosen in hindsight.",
    )


def roles_table(rows: Sequence[RoleSaving]) -> ReportTable:
    """Return one row a role: what the rule would have saved, and whether m matters."""
    records = [_flat(role_payload(one)) for one in rows]
    rule = rows[0].rule if rows else ""
    return ReportTable(
        columns=tuple(records[0]) if records else (),
        data=tuple(tuple(record.values()) for record in records),
        heads=("role", "turns", "bill, %", "saving", "switch", "m, %"),
        cells=tuple(_role_cells(one) for one in rows),
        caption=f"Bill: under {rule}, less that of the trigger. Saving: base tokens of as many "
        "turns again, 90% interval by session. Switch: on or off where that holds for all roles "
        "at once (95%); ?: no difference shown; =: nothing to decide, as no context gets so far; "
        f"few: in under five sessions. m: {WITH_M} less "
        f"{WITHOUT_M}, which differ in m(i) alone; =: no decision changed; ≈0: none shown.",
    )


def runs_table(found: Backtest, runs: Sequence[Run]) -> ReportTable:
    """Return one row an assumption: the rule that was cheapest, and the one that then is."""
    best = next(one.rule for one in found.rules if not one.hindsight)
    told = [Run("as asked", "", (found.baseline, *found.rules)), *runs]
    data, cells = [], []
    for run in told:
        row, printed = _run_row(run, best)
        data.append(row)
        cells.append(printed)
    return ReportTable(
        columns=(
            *("kind", "name", "rule", "relative", "lower", "upper"),
            *("cheapest", "cheapest_relative", "cheapest_lower", "cheapest_upper"),
            *("best_threshold_relative", "clairvoyant_relative", "problem"),
        ),
        data=tuple(data),
        heads=("run", f"{best}, %", "cheapest", "bill, %", "fixed"),
        cells=tuple(cells),
        caption="Bill: less that of the trigger, 90% interval. Project: decided by rules that know "
        "the others too; without: fitted and billed without it. Fixed: the best fixed "
        "threshold in hindsight.",
    )


def _run_row(run: Run, best: str) -> tuple[tuple[Value, ...], tuple[Cell, ...]]:
    label = Cell(_shortened(f"{run.kind} {run.name}".strip(), run))
    if run.problem:
        empty: tuple[Value, ...] = (None,) * 9
        unknown = Cell(_UNKNOWN)
        row = (run.kind, run.name, best, *empty, run.problem)
        return row, (label, unknown, Cell("not made"), unknown, unknown)
    by_name = {one.rule: one for one in run.rules}
    own, hindsight, ceiling = by_name[best], run.rules[-2], run.rules[-1]
    least = next(one for one in run.rules[1:] if not one.hindsight)
    row = (
        *(run.kind, run.name, best, own.relative, *own.interval),
        *(least.rule, least.relative, *least.interval),
        *(hindsight.relative, ceiling.relative, None),
    )
    cells = (label, _bill_cell(own), Cell(least.rule), Cell(f"{100 * least.relative:+.1f}"))
    return row, (*cells, Cell(f"{100 * hindsight.relative:+.1f}"))


def _shortened(label: str, run: Run) -> str:
    label = run.name if run.kind == "sizes" else label
    return short_name(label, _WIDEST_RUN)


def _rule_cells(one: RuleResult, found: Backtest) -> tuple[Cell, ...]:
    base = one is found.baseline
    name = f"{one.rule} {found.scenario.limit_tokens / 1e3:,.0f}k" if base else one.rule
    return (
        Cell(name),
        Cell("0.0") if base else _bill_cell(one),
        Cell(_UNKNOWN if one.share is None else f"{one.share:.2f}"),
        Cell(_amount(one.cost)),
        Cell(_UNKNOWN if one.dollars is None else f"{one.dollars:,.2f}"),
        Cell(_UNKNOWN if one.compactions is None else f"{one.compactions:,.0f}"),
        Cell(_UNKNOWN if one.share_paid is None else f"{100 * one.share_paid:.0f}"),
    )


def _bill_cell(one: RuleResult) -> Cell:
    span = _span(one.interval)
    if not one.shown:
        return Cell("≈0", span)
    return Cell(f"{100 * one.relative:+.1f}", span, bold=one.shown_together and one.relative < 0)


def _role_cells(one: RoleSaving) -> tuple[Cell, ...]:
    low, high = one.saving_interval
    size, unit = _unit(max(abs(low), abs(high), abs(one.saving)))
    span = f"[{_number(low, size)}, {_number(high, size)}]"
    switch = _SWITCH.get(one.verdict, one.verdict)
    if one.m_matters is None:
        span, gained = "", Cell(_UNKNOWN)
    elif one.with_m == 0.0 and one.with_m_interval == (0.0, 0.0):
        gained = Cell("=")
    elif not _apart(one.with_m_interval):
        gained = Cell("≈0")
    else:
        gained = Cell(f"{100 * one.with_m:+.1f}")
    return (
        Cell(short_name(one.role, _WIDEST_ROLE)),
        Cell(f"{one.turns:,}"),
        Cell(f"{100 * one.relative:+.1f}"),
        Cell(f"{_number(one.saving, size)}{unit}", span),
        Cell(switch, bold=one.verdict == "on"),
        gained,
    )


def _thresholds(found: Backtest) -> str:
    told = sorted({int(tokens // 1_000) for tokens in found.trial.best_tokens})
    return f"{told[0]}k" if len(told) == 1 else f"{told[0]}k to {told[-1]}k"


def _doubt(one: RuleResult) -> str:
    if not one.shown:
        return "; no difference is shown"
    return "" if one.shown_together else "; not shown for all rules at once"


def _apart(interval: tuple[float, float]) -> bool:
    return interval[0] > 0 or interval[1] < 0


def _difference(share: float, interval: tuple[float, float]) -> str:
    return f"{100 * share:+.1f}%, 90% {_span(interval)}"


def _span(interval: tuple[float, float]) -> str:
    return f"[{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]"


def _flat(payload: Mapping[str, Any]) -> dict[str, Value]:
    """Return a row of single values: an interval is its two ends."""
    row: dict[str, Value] = {}
    for name, value in payload.items():
        if isinstance(value, list):
            row |= {f"{name}_lower": value[0], f"{name}_upper": value[1]}
        else:
            row[name] = value
    return row


def _amount(tokens: float) -> str:
    size, unit = _unit(abs(tokens))
    return f"{_number(tokens, size)}{unit}"


def _number(tokens: float, size: float) -> str:
    digits = 1 if size > 1 and abs(tokens) < 100 * size else 0
    # No minus before a rounded nothing.
    return f"{round(tokens / size, digits) + 0.0:,.{digits}f}"


def _unit(tokens: float) -> tuple[float, str]:
    sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    return next(((size, unit) for size, unit in sizes if tokens >= size), (1.0, ""))
