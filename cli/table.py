"""``compactuary table``: remaining calls by role."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from api.refresh import ALL_ROLES
from cli.ledger import open_ledger
from cli.options import AsJson, Db, ages_of
from cli.output import Format, print_json, print_markdown, print_rows, say
from cli.snapshot import current_snapshot, usual_model
from compactuary.errors import InputError, UnknownPriceError
from policy.break_even import break_even_requests
from policy.prices import GenaiPriceBook
from policy.question import Question
from policy.quote import quote
from policy.remaining_calls import DEFAULT_AGES, remaining_calls
from policy.snapshot import Snapshot

__all__ = ["table_command"]

#: Context at which the break-even of a table is computed where nobody names one.
TABLE_CONTEXT_TOKENS = 150_000
_WIDEST = 10_000
_NOTE = "~ beyond the open tail: the estimate is constant there"


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Requests that must remain for a compaction to pay, and where the number is from."""

    requests: float | None
    text: str


def table_command(
    db: Db = None,
    as_json: AsJson = False,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="Only this role; may be repeated.")
    ] = None,
    at: Annotated[str, typer.Option("--at", help="Calls made so far, i.")] = ",".join(
        map(str, DEFAULT_AGES)
    ),
    unit: Annotated[str, typer.Option(help="'tool_calls' or 'requests'.")] = "tool_calls",
    break_even: Annotated[
        float | None, typer.Option("--break-even", min=0, help="Requests that must remain (C/s).")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Whose prices give the break-even. Default: the commonest.")
    ] = None,
    context: Annotated[
        int, typer.Option("--context", min=0, help="Context tokens the break-even is computed at.")
    ] = TABLE_CONTEXT_TOKENS,
    how: Annotated[Format, typer.Option("--format", help="How to print.")] = Format.TEXT,
) -> None:
    """Show how many calls turns of each role still make, given the calls they have made.

    What lies above the break-even is bold: there, compacting pays on average.
    """
    ages = ages_of(at)
    if unit not in ("tool_calls", "requests"):
        raise typer.BadParameter("it is 'tool_calls' or 'requests'", param_hint="--unit")
    with open_ledger(db) as engine:
        snapshot = current_snapshot(engine)
        commonest = usual_model(engine)
    rows = _rows(snapshot, unit, ages, role)
    if as_json or how is Format.JSON:
        print_json(rows)
        return
    if not rows:
        say("No turn has ended in this ledger yet. Import logs: compactuary import PATH")
        return
    if how in (Format.CSV, Format.JSONL):
        flat = [_flat(row, ages) for row in rows]
        print_rows(list(flat[0]), flat, how)
        return
    line = _break_even(break_even, model or commonest, context)
    whole = snapshot.portfolio.get(unit)
    if whole is not None and not role:
        rows = [*rows, remaining_calls(whole, ages)]
    if how is Format.MARKDOWN:
        _print_markdown(rows, ages, line)
    else:
        _print_text(rows, ages, line)


def _rows(
    snapshot: Snapshot, unit: str, ages: Sequence[int], wanted: Sequence[str] | None
) -> list[dict[str, Any]]:
    tables = snapshot.tables.get(unit, {})
    for name in wanted or ():
        if name not in tables:
            known = ", ".join(sorted(tables)) or "none yet"
            raise InputError(
                "no turn of this role has ended",
                where="--role",
                value=name,
                remedy=f"Known roles: {known}.",
            )
    chosen = [table for name, table in tables.items() if not wanted or name in wanted]
    chosen.sort(key=lambda table: (-table.turns, table.role))
    return [remaining_calls(table, ages) for table in chosen]


