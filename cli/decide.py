"""``compactuary decide``: the API's answer, without a server."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import uuid4

import typer

from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json
from cli.snapshot import current_snapshot
from cli.weights import Weights, weights_of
from compactuary.errors import InputError
from policy.answer import Answer, Basis, Interval, QuotedKind
from policy.decision import decide
from policy.prices import GenaiPriceBook, PriceBook
from policy.question import Question
from policy.snapshot import Snapshot
from policy.threshold_book import Compiled, ThresholdKey, compile_thresholds

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
    at: Annotated[str, typer.Option(help="'call', 'turn_end', 'idle' or 'resume'.")] = "call",
    idle_seconds: Annotated[
        float | None, typer.Option(help="How long the session has been idle.")
    ] = None,
    kind: Annotated[
        str, typer.Option(help="'summary', 'separate', 'clear' or 'server_side'.")
    ] = "summary",
    strategy: Annotated[str | None, typer.Option(help="Whose learned sizes count.")] = None,
    summary_model: Annotated[
        str | None, typer.Option(help="Who summarizes, where that is another model.")
    ] = None,
    context_after_tokens: Annotated[
        int | None, typer.Option(help="Context after; learned or assumed if left out.")
    ] = None,
    prefix_tokens: Annotated[int | None, typer.Option(help="What of it stays cached.")] = None,
    summary_output_tokens: Annotated[
        int | None, typer.Option(help="Output of the summary call.")
    ] = None,
    growth_tokens: Annotated[float | None, typer.Option(help="Growth per request.")] = None,
    rework_tokens: Annotated[int | None, typer.Option(help="What is read in again.")] = None,
    quality_cost: Annotated[float, typer.Option(help="Charge per compaction.")] = 0.0,
    miss_probability: Annotated[
        float | None, typer.Option(help="That a request misses a warm cache.")
    ] = None,
    resume_probability: Annotated[
        float | None, typer.Option(help="That the session goes on after a turn.")
    ] = None,
    requests_after_turn: Annotated[
        float | None, typer.Option(help="Further requests after this turn.")
    ] = None,
    ttl: Annotated[str, typer.Option(help="'5m', '1h' or '12h': how long it is cached.")] = "5m",
    useless_compactions: Annotated[
        int, typer.Option(help="How many in a row shrank this context by under 5%.")
    ] = 0,
    cost: Annotated[
        float | None, typer.Option(help="C in base tokens, instead of the computed one.")
    ] = None,
    saving: Annotated[
        float | None, typer.Option(help="s in base tokens per remaining request.")
    ] = None,
    weight: Weights = None,
    window_tokens: Annotated[
        int | None, typer.Option("--window-tokens", help="What the model can hold.")
    ] = None,
    rule: Annotated[
        str | None, typer.Option(help="Which rule decides; the best that can, if left out.")
    ] = None,
    quotes: Annotated[bool, typer.Option("--quotes", help="Add every kind's cost.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Add every term.")] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a turn should compact now, and why."""
    given = locals()
    _check_idle(at, idle_seconds)
    asked = {field.name: given[field.name] for field in fields(Question) if field.name in given}
    question = Question(**asked, weights=weights_of(weight))
    with open_ledger(db) as engine:
        snapshot = current_snapshot(engine)
    prices, now = GenaiPriceBook(), datetime.now(UTC)
    book = _CompiledHere(snapshot, prices, now)
    answer = decide(question, snapshot, prices, at=now, decision_id=uuid4().hex, book=book)
    if as_json:
        print_json(answer.as_payload())
    else:
        sys.stdout.write(_told(answer, _unlearned(question, snapshot)))


def _check_idle(at: str, idle_seconds: float | None) -> None:
    if at == "call" and idle_seconds is not None:
        raise InputError(
            "counts between turns only, and this question is asked before a request of one",
            where="--idle-seconds",
            value=idle_seconds,
            remedy="Add --at idle, turn_end or resume, or leave it out",
        )


@dataclass(frozen=True, slots=True)
class _CompiledHere:
    """A threshold book for one question: what it asks for is compiled at once."""

    snapshot: Snapshot
    price_book: PriceBook
    at: datetime

    def find(self, key: ThresholdKey, question: Question) -> Compiled:
        made = compile_thresholds(key.rule, question, self.snapshot, self.price_book, at=self.at)
        return Compiled(made, self.snapshot.version)


def _unlearned(question: Question, snapshot: Snapshot) -> str | None:
    """Return the strategy that was named, if the ledger taught nothing of it."""
    strategy = question.strategy
    known = snapshot.parameters_of(question.role, question.model).compactions
    return None if strategy is None or strategy in known else strategy


def _told(answer: Answer, unlearned: str | None) -> str:
    lines = [f"{answer.decision}: {answer.reason.text}"]
    if answer.interval is not None:
        lines.append(f"  remaining   {_remaining(answer, answer.interval)}")
    lines.append(f"  rule        {_rule(answer)}")
    lines.append(
        f"  cost        {answer.cost:,.0f} base tokens; saves {answer.saving_per_call:,.0f} "
        "per request"
    )
    if answer.expected_net is not None:
        chance = answer.probability_pays
        told = "" if chance is None else f"; pays with probability {chance:.2f}"
        lines.append(f"  expected    {answer.expected_net:+,.0f} base tokens{told}")
    if answer.ask_again_seconds is not None:
        lines.append(f"  ask again   after {answer.ask_again_seconds:,.0f} idle seconds")
    if answer.basis.rests_on:
        lines.append(f"  rests on    {_rests_on(answer.basis)}")
        lines.append(f"  evidence    {_evidence(answer.basis)}")
    if answer.basis.learned:
        lines.append(f"  learned     {', '.join(answer.basis.learned)}")
    if answer.basis.assumed:
        lines.append(f"  assumed     {', '.join(answer.basis.assumed)}")
    if unlearned is not None:
        lines.append(
            f"  note        nothing was learned of strategy {unlearned}; its kind's stands in"
        )
    if answer.quotes is not None:
        lines += ["", *(_quoted(quoted) for quoted in answer.quotes)]
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


def _rule(answer: Answer) -> str:
    """Return the rule's name, and from which context it compacts where it goes by that."""
    if answer.threshold_tokens is not None:
        return f"{answer.rule}, compacts from {answer.threshold_tokens:,.0f} tokens"
    return answer.rule


def _quoted(quoted: QuotedKind) -> str:
    net = "" if quoted.expected_net is None else f"expected {quoted.expected_net:+,.0f}, "
    return (
        f"  {quoted.kind:<12}{net}cost {quoted.cost:,.0f}, "
        f"saves {quoted.saving_per_call:,.0f} per request"
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
            yield f"  {within + name:<38} {_number(value)}"


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
