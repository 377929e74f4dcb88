"""``compactuary report``: remaining calls, past compactions and other rules, to be shared."""

from pathlib import Path
from typing import Annotated

import typer

from backtest.audit import HORIZONS, Horizon
from backtest.html_report import as_page
from backtest.scenario import LIMIT_TOKENS
from cli.findings import print_findings
from cli.log_paths import LogPaths, paths_to_read
from cli.options import AsJson, Db, SkipCorrupt
from cli.output import print_json, say
from cli.pricing import pricing_of
from cli.reading import open_report
from cli.report import ReportFormat
from cli.reported import Asked, Reported, reported
from cli.scenario import Limit, Model, Seed, TimeToLive
from cli.scheduler import Scheduler
from cli.weights import Weights
from compactuary.errors import InputError
from compactuary.workers import workers
from estimator.report_table import as_csv

__all__ = ["report_command"]

_TITLE = "Context compaction: what it cost, and what other rules would have cost"


def report_command(
    paths: LogPaths = None,
    db: Db = None,
    as_json: AsJson = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write one HTML file that needs nothing else.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", help="Write tables as CSV and pictures as PNG and SVG into this folder."
        ),
    ] = None,
    model: Model = None,
    weight: Weights = None,
    ttl: TimeToLive = "5m",
    horizon: Annotated[
        Horizon, typer.Option(help="Judge compactions to the end of the turn or the session.")
    ] = HORIZONS[0],
    seed: Seed = 0,
    limit: Limit = int(LIMIT_TOKENS),
    scheduler: Scheduler = None,
    skip_corrupt: SkipCorrupt = False,
) -> None:
    """Tell it all in a form that may be shared: no text, no paths, ids hashed."""
    logs = paths_to_read(paths, db)
    asked = Asked(
        pricing=pricing_of(model, weight),
        model=model,
        weight=weight,
        ttl=ttl,
        horizon=horizon,
        seed=seed,
        limit_tokens=float(limit),
        by_project=bool(logs),
    )
    with (
        workers(scheduler) as by,
        open_report(
            db, logs, role_by_project=bool(logs), skip_corrupt=skip_corrupt, workers=by
        ) as connection,
    ):
        told = reported(connection, asked, mapped=by.map)
    _deliver(told, html, save, as_json=as_json)


def _deliver(told: Reported, html: Path | None, save: Path | None, *, as_json: bool) -> None:
    # Matplotlib is slow.
    from cli.report_sections import (  # noqa: PLC0415
        assumed,
        period,
        report_payload,
        sections,
        tables,
        told_lines,
    )

    if html is not None:
        _write(html, as_page(_TITLE, period(told), sections(told), assumed(told)))
        say(f"wrote {html}")
    if save is not None:
        _save(told, save)
    if as_json:
        print_json(report_payload(told))
    elif html is None and save is None:
        found = list(tables(told).values())
        print_findings(told_lines(told), found, assumed(told), ReportFormat.TEXT)


def _save(told: Reported, folder: Path) -> None:
    from cli.report_sections import figures, tables  # noqa: PLC0415 - matplotlib is slow
    from estimator.plots import save_figure  # noqa: PLC0415

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    for name, table in tables(told).items():
        _write(folder / f"{name}.csv", as_csv(table))
    for name, _, figure in figures(told):
        for ending in ("png", "svg"):
            save_figure(figure, folder / f"{name}.{ending}")
    say(f"wrote {folder}")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        "can't be written",
        where=str(path),
        value=error.strerror,
        remedy="Name a place that exists and can be written to",
    )
