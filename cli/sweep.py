"""``compactuary sweep``: what each way of compacting keeps, loses and costs on one task."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from cli.findings import print_findings
from cli.options import AsJson, Db
from cli.output import print_json, say
from cli.report import ReportFormat
from compactuary.errors import InputError
from policy.prices import GenaiPriceBook, Prices

if TYPE_CHECKING:
    from experiment.graph import Setting
    from experiment.sweep import Sweep

__all__ = ["sweep_command"]

_ONE_EACH = "Counts with commas between them"


def sweep_command(
    documents: Annotated[
        str, typer.Option(help="Injected documents: counts up to 500, with commas between them.")
    ] = "0,10,25,50",
    arms: Annotated[
        str | None,
        typer.Option(
            help="Among baseline, trimming, naive, preserving, framework. Default: all.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        int, typer.Option(help="Context tokens past which the arms compact.")
    ] = 15_000,
    thresholds: Annotated[
        str, typer.Option(help="Those of the preserving arm, one after the other; '' for none.")
    ] = "6000,10000,15000,20000,25000,30000",
    seed: Annotated[int, typer.Option(min=0, help="The same for all runs.")] = 0,
    provider: Annotated[
        str, typer.Option(help="Who answers: simulated, anthropic, openai.")
    ] = "simulated",
    model: Annotated[
        str | None,
        typer.Option(
            help="The real model, or the one whose prices count. Default: claude-opus-4-8.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the curves besides: a .png, .svg or .pdf file."),
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Tell every repeated reading and contradiction.")
    ] = False,
    db: Db = None,  # noqa: ARG001 - accepted everywhere; an experiment needs no ledger
    as_json: AsJson = False,
) -> None:
    """Write one report with 0 to 50 injected documents under each way of compacting.

    The model is simulated unless a provider is named: only the shape of the curves is meant.
    """
    # LangGraph is slow to import, and an extra of its own.
    from experiment.arms import ARMS  # noqa: PLC0415
    from experiment.providers import model_name, model_of  # noqa: PLC0415
    from experiment.sweep import Plan, sweep  # noqa: PLC0415

    if plot is not None:
        _check_picture(plot)
    named = tuple(part.strip() for part in arms.split(",") if part.strip()) if arms else ARMS
    plan = Plan(
        documents=_counts(documents, "--documents"),
        arms=tuple(dict.fromkeys(named)),
        threshold_tokens=threshold,
        thresholds=_counts(thresholds, "--thresholds"),
        seed=seed,
    )
    name = model_name(provider, model)
    prices = _prices(name, provider, threshold)
    answers = model_of(provider, name, seed)
    if provider != "simulated":
        say(f"{provider}'s {name} writes {len(plan.settings())} reports, 30 requests each or more")
    found = sweep(answers, prices, plan, _say_run)
    _say_done()
    # Before anything is printed: whoever reads the first lines alone ends this process.
    if plot is not None:
        _draw(found, provider, name, plot)
    _print(found, provider, name, as_json=as_json, trace=trace)


def _prices(name: str, provider: str, threshold_tokens: int) -> Prices:
    billed_by = None if provider == "simulated" else provider
    book = GenaiPriceBook()
    return book.prices(name, billed_by, at=datetime.now(UTC), context_tokens=threshold_tokens)


def _counts(text: str, where: str) -> tuple[int, ...]:
    """Return counts written like ``0,10,25``, each once.

    Raises
    ------
    InputError
        One of them is no number that is not negative.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = next((part for part in parts if not part.isdecimal()), None)
    if wrong is not None:
        raise InputError(
            "not a list of counts",
            where=where,
            value=wrong,
            remedy=f"{_ONE_EACH}, none of them negative, like 0,10,25",
        )
    return tuple(dict.fromkeys(map(int, parts)))


def _check_picture(plot: Path) -> None:
    """Refuse a picture that can't be saved before anything is run, or paid for.

    Raises
    ------
    InputError
        Its name ends in no known type, or its folder is not there.
    """
    from estimator.plots import SAVE_FORMATS  # noqa: PLC0415 - matplotlib is slow

    if plot.suffix.lower().lstrip(".") not in SAVE_FORMATS:
        raise InputError(
            "not a type of picture",
            where="--plot",
            value=str(plot),
            remedy=f"End the name in .{', .'.join(SAVE_FORMATS)}",
        )
    folder = plot.expanduser().parent
    if not folder.is_dir():
        raise InputError(
            "there is no such folder",
            where="--plot",
            value=str(folder),
            remedy="Name a folder that exists",
        )


def _say_run(setting: "Setting") -> None:
    if sys.stderr.isatty():
        told = f"{setting.arm}, {setting.documents} documents, {setting.threshold_tokens:,} tokens"
        sys.stderr.write(f"\r{told:<60}\r")


def _say_done() -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{'':<60}\r")


def _draw(found: "Sweep", provider: str, name: str, plot: Path) -> None:
    from estimator.plots import save_figure  # noqa: PLC0415 - matplotlib is slow
    from experiment.figures import plot_sweep  # noqa: PLC0415
    from experiment.sweep_payload import ONLY_THE_SHAPE  # noqa: PLC0415

    note = ONLY_THE_SHAPE if provider == "simulated" else f"{provider}, {name}"
    say(f"drew {save_figure(plot_sweep(found, note), plot)}")


def _print(found: "Sweep", provider: str, name: str, *, as_json: bool, trace: bool) -> None:
    from cli.sweep_tables import (  # noqa: PLC0415
        arms_table,
        headlines,
        thresholds_table,
        trace_lines,
    )
    from experiment.curves import bill_curves, quality_curves  # noqa: PLC0415
    from experiment.sweep_payload import assumptions, sweep_payload  # noqa: PLC0415

    if as_json:
        print_json(sweep_payload(found, provider, name))
        return
    assumed = assumptions(found, provider, name)
    # Whether the model is a real one is told first; the other assumptions come last.
    sys.stdout.write(f"{fill(assumed[0], 79)}\n\n{quality_curves(found)}\n{bill_curves(found)}\n")
    tables = [arms_table(found)] + ([thresholds_table(found)] if found.thresholds else [])
    print_findings(headlines(found), tables, assumed, ReportFormat.TEXT)
    if trace:
        sys.stdout.write("\n" + "\n".join(trace_lines(found)) + "\n")
