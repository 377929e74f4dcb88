"""What a report tells: made from a ledger, and put under names that may be shared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlalchemy import Connection

from backtest.anonymous import OTHER_ROLE, Aliases, plain_role
from backtest.audit import Audit, Horizon, Pricing, audit
from backtest.audit_summary import AuditSummary, summarize
from backtest.backtest import Backtest, Options, backtest
from backtest.candidates import CANDIDATES
from backtest.compaction_cases import CompactionCase, compaction_cases
from backtest.role_savings import RoleSaving, role_savings
from backtest.sequences import Sequences
from backtest.trial import Mapped
from cli.scenario import Priced, Ttl, priced_sequences
from compactuary.errors import InputError, UnknownPriceError
from compactuary.role_lives import Lives, lives_over_projects, role_lives
from policy.rules.renewal import RULE as RENEWAL
from policy.sizes import GROWTH_TOKENS

__all__ = ["Asked", "Reported", "reported"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a report is asked for; as of the options of the command."""

    pricing: Pricing
    model: str | None = None
    weight: list[str] | None = None
    ttl: Ttl = "5m"
    horizon: Horizon = "turn"
    seed: int = 0
    limit_tokens: float = 167_000.0
    by_project: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Reported:
    """What a report tells, under names that may be shared.

    Parameters
    ----------
    lives : Lives
        m(i) by role.
    audited : Audit
    summary : AuditSummary
    sequences : Sequences or None
        None where no request tells its tokens.
    found : Backtest or None
        None where `problem` says why.
    roles : tuple of RoleSaving
    notes : tuple of str
        Where prices and sizes are from.
    problem : str
        Why there is no backtest; empty where there is.
    """

    lives: Lives
    audited: Audit
    summary: AuditSummary
    sequences: Sequences | None = None
    found: Backtest | None = None
    roles: tuple[RoleSaving, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""


def reported(connection: Connection, asked: Asked, *, mapped: Mapped = map) -> Reported:
    """Make a report of a ledger.

    Parameters
    ----------
    connection : Connection
        Of a migrated ledger.
    asked : Asked
    mapped : callable, optional
        What calls a function on each of several items, here or on other processes.

    Returns
    -------
    Reported
        Ids are hashed and projects numbered before anything is computed from them; rules are
        replayed prequentially, on random halves where the logs are too few for that.
    """
    lives = _shared_lives((lives_over_projects if asked.by_project else role_lives)(connection))
    cases = compaction_cases(connection, GROWTH_TOKENS, by_project=asked.by_project)
    priced, problem = _priced(connection, cases, asked)
    projects = [case.project for case in cases if case.project]
    aliases = Aliases(projects if priced is None else priced.sequences.project)
    audited = audit(aliases.cases(cases), asked.pricing, asked.horizon)
    told = Reported(lives, audited, summarize(audited), problem=problem)
    if priced is None:
        return told
    shared = aliases.sequences(priced.sequences)
    told = replace(told, sequences=shared, notes=priced.notes)
    try:
        found = _replayed(shared, priced, asked, mapped)
    except InputError as error:
        return replace(told, problem=str(error))
    return replace(told, found=found, roles=tuple(role_savings(found, RENEWAL)))


def _shared_lives(lives: Lives) -> Lives:
    """Leave roles out whose names could tell something; all roles together still count them."""
    roles = [row for row in lives.roles if plain_role(row.role) != OTHER_ROLE]
    return lives._replace(
        roles=roles,
        paces={key: pace for key, pace in lives.paces.items() if plain_role(key[0]) == key[0]},
    )


def _priced(
    connection: Connection, cases: Sequence[CompactionCase], asked: Asked
) -> tuple[Priced | None, str]:
    try:
        priced = priced_sequences(
            connection,
            cases,
            model=asked.model,
            weight=asked.weight,
            ttl=asked.ttl,
            limit_tokens=asked.limit_tokens,
            by_project=asked.by_project,
        )
    except (InputError, UnknownPriceError) as error:
        return None, str(error)
    return priced, ""


def _replayed(sequences: Sequences, priced: Priced, asked: Asked, mapped: Mapped) -> Backtest:
    def by(split: Literal["time", "random"]) -> Backtest:
        options = Options(tuple(CANDIDATES), split=split, seed=asked.seed)
        dollars = priced.dollars_per_token
        return backtest(
            sequences, priced.scenario, options, dollars_per_token=dollars, mapped=mapped
        )

    try:
        return by("time")
    except InputError:
        return by("random")
