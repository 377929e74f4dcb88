"""``compactuary learn``: what the ledger teaches of contexts, pauses and compactions."""

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from cli.ledger import open_ledger
from cli.options import AsJson, Db
from cli.output import print_json, say
from cli.snapshot import current_snapshot, say_unknown_role
from compactuary.errors import InputError
from policy.parameters import CompactionParameters, Parameter, Parameters
from policy.snapshot import Snapshot

__all__ = ["learn_command"]

Role = Annotated[str | None, typer.Option("--role", help="Only this role, known or not.")]
Strategy = Annotated[
    str | None, typer.Option("--strategy", help="Only compactions of this kind, such as summary.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="Of turns on this model, where they teach something.")
]


def learn_command(
    db: Db = None,
    as_json: AsJson = False,
    role: Role = None,
    strategy: Strategy = None,
    model: Model = None,
) -> None:
    """Show what the ledger teaches: sizes, growth, pauses, and what compactions leave behind.

    Decisions use these numbers where the caller gives none.
    """
    with open_ledger(db) as engine:
        snapshot = current_snapshot(engine)
    if role is not None:
        say_unknown_role(snapshot, role)
    asked = _asked(snapshot, role, model)
    if strategy is not None:
        _check_strategy(strategy, [known for _, _, known in asked])
    rows = [known.described(name, of_model) for name, of_model, known in asked]
    if strategy is not None:
        for row in rows:
            row["compactions"] = [one for one in row["compactions"] if one["strategy"] == strategy]
    if as_json:
        print_json({"version": snapshot.version, "roles": rows})
    elif not asked:
        say("This ledger has no turns yet. Import logs: compactuary import PATH")
    else:
        blocks = ["\n".join(_told(*one, strategy)) for one in asked]
        sys.stdout.write("\n\n".join(blocks) + "\n")


def _asked(
    snapshot: Snapshot, role: str | None, model: str | None
) -> list[tuple[str, str | None, Parameters]]:
    """Return whose parameters are asked for, with them."""
    if role is not None:
        return [(role, model, snapshot.parameters_of(role, model))]
    if model is not None:
        roles = sorted({name for name, _ in snapshot.parameters})
        return [(name, model, snapshot.parameters_of(name, model)) for name in roles]
    return [
        (name, None, known) for (name, of), known in sorted(snapshot.parameters.items()) if not of
    ]


def _check_strategy(strategy: str, asked: list[Parameters]) -> None:
    known = sorted({name for parameters in asked for name in parameters.compactions})
    if asked and strategy not in known:
        raise InputError(
            "no compaction of this kind is known",
            where="--strategy",
            value=strategy,
            remedy=f"Name one of: {', '.join(known)}",
        )


#: Attribute, what it is called on a terminal, and how it is written.
_ROWS = (
    ("prefix_tokens", "P   kept prefix", "tokens"),
    ("growth_tokens", "g   growth per request", "tokens"),
    ("first_growth_tokens", "g0  growth, first request", "tokens"),
    ("miss_probability", "q   cache misses", "share"),
    ("resume_probability", "q_s session goes on", "share"),
    ("gap_seconds", "    gap to the next turn", "seconds"),
    ("requests_after_turn", "ν   requests after a turn", "number"),
)
_OF_COMPACTION = (
    ("context_after_tokens", "X′  context after", "tokens"),
    ("cached_after_tokens", "p′  of it cached", "tokens"),
    ("summary_output_tokens", "S+R summary output", "tokens"),
    ("rework_tokens", "L   rework", "tokens"),
)
_HEAD = f"  {'':<25}{'value':>9}  {'median (quartiles)':<24}{'n':>6}  rests on"


def _told(role: str, model: str | None, known: Parameters, strategy: str | None) -> Iterator[str]:
    """Yield one role's lines, at most 80 columns wide."""
    yield role if model is None else f"{role}, {model}"
    yield _HEAD
    for name, label, kind in _ROWS:
        yield _line(label, getattr(known, name), kind)
    if known.pauses:
        cold = " ".join(
            f"{text} {known.pause_exceeds(seconds):.0%}"
            for seconds, text in ((60, "1 min"), (300, "5 min"), (1800, "30 min"), (3600, "1 h"))
        )
        yield f"      pauses longer than {cold}"
    for name, compaction in known.compactions.items():
        if strategy in (None, name):
            yield from _told_compaction(compaction)


def _told_compaction(compaction: CompactionParameters) -> Iterator[str]:
    yield f"  after a compaction, {compaction.strategy}"
    for name, label, kind in _OF_COMPACTION:
        yield _line(label, getattr(compaction, name), kind)
    if compaction.observed_call:
        tokens = ", ".join(
            f"{name.removesuffix('_tokens').replace('_', ' ')} {_text(count, 'short')}"
            for name, count in compaction.observed_call.items()
            if count
        )
        yield f"      its own call: {tokens}"


def _line(label: str, parameter: Parameter, kind: str) -> str:
    spread = ""
    if parameter.median is not None:
        low, high = parameter.lower_quartile, parameter.upper_quartile
        of = "short" if kind == "tokens" else kind
        spread = f"{_text(parameter.median, of)} ({_text(low, of)}–{_text(high, of)})"
    rests = str(parameter.source).removesuffix("_roles")
    if parameter.source != "assumed":
        rests += f" {parameter.credibility:.0%}"
    value = _text(parameter.value, kind)
    return f"  {label:<25}{value:>9}  {spread:<24}{parameter.observations:>6,}  {rests}".rstrip()


def _text(value: float | None, kind: str) -> str:
    if value is None:
        return "–"
    if kind == "short" and abs(value) >= 10_000:
        return f"{value / 1000:,.1f}k"
    if kind == "share":
        return f"{value:.2%}" if 0 < value < 0.01 else f"{value:.1%}"
    if kind == "seconds" and value >= 60:
        count, unit = (value / 60, "min") if value < 3600 else (value / 3600, "h")
        return f"{count:,.1f} {unit}" if count < 10 else f"{count:,.0f} {unit}"
    return f"{value:,.0f} s" if kind == "seconds" else f"{value:,.0f}"
