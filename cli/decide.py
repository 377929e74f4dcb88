"""``compactuary decide``: the API's answer, without a server."""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json
from cli.snapshot import current_snapshot
from compactuary.errors import InputError
from policy.answer import Answer, Basis, Interval
from policy.decision import decide
from policy.prices import GenaiPriceBook
from policy.question import Question

__all__ = ["decide_command"]


def decide_command(
    role: Annotated[str, typer.Option(help="The agent's role, as the ledger knows it.")],
    calls: Annotated[int, typer.Option(help="Calls made so far in this turn.")],
    context_tokens: Annotated[
        int | None, typer.Option("--context-tokens", "--context", help="Context now.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Whose prices to use.")] = None,
    provider: Annotated[str | None, typer.Option(help="Who bills for the model.")] = None,
    unit: Annotated[str, typer.Option(help="'tool_calls' or 'requests'.")] = "tool_calls",
    context_after_tokens: Annotated[
        int | None,
        typer.Option("--context-after-tokens", help="Context after; assumed if left out."),
    ] = None,
    cost: Annotated[
        float | None, typer.Option(help="C in base tokens, instead of the computed one.")
    ] = None,
    saving: Annotated[
        float | None, typer.Option(help="s in base tokens per remaining request.")
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option("--weight", help="NAME=VALUE, such as cache_read=0.1; may be repeated."),
    ] = None,
    window_tokens: Annotated[
        int | None, typer.Option("--window-tokens", help="What the model can hold.")
    ] = None,
    rule: Annotated[str, typer.Option(help="Which rule decides.")] = "break-even",
    explain: Annotated[bool, typer.Option("--explain", help="Add every term.")] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a turn should compact now, and why."""
    question = Question(
        role=role,
        calls=calls,
        unit=unit,
        context_tokens=context_tokens,
        model=model,
        provider=provider,
        context_after_tokens=context_after_tokens,
        cost=cost,
        saving=saving,
        weights=_weights(weight),
        window_tokens=window_tokens,
        rule=rule,
        explain=explain,
    )
    with open_ledger(db) as engine:
        snapshot = current_snapshot(engine)
    answer = decide(
        question, snapshot, GenaiPriceBook(), at=datetime.now(UTC), decision_id=uuid4().hex
    )
    if as_json:
        print_json(answer.as_payload())
    else:
        sys.stdout.write(_told(answer))


def _weights(given: list[str] | None) -> dict[str, float] | None:
    if not given:
        return None
    weights: dict[str, float] = {}
    for part in given:
        name, _, value = part.partition("=")
        try:
            weights[name] = float(value)
        except ValueError as error:
            raise InputError(
                "not NAME=NUMBER",
                where="--weight",
                value=part,
                remedy="Write it like --weight cache_read=0.1.",
            ) from error
    return weights


def _told(answer: Answer) -> str:
    lines = [f"{answer.decision}: {answer.reason.text}"]
    if answer.interval is not None:
        lines.append(f"  remaining   {_remaining(answer, answer.interval)}")
    lines.append(
        f"  cost        {answer.cost:,.0f} base tokens; saves {answer.saving_per_call:,.0f} "
        "per request"
    )
    if answer.expected_net is not None and answer.probability_pays is not None:
        lines.append(
            f"  expected    {answer.expected_net:+,.0f} base tokens; "
            f"pays with probability {answer.probability_pays:.2f}"
        )
    if answer.basis.rests_on:
        lines.append(f"  rests on    {_rests_on(answer.basis)}")
        lines.append(f"  evidence    {_evidence(answer.basis)}")
    if answer.basis.assumed:
        lines.append(f"  assumed     {', '.join(answer.basis.assumed)}")
    if answer.terms is not None:
        lines += ["", *_terms(answer.terms)]
    return "\n".join(lines) + "\n"


def _remaining(answer: Answer, interval: Interval) -> str:
    """Return m(i) with its interval and median, all in the unit that was asked."""
    in_requests = answer.basis.unit == "requests"
    expected = (
        answer.expected_remaining_requests if in_requests else answer.expected_remaining_calls
    )
    return (
        f"{expected:.1f} {'requests' if in_requests else 'calls'} "
        f"[{interval.lower:.1f}, {interval.upper:.1f}] at {interval.level:.0%}, "
        f"median {answer.median_remaining_calls}"
    )


def _rests_on(basis: Basis) -> str:
    """Return the tables that the estimate is blended from; shares below half a percent are left."""
    first, *others = basis.rests_on
    turns = f"{first.turns:,} turn{'' if first.turns == 1 else 's'}"
    shares = [f"{turns} of {first.name} ({first.weight:.0%})"]
    shares += [f"{share.name} ({share.weight:.0%})" for share in others if share.weight >= 0.005]
    return ", ".join(shares)


def _evidence(basis: Basis) -> str:
    """Return how many turns tell of this age, and how much they count against what is borrowed."""
    turns = f"{basis.at_risk:,} turn{'' if basis.at_risk == 1 else 's'}"
    if basis.extrapolated:
        told = f"past the open tail, which rests on {turns}, {basis.ends:,} of them to the end"
    else:
        told = f"{turns} seen at this age, {basis.ends:,} of them to the end"
    if basis.half_life_turns is None:
        return told
    return (
        f"{told}; credibility {basis.credibility:.2f} ({basis.effective_ends:,.1f} effective ends, "
        f"half-life {basis.half_life_turns:,.0f} turns)"
    )


def _terms(terms: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Yield every term as a line of two columns, those inside others by their full names."""
    for name, value in terms.items():
        if isinstance(value, Mapping):
            yield from _terms(value, f"{within}{name}.")
        else:
            yield f"  {within + name:<36}{_number(value)}"


def _number(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"
    return str(value)
