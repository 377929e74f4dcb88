"""Strategies of the lab: by line, with the short names of their source and the lab's summarizer."""

from dataclasses import MISSING, fields
from typing import Any

from cli.lab.session import Session
from compactuary.errors import InputError
from strategies.registry import STRATEGIES, strategy
from strategies.strategy import Strategy

__all__ = ["ALIASES", "forces", "full_line", "made", "settings_of"]

#: Short names, and the lines that they stand for.
ALIASES = {"sliding": "sliding_window keep_last=6", "summarize": "summarize threshold=0"}
#: What acts only from a size on is not held back by it, unless the line itself names the size.
_SIZES = ("threshold", "threshold_tokens")
_WAYS = {"anthropic": "anthropic", "openai_responses": "openai"}


def full_line(session: Session, line: str) -> str:
    """Return a strategy's line without short names; the session's own where there is none."""
    words = line.split() or session.strategy.split()
    name, *settings = words
    told = {word.partition("=")[0] for word in settings}
    usual = ALIASES.get(name, name).split()
    kept = [word for word in usual[1:] if word.partition("=")[0] not in told]
    if usual[0] == "server_side" and "way" not in told:
        way = _WAYS.get(session.conversation.wire_format.name)
        kept += [f"way={way}"] if way else []
    return " ".join([usual[0], *kept, *settings])


def made(session: Session, line: str) -> Strategy:
    """Return the strategy of a full line; whoever needs a model gets the session's summarizer.

    Raises
    ------
    InputError
        The name or a setting is unknown, or a value is wrong.
    """
    kind = STRATEGIES.get(line.split(maxsplit=1)[0])
    takes_model = kind is not None and "model" in settings_of(kind.name)
    if takes_model and any(word.startswith("model=") for word in line.split()):
        remedy = "Start the lab with --summarizer and --summary-model."
        raise InputError("is not set in a line", where="model", remedy=remedy)
    given: dict[str, Any] = {"model": session.bench.summarizer} if takes_model else {}
    return strategy(line, **given)


def forces(line: str) -> bool:
    """Whether a strategy acts below its threshold: it does unless the line names one."""
    told = {word.partition("=")[0] for word in line.split()[1:]}
    return told.isdisjoint(_SIZES)


def settings_of(name: str) -> dict[str, Any]:
    """Return a strategy's settings with their defaults; None where there is none."""
    return {
        each.name: None if each.default is MISSING else each.default
        for each in fields(STRATEGIES[name])
    }
