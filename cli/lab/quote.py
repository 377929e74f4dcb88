"""The lab's ``/quote`` and ``/decide``: what compacting now would cost, and whether it pays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cli.lab.session import Reply, Session, model_of
from cli.lab.strategies import forces, full_line, made
from cli.lab.text import on_screen, table
from compactuary.advice import Advice
from compactuary.errors import InputError
from policy.break_even import break_even_requests
from policy.prices import Prices
from strategies.cost_aware import CostAware
from strategies.cost_quote import Quote
from strategies.registry import STRATEGIES

__all__ = ["decide", "quote"]

_COLUMNS = ("strategy", "C", "X′", "p′", "s", "n*", "$ once", "$ a call", "")


@dataclass(frozen=True, slots=True)
class _Row:
    """One strategy's quote, or why there is none."""

    line: str
    quote: Quote | None
    note: str = ""

    @property
    def break_even(self) -> float | None:
        """n*, the requests that must remain; None where it never pays."""
        if self.quote is None or self.quote.kind == "none":
            return None
        return break_even_requests(self.quote.cost, self.quote.saving)

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """The fewest requests first, then what never pays, changes nothing, or has no quote."""
        idle = self.quote is None or self.quote.kind == "none"
        value = self.break_even
        return self.quote is None, idle, value is None, value or 0.0


def quote(session: Session, told: str) -> tuple[Session, Reply]:
    """Show C, X′, p′, s and n* of one strategy, or of all, the first to pay first."""
    prices = session.bench.prices(session.context_tokens)
    rows = [_row(session, line, prices) for line in _lines(session, told)]
    if told and rows[0].quote is None:
        raise InputError(rows[0].note, where="/quote", value=told, remedy="See /quote alone.")
    rows.sort(key=lambda row: row.rank)
    dollars = prices.dollars_per_million.get("input")
    priced = "" if dollars is None else f", ${dollars:g} a million base tokens"
    name = model_of(prices) or "weights of your own"
    lines = [
        f"X = {session.context_tokens:,} tokens; {name}{priced}",
        *table(_COLUMNS, [_cells(row, dollars) for row in rows]),
    ]
    data = {"context_tokens": session.context_tokens, "model": model_of(prices)}
    return session, Reply(lines, data | {"quotes": [_data(row, dollars) for row in rows]})


def _lines(session: Session, told: str) -> list[str]:
    if told:
        return [full_line(session, told)]
    own = full_line(session, "")
    names = [full_line(session, name) for name in STRATEGIES]
    return list(dict.fromkeys([*names, own]))


def _row(session: Session, line: str, prices: Prices) -> _Row:
    if line == "server_side":
        return _Row(line, None, "only for messages of Anthropic or OpenAI Responses")
    try:
        found = made(session, line)
        quoted = found.quote(session.conversation, prices, session.situation(force=forces(line)))
    except InputError as error:
        return _Row(line, None, on_screen(str(error)))
    note = "would change nothing" if quoted.kind == "none" else ""
    if not note and quoted.context_after_tokens >= quoted.context_tokens:
        note = "would not shrink it"
    return _Row(line, quoted, note)


def _cells(row: _Row, dollars: float | None) -> tuple[str, ...]:
    quoted, value = row.quote, row.break_even
    if quoted is None or quoted.kind == "none":
        return (row.line, *("-" for _ in _COLUMNS[1:-1]), row.note)
    return (
        row.line,
        f"{quoted.cost:,.0f}",
        f"{quoted.context_after_tokens:,}",
        f"{quoted.cached_after_tokens:,}",
        f"{quoted.saving:,.0f}",
        "-" if value is None else f"{value:,.1f}",
        "-" if dollars is None else f"{quoted.cost * dollars / 1e6:.4f}",
        "-" if dollars is None else f"{quoted.saving * dollars / 1e6:.4f}",
        row.note,
    )


def _data(row: _Row, dollars: float | None) -> dict[str, Any]:
    quoted = row.quote
    if quoted is None:
        return {"strategy": row.line, "note": row.note}
    return {
        "strategy": row.line,
        "kind": quoted.kind,
        "cost": quoted.cost,
        "context_after_tokens": quoted.context_after_tokens,
        "cached_after_tokens": quoted.cached_after_tokens,
        "saving": quoted.saving,
        "break_even_requests": row.break_even,
        "cost_dollars": None if dollars is None else quoted.cost * dollars / 1e6,
        "saving_dollars": None if dollars is None else quoted.saving * dollars / 1e6,
        "note": row.note,
    }


def decide(session: Session, told: str) -> tuple[Session, Reply]:
    """Ask the policy whether a strategy pays now: m against C/s; nothing is compacted."""
    line = full_line(session, told)
    strategy = made(session, line)
    if session.bench.ask is None:
        remedy = "Start the lab with --db or --url."
        raise InputError("nobody can answer", where="/decide", remedy=remedy)
    asked: list[Mapping[str, Any]] = []

    def note(calls: int, context_tokens: int, fields: dict[str, Any]) -> Advice:
        asked.append({"calls": calls, "context_tokens": context_tokens, **fields})
        return Advice("wait", "default", "only asked")

    situation = session.situation(force=forces(line))
    CostAware(strategy, note, shadow=True).compact(session.conversation, situation)
    if not asked:
        lines = [f"wait: {strategy.name} would change nothing, so nobody was asked"]
        return session, Reply(lines, {"strategy": line, "decision": "wait", "asked": None})
    question = {"role": session.bench.role, **asked[0]}
    answer = session.bench.ask(question)
    lines = [f"{answer['decision']}: {on_screen(_reason(answer))}", *_told(question, answer)]
    return session, Reply(lines, {"strategy": line, "asked": question, **answer})


def _reason(answer: Mapping[str, Any]) -> str:
    reason = answer["reason"]
    return str(reason["text"] if isinstance(reason, Mapping) else reason)


def _told(question: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    sizes = f"{question['context_tokens']:,} → {question['context_after_tokens']:,} tokens"
    turn = f"{question['role']}, {question['calls']:,} calls into the turn"
    lines = [f"  asked    {turn}, {sizes}, kind {question['kind']}"]
    remaining, cost = answer.get("expected_remaining_requests"), answer.get("cost")
    saving = answer.get("saving_per_call")
    if remaining is not None:
        lines.append(f"  m        {remaining:.1f} requests expected to remain")
    if cost is not None and saving is not None:
        value = break_even_requests(cost, saving)
        told = "never" if value is None else f"{value:.1f} requests"
        lines.append(f"  C/s      {told}: {cost:,.0f} once, {saving:,.0f} saved per request")
    lines.append(f"  by       {answer.get('rule') or '-'}, {answer.get('source', 'this ledger')}")
    return lines