def _break_even(given: float | None, model: str | None, context: int) -> BreakEven:
    if given is not None:
        if not math.isfinite(given):
            raise InputError(
                "not a number of requests",
                where="--break-even",
                value=given,
                remedy="Give C/s, such as 7.5.",
            )
        return BreakEven(given, f"a break-even of {given:g} requests")
    if model is None:
        return BreakEven(None, "no model in the ledger, so no break-even: name one with --model")
    question = Question(role="any", calls=0, context_tokens=context, model=model)
    try:
        quoted = quote(question, GenaiPriceBook(), at=datetime.now(UTC))
    except UnknownPriceError:
        return BreakEven(None, f"no price is known for {model}: give --break-even")
    value = break_even_requests(quoted.cost, quoted.saving)
    if value is None:
        return BreakEven(None, f"a compaction of {context:,} tokens saves nothing with {model}")
    after = quoted.sizes.context_after_tokens if quoted.sizes else 0
    return BreakEven(
        value,
        f"the break-even of {value:.1f} requests with {model}, {context:,} → {after:,} tokens",
    )


def _flat(row: dict[str, Any], ages: Sequence[int]) -> dict[str, Any]:
    flat = {name: row[name] for name in ("role", "turns", "mean", "p50")}
    for age in ages:
        for name in ("m", "lower", "upper", "at_risk"):
            flat[f"{name}_{age}"] = row[name][str(age)]
    return flat


def _cell(row: dict[str, Any], age: int) -> str:
    shown = f"{row['m'][str(age)]:.1f}"
    return f"{shown}~" if age in row["extrapolated"] else shown


def _pays(row: dict[str, Any], age: int, line: BreakEven) -> bool:
    rate = 1.0 if row["unit"] == "requests" else row["requests_per_call"] or 1.0
    return line.requests is not None and row["m"][str(age)] * rate > line.requests


def _head(ages: Sequence[int]) -> list[str]:
    return ["role", "turns", "mean", "p50", *(f"m({age})" for age in ages)]


def _print_markdown(rows: Sequence[dict[str, Any]], ages: Sequence[int], line: BreakEven) -> None:
    cells = []
    for row in rows:
        lives = [
            f"**{_cell(row, age)}**" if _pays(row, age, line) else _cell(row, age) for age in ages
        ]
        cells.append(
            [row["role"], str(row["turns"]), f"{row['mean']:.1f}", str(row["p50"]), *lives]
        )
    print_markdown(_head(ages), cells)
    sys.stdout.write(f"\n{_footer(line, bold=True)} {_NOTE}.\n")


def _print_text(rows: Sequence[dict[str, Any]], ages: Sequence[int], line: BreakEven) -> None:
    from rich.console import Console  # noqa: PLC0415 - JSON and CSV go without it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    terminal = sys.stdout.isatty()
    # As wide as the table needs: a narrow terminal wraps lines, where rich would cut digits off.
    console = Console(width=_WIDEST)
    unit = "tool calls" if rows[0]["unit"] == "tool_calls" else "requests"
    console.print(f"Remaining {unit}, given that a turn has made i", soft_wrap=True)
    table = Table()
    for name in _head(ages):
        table.add_column(name, justify="left" if name == "role" else "right", no_wrap=True)
    for row in rows:
        if row["role"] == ALL_ROLES:
            table.add_section()
        table.add_row(
            Text(row["role"]),
            f"{row['turns']:,}",
            f"{row['mean']:.1f}",
            str(row["p50"]),
            *(Text.from_markup(_styled(row, age, line)) for age in ages),
        )
    console.print(table)
    console.print(_footer(line, bold=terminal), highlight=False, markup=False, soft_wrap=True)
    if any(row["extrapolated"] for row in rows):
        console.print(f"{_NOTE}.", highlight=False, markup=False, soft_wrap=True)


def _styled(row: dict[str, Any], age: int, line: BreakEven) -> str:
    cell = _cell(row, age)
    return f"[bold green]{cell}[/]" if _pays(row, age, line) else cell


def _footer(line: BreakEven, *, bold: bool) -> str:
    """Return what the table is compared with, or why with nothing."""
    if line.requests is None:
        return f"{line.text[0].upper()}{line.text[1:]}."
    return f"{'Bold:' if bold else 'Compacting pays'} above {line.text}."
