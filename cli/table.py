"""``compactuary table``: remaining calls by role, or the life table of one."""

import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.options import AsJson, Db, From, SkipCorrupt, ages_of
from cli.output import Format, print_json, print_rows, say
from cli.reading import open_report
from cli.report import ReportFormat, print_report
from compactuary.errors import InputError, UnknownPriceError
from compactuary.role_lives import (
    MOST_PANELS,
    TABLE_CONTEXT_TOKENS,
    BreakEven,
    Lives,
    commonest_model,
    model_quote,
    role_lives,
)
from compactuary.session_lives import clustered
from estimator.actuarial_table import actuarial_table, life_table_rows
from estimator.note_table import NOTE_AGES, UNITS, RoleLife, note_table
from estimator.report_table import ReportTable, plain_text
from policy.break_even import break_even_requests

__all__ = ["table_command"]

_MACHINE = (ReportFormat.CSV, ReportFormat.JSONL)
_NO_END_IN_LOGS = "No turn has ended in these logs yet."
_NO_END_IN_LEDGER = "No turn has ended in this ledger yet. Import logs: compactuary import PATH"


@dataclass(frozen=True, slots=True)
class Line:
    """The break-even of a table, and a sentence on where it is from; none where it was given."""

    requests: BreakEven
    source: str = ""


Unit = Literal["tool_calls", "requests"]
Roles = Annotated[list[str] | None, typer.Option("--role", help="Only this role; may be repeated.")]
Ages = Annotated[
    str | None,
    typer.Option("--at", help=f"Calls made so far, i. Default: {','.join(map(str, NOTE_AGES))}."),
]
ByModel = Annotated[bool, typer.Option("--by-model", help="One row for each model of a role.")]
Given = Annotated[
    float | None, typer.Option("--break-even", min=0, help="Requests that must remain (C/s).")
]
Model = Annotated[
    str | None, typer.Option(help="Whose prices give the break-even. Default: the commonest.")
]
Context = Annotated[
    int, typer.Option("--context", min=0, help="Context tokens the break-even is computed at.")
]
HalfLife = Annotated[
    float | None,
    typer.Option(
        "--decay", help="Turns of its role after which a turn counts half. Default: all alike."
    ),
]
OfOneRole = Annotated[
    bool, typer.Option("--life-table", help="Show the life table of one role: l, d, q, p, e.")
]
Detail = Annotated[
    bool, typer.Option("--detail", help="Print intervals and turns at risk beside m(i).")
]
BySession = Annotated[
    bool, typer.Option("--by-session", help="Intervals that take turns of a session as alike.")
]
Save = Annotated[
    Path | None,
    typer.Option("--save", help="Draw m(i) besides: a file that ends in .png, .svg or .pdf."),
]
How = Annotated[ReportFormat, typer.Option("--format", help="How to print.")]


def table_command(
    db: Db = None,
    as_json: AsJson = False,
    role: Roles = None,
    at: Ages = None,
    unit: Annotated[Unit, typer.Option(help="What is counted.")] = "tool_calls",
    by_model: ByModel = False,
    break_even: Given = None,
    model: Model = None,
    context: Context = TABLE_CONTEXT_TOKENS,
    decay: HalfLife = None,
    life_table: OfOneRole = False,
    detail: Detail = False,
    by_session: BySession = False,
    how: How = ReportFormat.TEXT,
    save: Save = None,
    from_: From = None,
    skip_corrupt: SkipCorrupt = False,
) -> None:
    """Show how many calls turns of each role have left.

    What lies above the break-even is bold: there, compacting pays on average.
    """
    ages = NOTE_AGES if at is None else ages_of(at)
    if life_table:
        _check_life_table(role, at, by_model=by_model)
    form = ReportFormat.JSON if as_json else how
    line = _line(break_even, model, context, by_model=by_model)
    with open_report(db, from_, skip_corrupt=skip_corrupt) as connection:
        if line is None:
            # JSON tells no break-even, and so needs no prices.
            silent = form is ReportFormat.JSON and save is None
            line = Line({}) if silent else _of_the_ledger(commonest_model(connection), context)
        lives = role_lives(
            connection,
            role,
            unit=unit,
            by_model=by_model,
            break_even=line.requests,
            context_tokens=context,
            half_life_turns=decay,
        )
        lives = clustered(connection, lives, unit, decay) if by_session else lives
    _refuse_without_end(lives, role)
    if save is not None:
        _draw(lives, role, unit, save)
    if life_table:
        _print_life_table(lives.roles[0], unit, decay, form)
    elif form is ReportFormat.JSON:
        print_json([_json_row(row, lives, ages, unit, decay) for row in lives.roles if row.life])
    elif not any(row.life for row in lives.roles):
        say(_NO_END_IN_LOGS if from_ else _NO_END_IN_LEDGER)
    else:
        # Whoever adds up what a machine reads must not count a turn twice.
        whole = None if form in _MACHINE else lives.whole
        report = note_table(
            lives.roles, whole=whole, ages=ages, unit=unit, detail=detail, half_life_turns=decay
        )
        print_report(_with_source(report, line, form), form)


