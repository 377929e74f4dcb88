"""Every strategy by its name: choosing one is one line of code, or of configuration."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from compactuary.errors import InputError
from strategies.auto import Auto
from strategies.compact_tool import CompactTool
from strategies.micro import Micro
from strategies.none import NoCompaction
from strategies.server_side import ServerSide
from strategies.sliding_window import SlidingWindow
from strategies.strategy import Strategy
from strategies.summarize import Summarize
from strategies.tail_digest import TailDigest
from strategies.token_budget import TokenBudget

__all__ = ["STRATEGIES", "strategy"]

STRATEGIES: Mapping[str, Any] = {
    each.name: each
    for each in (
        NoCompaction,
        SlidingWindow,
        Summarize,
        TokenBudget,
        Micro,
        Auto,
        CompactTool,
        TailDigest,
        ServerSide,
    )
}


def strategy(name: str, **settings: Any) -> Strategy:
    """Return a strategy by name.

    Parameters
    ----------
    name : str
        One of `STRATEGIES`; a line of configuration may hold settings as well, each
        ``name=value`` with a JSON value or a plain word; commas make a list.
    settings
        Of the strategy; they go before those in the line.

    Raises
    ------
    InputError
        The name or a setting is unknown, or a value is out of range or of another type.

    Examples
    --------
    >>> strategy("micro", keep=3)
    Micro(keep=3, preserve=('read_file',))
    >>> strategy("micro keep=5 preserve=read_file,search")
    Micro(keep=5, preserve=('read_file', 'search'))
    """
    words = name.split() if isinstance(name, str) else []
    kind = STRATEGIES.get(words[0]) if words else None
    if kind is None:
        remedy = f"Known: {', '.join(STRATEGIES)}."
        raise InputError("unknown strategy", where="strategy", value=name, remedy=remedy)
    told = dict(map(_setting, words[1:])) | settings
    known = [each.name for each in fields(kind)]
    for each in told:
        if each not in known:
            remedy = f"{kind.name} takes: {', '.join(known) or 'nothing'}."
            raise InputError("unknown setting", where="strategy", value=each, remedy=remedy)
    if "model" in known and "model" not in told:
        remedy = "Give model=, a function that takes a SummaryRequest and returns the summary."
        raise InputError("needs a model", where=f"strategy {kind.name}", remedy=remedy)
    made: Strategy = kind(**told)
    return made


def _setting(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not equals:
        remedy = "Write settings as name=value."
        raise InputError("is no setting", where="strategy", value=word, remedy=remedy)
    try:
        return name, json.loads(text)
    except ValueError:
        # A plain word, or several.
        return name, tuple(text.split(",")) if "," in text or name == "preserve" else text
