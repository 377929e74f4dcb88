"""An audit as tables and sentences that fit a terminal of 80 columns."""

from collections.abc import Sequence

from backtest.audit import Audit, AuditedCompaction
from backtest.audit_payload import compaction_payload
from backtest.audit_summary import AuditSummary, CallsAhead, GroupSummary, Interval
from backtest.crossing import Crossing
from backtest.short_name import short_name
from estimator.report_table import Cell, ReportTable, Value

__all__ = ["ahead_table", "compactions_table", "groups_table", "headlines"]

_GROUPS = ("role", "trigger", "strategy", "model", "month", "project")
_UNKNOWN = "-"
#: Longer names are shortened, so that a row fits a terminal of 80 columns.
_WIDEST_NAME = 26


def headlines(audited: Audit, summary: AuditSummary) -> list[str]:
    """Return what the audit found, a sentence or two each."""
    whole, idle = summary.whole, summary.idle
    found = [
        (
            f"{whole.compactions:,} compactions in {whole.sessions:,} sessions, judged to the end "
            f"of the {audited.horizon}: {whole.paid:,} paid, {whole.lost:,} lost, "
            f"{whole.undecided:,} undecided, {whole.unpriced:,} without a price."
        ),
        _paid_line(whole),
        _crossing_line(summary),
    ]
    if idle.compactions:
        found.append(
            f"Idle ones (between turns, by hand or on an expired cache): {idle.compactions:,}, "
            f"{idle.paid:,} paid, {idle.lost:,} lost; {summary.never_resumed:,} of them were never "
            "followed by a request."
        )
    if summary.rework is not None and whole.unpriced < whole.compactions:
        found.append(
            f"Rework: the next ten requests grew by a median of {summary.rework[1]:+,.0f} tokens "
            f"beyond the usual; with it, net {_amount(whole.net_with_rework)} instead of "
            f"{_amount(whole.net)}."
        )
    return found + _unpriced(audited.compactions)


def groups_table(summary: AuditSummary) -> ReportTable:
    """Return one row a role, trigger, strategy, model, month and project; idle ones, and all."""
    rows = [
        (kind, group)
        for kind in _GROUPS
        for group in summary.groups[kind]
        if len(summary.groups[kind]) > 1 or kind == "role"
    ]
    rows += [("idle", summary.idle)] if summary.idle.compactions else []
    rows.append(("all", summary.whole))
    columns = (
        "by name compactions sessions paid lost undecided unpriced share_paid share_lower "
        "share_upper net net_lower net_upper net_dollars hit_worth_misses"
    )
    return ReportTable(
        columns=tuple(columns.split()),
        data=tuple(_group_data(kind, group) for kind, group in rows),
        heads=("by", "", "p/l/u", "% paid", "net"),
        cells=tuple(_group_cells(kind, group) for kind, group in rows),
        caption="p/l/u: paid, lost, undecided. Kind: how the context was made smaller. Intervals: "
        "90%, by session. Net in base tokens; ≈0: no difference shown, its interval covers 0.",
        text_columns=2,
        total=True,
    )


def ahead_table(summary: AuditSummary) -> ReportTable:
    """Return the share that paid by calls and by requests ahead."""
    pairs = list(zip(summary.ahead["calls"], summary.ahead["requests"], strict=True))
    return ReportTable(
        columns=(
            *("first", "last", "by_calls", "paid_by_calls", "share_by_calls"),
            *("by_requests", "paid_by_requests", "share_by_requests"),
        ),
        data=tuple(
            (
                *(calls.first, calls.last),
                *(calls.compactions, calls.paid, calls.share_paid),
                *(requests.compactions, requests.paid, requests.share_paid),
            )
            for calls, requests in pairs
        ),
        heads=("ahead", "by calls", "% paid", "by requests", "% paid"),
        cells=tuple(
            (Cell(_range(calls)), *_ahead_cells(calls), *_ahead_cells(requests))
            for calls, requests in pairs
        ),
        caption="Calls and requests that followed; only where their number is known to the end.",
    )


def compactions_table(audited: Audit) -> ReportTable:
    """Return one row a compaction."""
    rows = audited.compactions
    records = [_flat(one) for one in rows]
    columns = tuple(records[0]) if records else ()
    return ReportTable(
        columns=columns,
        data=tuple(tuple(record.values()) for record in records),
        heads=("at", "role", "trigger", "context, k", "ahead", "C/s", "net", "verdict"),
        cells=tuple(_compaction_cells(one) for one in rows),
        caption="Ahead: requests counted, + where more may have followed. C/s: those needed. "
        "Net: n·s - C in base tokens.",
        text_columns=3,
    )


def _paid_line(whole: GroupSummary) -> str:
    if whole.share_paid is None:
        return "No share can be told: none was seen far enough."
    told = [f"Paid: {whole.share_paid:.0%}"]
    if whole.share_interval_by_session and whole.share_interval:
        told.append(
            f"{_percent(whole.share_interval_by_session)} by session, "
            f"{_percent(whole.share_interval)} one by one"
        )
    net = f"Net: {_amount(whole.net)} base tokens"
    if whole.net_dollars is not None:
        net += f" ({whole.net_dollars:+,.2f} dollars)"
    if whole.net_interval is not None:
        shown = "" if whole.shows_difference else ", so no difference is shown"
        size, unit = _unit(max(whole.net_interval, key=abs))
        net += f", 90% {_span(size, whole.net_interval)}{unit}{shown}"
    worth = whole.hit_worth_misses
    hit = "" if worth is None else f" One that paid was worth {worth:.1f} that lost."
    return f"{', 90% '.join(told)}. {net}.{hit}"