def _check_life_table(roles: Sequence[str] | None, at: str | None, *, by_model: bool) -> None:
    if roles is None or len(roles) != 1:
        raise InputError(
            "a life table is that of one role",
            where="--life-table",
            value=roles,
            remedy="Name it with --role",
        )
    if at is not None or by_model:
        raise InputError(
            "a life table shows every age of a role, whatever its models",
            where="--at" if at is not None else "--by-model",
            value=at,
            remedy="Leave it out with --life-table",
        )


def _line(given: float | None, model: str | None, context: int, *, by_model: bool) -> Line | None:
    """Return the break-even that was asked for, or None for that of the ledger's model."""
    if given is not None:
        if not math.isfinite(given):
            raise InputError(
                "not a number of requests",
                where="--break-even",
                value=given,
                remedy="Give C/s, such as 7.5.",
            )
        return Line(given)
    if model is not None:
        return _priced(model, context)
    return Line(None, f"Break-evens: each row's model, {context:,} tokens.") if by_model else None


def _of_the_ledger(model: str | None, context: int) -> Line:
    if model is None:
        return Line({}, "No model in the ledger, so no break-even: name one with --model.")
    try:
        return _priced(model, context)
    except UnknownPriceError:
        return Line({}, f"No price is known for {model}: give --break-even.")


def _priced(model: str, context: int) -> Line:
    quoted = model_quote(model, context)
    value = break_even_requests(quoted.cost, quoted.saving)
    if value is None:
        return Line({}, f"A compaction of {context:,} tokens saves nothing with {model}.")
    after = quoted.sizes.context_after_tokens if quoted.sizes else 0
    return Line(value, f"Break-even: {model}, {context:,} → {after:,} tokens.")


def _refuse_without_end(lives: Lives, wanted: Sequence[str] | None) -> None:
    ended = {row.role for row in lives.roles if row.life}
    for name in wanted or ():
        if name not in ended:
            raise InputError(
                "no turn of this role has ended",
                where="--role",
                value=name,
                remedy="Leave it out, or see all roles: compactuary table.",
            )


def _json_row(
    row: RoleLife, lives: Lives, ages: Sequence[int], unit: str, decay: float | None
) -> dict[str, Any]:
    life = row.life
    assert life is not None  # noqa: S101 - rows without a life table are left out
    rows = {str(age): life.at(age) for age in ages}
    more: dict[str, Any] = {} if row.model is None else {"model": row.model}
    more |= {} if decay is None else {"half_life_turns": decay}
    return {
        "role": row.role,
        "turns": row.turns,
        "mean": life.overall_mean,
        "p50": life.whole_median.calls,
        "p50_extrapolated": life.whole_median.extrapolated,
        "m": {age: at.mean for age, at in rows.items()},
        "lower": {age: at.lower for age, at in rows.items()},
        "upper": {age: at.upper for age, at in rows.items()},
        "at_risk": {age: at.at_risk for age, at in rows.items()},
        "extrapolated": [at.age for at in rows.values() if at.extrapolated],
        "unit": unit,
        "requests_per_call": lives.paces[row.role, row.model],
        **more,
    }


def _with_source(report: ReportTable, line: Line, form: ReportFormat) -> ReportTable:
    """Add where the break-even is from; a pipe shows nothing bold, so there it is put in words."""
    report = replace(report, caption=f"{report.caption} {line.source}".strip())
    if form is not ReportFormat.TEXT or sys.stdout.isatty():
        return report
    plain = tuple(tuple(replace(cell, bold=False) for cell in row) for row in report.cells)
    return replace(
        report, cells=plain, caption=report.caption.replace("Bold:", "Compacting pays", 1)
    )


def _print_life_table(
    row: RoleLife, unit: str, half_life_turns: float | None, form: ReportFormat
) -> None:
    life = row.life
    assert life is not None  # noqa: S101 - a role without an ended turn was refused
    if form in (ReportFormat.JSON, ReportFormat.JSONL):
        rows = life_table_rows(life)
        print_rows(list(rows[0]), rows, Format(form.value))
        return
    report = actuarial_table(life, role=row.role, unit=UNITS[unit], half_life_turns=half_life_turns)
    print_report(report, form)


def _draw(lives: Lives, wanted: Sequence[str] | None, unit: str, save: Path) -> None:
    from estimator.plots import plot_remaining, save_figure  # noqa: PLC0415 - matplotlib is slow

    drawn = [replace(row, role=plain_text(_name(row))) for row in lives.roles]
    drawn = drawn if wanted else drawn[:MOST_PANELS]
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        target = save_figure(plot_remaining(drawn, unit=unit), save)
    # A font knows no emoji; whoever draws wants to know, once a glyph.
    for note in sorted({str(warning.message) for warning in noted}):
        say(f"note: {note}")
    most = f", of {len(lives.roles)} the {MOST_PANELS} with most turns"
    say(f"drew {target}{most if len(drawn) < len(lives.roles) else ''}")


def _name(row: RoleLife) -> str:
    return row.role if row.model is None else f"{row.role}, {row.model or 'no model'}"
