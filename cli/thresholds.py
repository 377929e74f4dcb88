"""``compactuary thresholds``: a rule compiled for one role, as ``GET /thresholds`` has it."""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json
from cli.snapshot import current_snapshot, say_unknown_role
from compactuary.errors import InputError
from policy.prices import GenaiPriceBook
from policy.question import KINDS, Question
from policy.served_thresholds import CONTEXT_TOKENS, asked_thresholds, served_thresholds
from policy.threshold_book import Compiled, compile_thresholds

__all__ = ["thresholds_command"]

_AGES = (0, 1, 2, 5, 10, 20, 40, 80)
# Another model's summary needs that model's name, which nothing here takes.
_KINDS = tuple(kind for kind in KINDS if kind != "separate")


def thresholds_command(
    role: Annotated[str, typer.Argument(help="The agent's role, as the ledger knows it.")],
    model: Annotated[str, typer.Option(help="Whose prices to use.")],
    provider: Annotated[str | None, typer.Option(help="Who bills for the model.")] = None,
    rule: Annotated[
        str | None, typer.Option(help="Which rule; the best that can, if left out.")
    ] = None,
    kind: Annotated[str, typer.Option(help="'summary', 'clear' or 'server_side'.")] = "summary",
    ttl: Annotated[str, typer.Option(help="'5m', '1h' or '12h': how long it is cached.")] = "5m",
    unit: Annotated[
        str, typer.Option(help="What the caller counts: 'tool_calls' or 'requests'.")
    ] = "tool_calls",
    context_tokens: Annotated[
        int, typer.Option("--context-tokens", "--context", help="Whose price band counts.")
    ] = CONTEXT_TOKENS,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    """Show from which context a rule compacts, by requests made and by moment."""
    question = Question(
        role=role,
        calls=0,
        model=model,
        provider=provider,
        rule=rule,
        kind=kind,
        ttl=ttl,
        unit=unit,
        context_tokens=context_tokens,
    )
    if kind not in _KINDS:
        remedy = f"Known: {', '.join(_KINDS)}"
        raise InputError("is not known", where="kind", value=kind, remedy=remedy)
    with open_ledger(db) as engine:
        snapshot = current_snapshot(engine)
    prices, now = GenaiPriceBook(), datetime.now(UTC)
    key = asked_thresholds(question, snapshot, prices, at=now)
    made = compile_thresholds(key.rule, question, snapshot, prices, at=now)
    say_unknown_role(snapshot, role)
    served = served_thresholds(key, Compiled(made, snapshot.version), question, snapshot)
    if as_json:
        print_json(served)
    else:
        sys.stdout.write("\n".join(_told(served)) + "\n")


def _told(served: dict[str, Any]) -> Iterator[str]:
    """Yield the thresholds at a few ages, and at the other moments."""
    yield f"{served['role']} on {served['model']}: {served['rule']} compacts"
    at_call: Sequence[float | None] = served["at_call"]
    for age in (age for age in _AGES if age < len(at_call)):
        yield f"  {f'after {age} requests':<24}{_context(at_call[age])}"
    yield f"  {f'after {len(at_call) - 1} or more':<24}{_context(at_call[-1])}"
    yield f"  {'at the end of a turn':<24}{_context(served['at_turn_end'])}"
    yield f"  {'after a pause':<24}{_context(served['at_resume'])}"
    for seconds, threshold in served["at_idle"]:
        yield f"  {f'idle for {seconds:,.0f} s':<24}{_context(threshold)}"
    limit = served["hard_limit_tokens"]
    if limit is not None:
        yield f"  {'whatever the rule says':<24}above {limit:>10,.0f} tokens"
    yield f"requests per tool call: {served['requests_per_call']:.2f}"


def _context(threshold: float | None) -> str:
    return "never" if threshold is None else f"from {threshold:>11,.0f} tokens"
