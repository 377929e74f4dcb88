"""``compactuary prices``: what a model's tokens weigh."""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.options import AsJson, Db
from cli.output import print_json
from ledger.clock import moment
from policy.prices import GenaiPriceBook

__all__ = ["prices_command"]


def prices_command(
    model: Annotated[str, typer.Argument(help="A model's name or alias.")],
    provider: Annotated[str | None, typer.Option(help="Who bills for it.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Date or time. Default: now.")] = None,
    context: Annotated[
        int, typer.Option("--context", min=0, help="Context tokens: prices may have cliffs.")
    ] = 0,
    db: Db = None,  # noqa: ARG001 - accepted everywhere; prices need no ledger
    as_json: AsJson = False,
) -> None:
    """Show weights (base input token = 1), dollars, the cache, source and date."""
    when = datetime.now(UTC) if at is None else moment(at, "--at")
    prices = GenaiPriceBook().prices(model, provider, at=when, context_tokens=context)
    sheet = prices.as_payload()
    if as_json:
        print_json(sheet)
        return
    sys.stdout.write("\n".join(_lines(sheet)) + "\n")


def _lines(sheet: Mapping[str, Any]) -> Iterator[str]:
    window = sheet["context_window"]
    yield f"{sheet['model']} ({sheet['provider']}), {sheet['source']}, as of {sheet['as_of']}"
    yield f"context window {'unknown' if window is None else f'{window:,} tokens'}"
    yield f"{'':<16}{'weight':>8}  $ per million"
    for name, weight in sheet["weights"].items():
        dollars = sheet["dollars_per_million"].get(name)
        yield f"{name:<16}{weight:>8.4g}  {'' if dollars is None else f'{dollars:g}'}"
    for name, value in sheet["cache"].items():
        if value is not None:
            yield f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}"
    if sheet["assumed"]:
        yield f"assumed: {', '.join(sheet['assumed'])}"
    by_source: dict[str, list[str]] = {}
    for name, source in sheet["overlay_sources"].items():
        by_source.setdefault(source, []).append(name)
    for source, names in by_source.items():
        yield f"{', '.join(names)}: {source}"
