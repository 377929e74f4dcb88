"""``compactuary backtest``: what other rules would have cost on the same sequences."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from backtest.backtest import Backtest, Options, backtest
from backtest.backtest_payload import assumptions, backtest_payload
from backtest.backtest_tables import backtest_headlines, roles_table, rules_table, runs_table
from backtest.candidates import CANDIDATES, Candidate, occupancy
from backtest.compaction_cases import compaction_cases
from backtest.role_savings import WITH_M, WITHOUT_M, RoleSaving, role_savings
from backtest.scenario import LIMIT_TOKENS
from backtest.sensitivity import Run, sensitivity
from cli.findings import print_findings
from cli.log_paths import LogPaths, paths_to_read
from cli.options import AsJson, Db, SkipCorrupt
from cli.output import print_json
from cli.reading import open_report
from cli.report import ReportFormat, print_report
from cli.scenario import Limit, Model, Priced, Seed, TimeToLive, priced_sequences
from cli.scheduler import Scheduler
from cli.weights import Weights
from compactuary.errors import InputError
from compactuary.workers import Workers, workers
from policy.rules.renewal import RULE as RENEWAL
from policy.sizes import GROWTH_TOKENS

__all__ = ["asked_rules", "backtest_command"]

_FIXED = re.compile(r"occupancy (\d+)k")

Rules = Annotated[
    str | None,
    typer.Option(
        help="Names with commas between them, such as 'renewal,eoq,occupancy 90k'. Default: all.",
        show_default=False,
    ),
]


def backtest_command(
    paths: LogPaths = None,
    db: Db = None,
    as_json: AsJson = False,
    rules: Rules = None,
    model: Model = None,
    weight: Weights = None,
    ttl: TimeToLive = "5m",
    horizon: Annotated[
        Literal["session", "turn"],
        typer.Option(help="Bill whole sessions, or every turn for itself."),
    ] = "session",
    split: Annotated[
        Literal["time", "random"],
        typer.Option(help="Fit on what is earlier, or on random halves of the sessions."),
    ] = "time",
    seed: Seed = 0,
    draws: Annotated[int, typer.Option(min=1, help="Resamplings of the bootstrap.")] = 1_000,
    limit: Limit = int(LIMIT_TOKENS),
    by_role: Annotated[
        bool, typer.Option("--by-role", help="Show where to switch a rule on besides.")
    ] = False,
    sensitive: Annotated[
        bool,
        typer.Option("--sensitivity", help="Repeat it with other sizes, and without each project."),
    ] = False,
    how: Annotated[
        ReportFormat, typer.Option("--format", help="How to print; CSV: one row a rule.")
    ] = ReportFormat.TEXT,
    scheduler: Scheduler = None,
    skip_corrupt: SkipCorrupt = False,
) -> None:
    """Replay compaction rules on past sessions: what each would have cost."""
    candidates = asked_rules(rules)
    judged = _judged_rule(tuple(candidates))
    if by_role:
        candidates = {**candidates, **{name: CANDIDATES[name] for name in (WITH_M, WITHOUT_M)}}
    options = Options(rules=tuple(candidates), horizon=horizon, split=split, seed=seed, draws=draws)
    logs = paths_to_read(paths, db)
    with workers(scheduler) as by:
        with open_report(
            db, logs, role_by_project=bool(logs), skip_corrupt=skip_corrupt, workers=by
        ) as connection:
            priced = priced_sequences(
                connection,
                compaction_cases(connection, GROWTH_TOKENS, by_project=bool(logs)),
                model=model,
                weight=weight,
                ttl=ttl,
                limit_tokens=limit,
                by_project=bool(logs),
            )
        found = backtest(
            priced.sequences,
            priced.scenario,
            options,
            dollars_per_token=priced.dollars_per_token,
            candidates=candidates,
            mapped=by.map,
        )
        told = Told(
            found,
            priced,
            tuple(role_savings(found, judged)) if by_role else (),
            tuple(_runs(found, priced, candidates, by)) if sensitive else (),
        )
    _print(told, ReportFormat.JSON if as_json else how)


@dataclass(frozen=True, slots=True)
class Told:
    """What is printed."""

    found: Backtest
    priced: Priced
    roles: tuple[RoleSaving, ...]
    runs: tuple[Run, ...]


def _runs(
    found: Backtest, priced: Priced, candidates: Mapping[str, Candidate], by: Workers
) -> list[Run]:
    return sensitivity(
        priced.sequences, found, candidates=candidates, progress=_say_run, mapped=by.map
    )


def asked_rules(given: str | None) -> Mapping[str, Candidate]:
    """Return the rules named, with commas between them; all where none is.

    Raises
    ------
    InputError
        If there is no such rule.
    """
    if given is None:
        return CANDIDATES
    by_plain_name = {_plain(name): name for name in CANDIDATES}
    found: dict[str, Candidate] = {}
    for part in (part.strip() for part in given.split(",")):
        name = by_plain_name.get(_plain(part), part)
        fixed = _FIXED.fullmatch(_plain(part))
        if name in CANDIDATES:
            found[name] = CANDIDATES[name]
        elif fixed:
            found[_plain(part)] = occupancy(1_000.0 * int(fixed[1]))
        else:
            raise InputError(
                "no such rule",
                where="--rules",
                value=part,
                remedy=f"Choose among {', '.join(CANDIDATES)}, or occupancy Nk",
            )
    return found


def _plain(name: str) -> str:
    return name.lower().replace("-", " ")


def _judged_rule(names: Sequence[str]) -> str:
    """Return the rule whose saving is told by role: renewal, or the first one asked for."""
    return RENEWAL if RENEWAL in names else names[0]


def _say_run(name: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{f'replayed: {name}':<60}\r")


def _print(told: Told, how: ReportFormat) -> None:
    found, notes = told.found, told.priced.notes
    if how is ReportFormat.JSON:
        print_json(backtest_payload(found, by_role=told.roles, runs=told.runs, notes=notes))
        return
    tables = [rules_table(found)]
    if how in (ReportFormat.CSV, ReportFormat.JSONL):
        print_report(tables[0], how)
        return
    tables += [roles_table(told.roles)] if told.roles else []
    tables += [runs_table(found, told.runs)] if told.runs else []
    print_findings(backtest_headlines(found), tables, [*notes, *assumptions(found)], how)