def _crossing_line(summary: AuditSummary) -> str:
    told = [_crossing(summary.crossings[unit], unit) for unit in ("requests", "calls")]
    needed = summary.break_even
    own = (
        f" Their own C/s: median {needed[1]:.1f} requests, half of them {needed[0]:.1f} to "
        f"{needed[2]:.1f}."
        if needed
        else ""
    )
    return f"P(paid) crosses one half {'; '.join(told)}.{own}"


def _crossing(found: Crossing, unit: str) -> str:
    if found.reason:
        return f"nowhere by {unit}: {found.reason}"
    upper = "no bound" if found.upper is None else f"{found.upper:.1f}"
    interval = f"[{found.lower:.1f}, {upper}]"
    if found.calls is None:
        return (
            f"between {found.most_lost} (none paid up to there) and {found.least_paid} (all paid "
            f"from there on) {unit} ahead, 90% {interval}"
        )
    return f"at {found.calls:.1f} {unit} ahead, 90% {interval}"


def _unpriced(rows: Sequence[AuditedCompaction]) -> list[str]:
    problems: dict[str, int] = {}
    for one in rows:
        if one.problem:
            problems[one.problem] = problems.get(one.problem, 0) + 1
    return [f"Not judged: {count:,}. {problem}" for problem, count in problems.items()]


def _group_data(kind: str, group: GroupSummary) -> tuple[Value, ...]:
    return (
        kind,
        group.name,
        group.compactions,
        group.sessions,
        group.paid,
        group.lost,
        group.undecided,
        group.unpriced,
        group.share_paid,
        *(group.share_interval_by_session or (None, None)),
        group.net,
        *(group.net_interval or (None, None)),
        group.net_dollars,
        group.hit_worth_misses,
    )


def _group_cells(kind: str, group: GroupSummary) -> tuple[Cell, ...]:
    name = "" if kind == group.name else short_name(group.name, _WIDEST_NAME)
    kind = "kind" if kind == "strategy" else kind
    net = _net_cell(group)
    counts = f"{group.paid}/{group.lost}/{group.undecided}"
    share = _share_cell(group.share_paid, group.share_interval_by_session)
    return (Cell(kind), Cell(name), Cell(counts), share, net)


def _net_cell(group: GroupSummary) -> Cell:
    interval = group.net_interval
    if group.unpriced == group.compactions:
        return Cell(_UNKNOWN)
    if interval is None:
        return Cell(_amount(group.net))
    size, unit = _unit(max((group.net, *interval), key=abs))
    if not group.shows_difference:
        return Cell("≈0", f"{_span(size, interval)}{unit}")
    return Cell(f"{_number(group.net, size, '+')}{unit}", _span(size, interval))


def _ahead_cells(one: CallsAhead) -> tuple[Cell, Cell]:
    return Cell(f"{one.compactions:,}"), _share_cell(one.share_paid, one.interval)


def _share_cell(share: float | None, interval: Interval | None) -> Cell:
    if share is None:
        return Cell(_UNKNOWN)
    return Cell(f"{100 * share:.0f}", "" if interval is None else _percent(interval, ""))


def _range(one: CallsAhead) -> str:
    if one.last is None:
        return f"{one.first} and more"
    return str(one.first) if one.first == one.last else f"{one.first} to {one.last}"


def _compaction_cells(one: AuditedCompaction) -> tuple[Cell, ...]:
    case, remaining = one.case, one.remaining
    record = compaction_payload(one)
    after = _UNKNOWN if case.context_after is None else f"{case.context_after / 1e3:.0f}"
    before = _UNKNOWN if case.context_before is None else f"{case.context_before / 1e3:.0f}"
    needed = one.break_even
    return (
        Cell((record["at"] or _UNKNOWN)[:10]),
        Cell(case.role),
        Cell(case.trigger or _UNKNOWN),
        Cell(f"{before} → {after}"),
        Cell(f"{remaining.counted_requests:,}{'' if remaining.final else '+'}"),
        Cell(_UNKNOWN if needed is None else f"{needed:.1f}"),
        Cell(_UNKNOWN if one.net is None else _amount(one.net)),
        Cell(one.verdict or "no price", bold=one.verdict == "paid"),
    )


def _flat(one: AuditedCompaction) -> dict[str, Value]:
    """Return a compaction as one row: what lies inside others under both names."""
    row: dict[str, Value] = {}
    for name, value in compaction_payload(one).items():
        if name == "remaining":
            row |= {f"remaining_{inner}": told for inner, told in value.items()}
        elif name != "terms":
            row[name] = value
    return row


def _amount(tokens: float) -> str:
    size, unit = _unit(tokens)
    return f"{_number(tokens, size, '+')}{unit}"


def _span(size: float, interval: Interval) -> str:
    return f"[{_number(interval[0], size)}, {_number(interval[1], size)}]"


def _number(tokens: float, size: float, sign: str = "-") -> str:
    digits = 1 if size >= 1e6 and abs(tokens) < 100 * size else 0
    return f"{tokens / size:{sign},.{digits}f}"


def _unit(tokens: float) -> tuple[float, str]:
    sizes = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
    return next(((size, unit) for size, unit in sizes if abs(tokens) >= size), (1.0, ""))


def _percent(interval: Interval, sign: str = "%") -> str:
    return f"[{100 * interval[0]:.0f}{sign}, {100 * interval[1]:.0f}{sign}]"
