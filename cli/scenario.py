"""The sequences of a ledger, and the prices that they are billed at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Annotated, Literal, TypeAlias

import typer
from sqlalchemy import Connection

from backtest.compaction_cases import CompactionCase
from backtest.scenario import Scenario
from backtest.sequences import Sequences
from backtest.sources import (
    Unusable,
    model_of_most_requests,
    sequences_from_ledger,
    unusable,
)
from cli.pricing import check_one_price
from cli.weights import weights_of
from compactuary.errors import InputError
from policy.prices import GenaiPriceBook, Prices
from policy.served_thresholds import CONTEXT_TOKENS
from policy.sizes import INSTRUCTION_TOKENS, SUMMARY_OUTPUT_TOKENS
from policy.weights import weights_from

__all__ = ["Limit", "Model", "Priced", "Seed", "TimeToLive", "priced_sequences"]

Ttl: TypeAlias = Literal["5m", "1h", "12h"]
TimeToLive = Annotated[Ttl, typer.Option("--ttl", help="For how long the context is cached.")]
Model = Annotated[
    str | None, typer.Option(help="Whose prices to use. Default: that of most requests.")
]
Seed = Annotated[int, typer.Option(min=0, help="Of random halves and of the bootstrap.")]
Limit = Annotated[
    int,
    typer.Option(
        "--limit", min=1, help="Context from which every rule is forced: the trigger to beat."
    ),
]

#: Where nobody says what the model can hold.
_WINDOW_TOKENS = 200_000
#: Where a price list promises nothing.
_SECONDS: Mapping[Ttl, float] = {"5m": 300.0, "1h": 3_600.0, "12h": 43_200.0}


@dataclass(frozen=True, slots=True, eq=False)
class Priced:
    """Sequences with what they are billed at.

    Parameters
    ----------
    sequences : Sequences
    scenario : Scenario
    model : str or None
        Whose prices these are; None where the caller gave weights.
    dollars_per_token : float or None
        Price of a base token; None where the caller gave weights.
    notes : tuple of str
        Where prices and sizes are from.
    """

    sequences: Sequences
    scenario: Scenario
    model: str | None
    dollars_per_token: float | None
    notes: tuple[str, ...]


def priced_sequences(
    connection: Connection,
    cases: Sequence[CompactionCase],
    *,
    model: str | None = None,
    weight: list[str] | None = None,
    ttl: Ttl = "5m",
    limit_tokens: float,
    by_project: bool,
) -> Priced:
    """Read a ledger's sequences, and price them.

    Parameters
    ----------
    connection : Connection
    cases : sequence of CompactionCase
        The ledger's compactions, which tell what a summary writes.
    model : str, optional
        Whose prices count; by default the model of most requests.
    weight : list of str, optional
        Weights instead, as ``--weight`` gives them.
    ttl : {'5m', '1h', '12h'}
        How long the context is cached, and at which weight it is written.
    limit_tokens : float
        Where every rule is forced.
    by_project : bool
        Whether roles were imported by project.

    Raises
    ------
    InputError
        No request has tokens, no model is known, or both a model and weights are given.
    UnknownPriceError
        No price is known for the model.
    """
    check_one_price(model, weight)
    weights = weights_of(weight)
    sequences = sequences_from_ledger(connection, by_project=by_project)
    if weights is not None:
        prices, told = weights_from(weights), "Prices: the weights given"
    else:
        prices, told = _listed(connection, model, float(sequences.at_seconds.max()))
    outputs = [case.call.output for case in cases if case.call and case.call.output is not None]
    scenario = _scenario(prices, ttl, outputs, float(limit_tokens))
    dollars = prices.dollars_per_million.get("input")
    return Priced(
        sequences,
        scenario,
        None if weights is not None else prices.model,
        None if dollars is None else dollars / 1e6,
        (
            _price_note(told, scenario),
            _summary_note(scenario, len(outputs)),
            *_unusable_notes(unusable(connection)),
        ),
    )


def _scenario(prices: Prices, ttl: Ttl, outputs: list[int], limit_tokens: float) -> Scenario:
    return Scenario(
        read_weight=prices.cache_read,
        ttl_seconds=_seconds(prices, ttl),
        write_weight=_write_weight(prices, ttl),
        output_weight=prices.output,
        summary_output_tokens=median(outputs) if outputs else float(SUMMARY_OUTPUT_TOKENS),
        instruction_tokens=float(INSTRUCTION_TOKENS),
        limit_tokens=limit_tokens,
        window_tokens=float(prices.context_window or _WINDOW_TOKENS),
    )


def _listed(connection: Connection, model: str | None, last_seconds: float) -> tuple[Prices, str]:
    name = model or model_of_most_requests(connection)
    if name is None:
        raise InputError(
            "no turn tells its model",
            where="--model",
            remedy="Name one, or give weights with --weight",
        )
    at = datetime.fromtimestamp(last_seconds, UTC) if last_seconds > 0 else datetime.now(UTC)
    prices = GenaiPriceBook().prices(name, at=at, context_tokens=CONTEXT_TOKENS)
    how = "" if model else ", the model of most requests"
    return prices, f"Prices: {name}{how}, {at:%Y-%m-%d}, for every session"


def _seconds(prices: Prices, ttl: Ttl) -> float:
    if ttl == "5m" and prices.cache_ttl_seconds:
        return float(prices.cache_ttl_seconds)
    return _SECONDS[ttl]


def _write_weight(prices: Prices, ttl: Ttl) -> float:
    if ttl == "12h":
        if prices.cache_write_12h is None:
            raise InputError(
                "nobody says what a cache for 12 hours costs",
                where="--ttl",
                value=f"12h with {prices.model}",
                remedy="Give 5m or 1h",
            )
        return prices.cache_write_12h
    return prices.cache_write_1h if ttl == "1h" else prices.cache_write_5m


def _unusable_notes(left: Unusable) -> list[str]:
    """Say how many turns tell too little to be replayed, and how many clocks ran backwards."""
    told = []
    if left.turns:
        told.append(
            f"Left out: {left.turns:,} of {left.all_turns:,} turns, which tell no tokens, and with "
            f"them {left.sessions:,} of {left.all_sessions:,} sessions."
        )
    if left.backwards:
        told.append(
            f"Requests older than the one before them in their turn: {left.backwards:,}. No time "
            "passes in between."
        )
    return told


def _price_note(told: str, scenario: Scenario) -> str:
    return (
        f"{told}: r {scenario.read_weight:g}, w {scenario.write_weight:g}, "
        f"o {scenario.output_weight:g}; the cache lives {scenario.ttl_seconds:,.0f} s."
    )


def _summary_note(scenario: Scenario, seen: int) -> str:
    source = f"the median of {seen:,} in the logs" if seen else "assumed"
    return (
        f"A summary writes {scenario.summary_output_tokens:,.0f} tokens, {source}, by the same "
        "model behind the cached prefix."
    )
