"""A sweep as tables and sentences that fit a terminal of 80 columns."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from estimator.report_table import Cell, ReportTable
from experiment.graph import ReportRun
from experiment.quality import FACTS, Contradiction, ReadAgain
from experiment.sweep import SWEPT, Sweep
from experiment.sweep_payload import run_payload

__all__ = ["arms_table", "headlines", "thresholds_table", "trace_lines"]

_FIGURES = (
    *("quality", "repeated_reads", "contradictions", "facts_survived", "requests"),
    *("summary_calls", "cost", "summary_cost", "dollars"),
)
_HEADS = ("quality", "again", "contra", "facts", "calls", "sums", "bill", "of it", "$")
_CAPTION = (
    "Again: documents read again. Contra: statements that contradict an earlier section. Facts: "
    f"of {FACTS}, those the closing section still has right. Calls: requests of the agent; sums: "
    "calls for a summary. Bill: base tokens; of it: those calls."
)


def headlines(found: Sweep) -> list[str]:
    """Return what a sweep shows, a sentence or two each."""
    most = max(found.plan.documents)
    at_most = [found.run(arm, most) for arm in found.plan.arms]
    scores = ", ".join(f"{one.setting.arm} {one.quality.score:.2f}" for one in at_most)
    told = [f"Quality with {most} injected documents: {scores}."]
    told += list(_case(found, most))
    return told


def _case(found: Sweep, documents: int) -> Iterator[str]:
    """Say what the naive summary lost that the preserving one kept: one document, one statement."""
    if not {"naive", SWEPT} <= set(found.plan.arms):
        return
    naive, kept = found.run("naive", documents).quality, found.run(SWEPT, documents).quality
    kept_ids = {one.document for one in kept.read_again}
    again = next((one for one in naive.read_again if one.document not in kept_ids), None)
    if again:
        yield f"Naive {_again(again)}; {SWEPT} did not."
    kept_places = {(one.quantity, one.section) for one in kept.contradictions}
    against = next(
        (one for one in naive.contradictions if (one.quantity, one.section) not in kept_places),
        None,
    )
    if against:
        yield f"Naive {_against(against)}; {SWEPT} did not contradict it."


def _again(one: ReadAgain, *more: ReadAgain) -> str:
    documents = ", ".join(each.document for each in (one, *more))
    return f"read {documents} again at section {one.section}, first read at {one.first_section}"


def _against(one: Contradiction) -> str:
    return (
        f"states {one.quantity} = {one.value} in section {one.section}, where section "
        f"{one.first_section} says {one.first_value}"
    )


def trace_lines(found: Sweep) -> list[str]:
    """Return what each arm read again and contradicted, with the most documents."""
    most = max(found.plan.documents)
    lines = [f"Trace, {most} injected documents:"]
    for arm in found.plan.arms:
        quality = found.run(arm, most).quality
        together = groupby(quality.read_again, lambda one: (one.section, one.first_section))
        lines += [f"{arm}: {_again(*some)}" for _, some in together]
        lines += [f"{arm}: {_against(one)}" for one in quality.contradictions]
        if not quality.read_again and not quality.contradictions:
            lines.append(f"{arm}: nothing read again, nothing contradicted")
    return lines


def arms_table(found: Sweep) -> ReportTable:
    """Return one row an arm and number of documents."""
    labels = [(one.setting.arm, f"{one.setting.documents}") for one in found.runs]
    return _table(found.runs, ("arm", "docs"), labels, _CAPTION, ("arm", "documents"))


def thresholds_table(found: Sweep) -> ReportTable:
    """Return one row a threshold."""
    labels = [(f"{one.setting.threshold_tokens:,}",) for one in found.thresholds]
    documents = max(found.plan.documents)
    caption = f"Arm {SWEPT} with {documents} injected documents, by its threshold in tokens."
    return _table(found.thresholds, ("threshold",), labels, caption, ())


def _table(
    runs: Sequence[ReportRun],
    heads: tuple[str, ...],
    labels: Sequence[tuple[str, ...]],
    caption: str,
    names: tuple[str, ...],
) -> ReportTable:
    payloads = [run_payload(one) for one in runs]
    columns = (*names, *_FIGURES)
    return ReportTable(
        columns=columns,
        data=tuple(tuple(each[name] for name in columns) for each in payloads),
        heads=(*heads, *_HEADS),
        cells=tuple(
            (*map(Cell, label), *_cells(one)) for label, one in zip(labels, runs, strict=True)
        ),
        caption=caption,
    )


def _cells(run: ReportRun) -> tuple[Cell, ...]:
    quality, bill = run.quality, run.bill
    return (
        Cell(f"{quality.score:.2f}"),
        Cell(f"{len(quality.read_again)}"),
        Cell(f"{len(quality.contradictions)}"),
        Cell(f"{quality.facts_survived}"),
        Cell(f"{bill.requests}"),
        Cell(f"{bill.summary_calls}"),
        Cell(_amount(bill.cost)),
        Cell(_amount(bill.summary_cost)),
        Cell("-" if bill.dollars is None else f"{bill.dollars:,.2f}"),
    )


def _amount(tokens: float) -> str:
    return f"{tokens / 1e6:,.2f}M" if tokens >= 999_500 else f"{tokens / 1e3:,.0f}k"
