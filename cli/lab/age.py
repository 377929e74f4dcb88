"""The lab's ``/age``: ten rounds, and what micro-compaction before every call makes of them."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast

from cli.lab.session import Reply, Session, model_of
from cli.lab.strategies import full_line, made
from cli.lab.text import first_line, table
from compactuary.errors import InputError
from policy.prices import Prices
from strategies.ageing import AgedResult, Ageing, Fate, RoundView, age
from strategies.micro import Micro

__all__ = ["age_view"]

_SIGNS: dict[Fate, str] = {"whole": "█", "placeholder": "·", "preserved": "P"}
_ROUNDS = 10
#: A terminal is no wider, and each round is worked out from the first message on.
_MOST_ROUNDS = 50
_COLUMNS = ("round", "results", "without", "cached", "with", "cached", "")


def age_view(session: Session, told: str) -> tuple[Session, Reply]:
    """Show round by round what the next call is sent, of a conversation that was never cut."""
    words = told.split()
    rounds = _rounds(words.pop(0)) if words and "=" not in words[0] else _ROUNDS
    own = full_line(session, "")
    line = " ".join(["micro", *words]) if words or own.split()[0] != "micro" else own
    micro = cast(Micro, made(session, line))
    view = age(session.conversation, micro, session.situation(), rounds=rounds)
    if not view.rounds:
        remedy = "Open a conversation whose responses call tools."
        raise InputError("no tool has brought a result", where="/age", remedy=remedy)
    lines = [_head(view, micro), *_grid(view), *_legend(view, micro)]
    weighed = _weighed(session, view)
    if weighed:
        plain, aged = weighed["input_without"], weighed["input_with"]
        lines.append(
            f"these calls' input at {weighed['model'] or 'weights of your own'}: {plain:,.0f} base "
            f"tokens without, {aged:,.0f} with"
        )
    return session, Reply(lines, {"strategy": line, **_data(view), **weighed})


def _rounds(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= _MOST_ROUNDS:
        remedy = f"Give a whole number from 1 to {_MOST_ROUNDS}."
        raise InputError("is no number of rounds", where="/age", value=word, remedy=remedy)
    return int(word)


def _head(view: Ageing, micro: Micro) -> str:
    shown = len(view.rounds)
    which = f"rounds 1 to {shown} of {view.rounds_in_all}" if shown > 1 else "the first round"
    kept = "the last result stays" if micro.keep == 1 else f"the last {micro.keep} results stay"
    return f"{which}, micro before every call: {kept} whole"


def _grid(view: Ageing) -> list[str]:
    rows = [
        (
            f"{each.number}",
            "".join(_SIGNS[fate] for fate in each.fates),
            f"{each.tokens:,}",
            f"{each.cached_tokens:,}",
            f"{each.aged_tokens:,}",
            f"{each.aged_cached_tokens:,}",
            "",
        )
        for each in view.rounds
    ]
    return table(_COLUMNS, rows, left=2)


def _legend(view: Ageing, micro: Micro) -> list[str]:
    preserved = first_line(", ".join(micro.preserve)) or "nothing"
    return [
        f"█ whole  · placeholder  P preserved ({preserved})",
        f"results from left to right: {', '.join(_runs(view.results))}",
        "without, with: tokens that the next call sends; cached: sent before in the same place",
    ]


def _runs(results: Sequence[AgedResult]) -> Iterator[str]:
    """Yield the tools in order, each run of results of one tool once."""
    number = 0
    for tool, run in groupby(results, lambda each: first_line(each.tool) or "unknown"):
        count = len(list(run))
        first, number = number + 1, number + count
        yield f"{first} {tool}" if count == 1 else f"{first}-{number} {tool}"


def _weighed(session: Session, view: Ageing) -> dict[str, Any]:
    """Weigh what the calls send where prices are known: reads of the cache, and writes."""
    try:
        prices = session.bench.prices(max(each.tokens for each in view.rounds))
    except InputError:
        return {}
    plain = sum(_input(prices, each.tokens, each.cached_tokens) for each in view.rounds)
    aged = sum(_input(prices, each.aged_tokens, each.aged_cached_tokens) for each in view.rounds)
    return {"model": model_of(prices), "input_without": plain, "input_with": aged}


def _input(prices: Prices, sent: int, cached: int) -> float:
    return prices.cache_read * cached + prices.cache_write_5m * (sent - cached)


def _data(view: Ageing) -> dict[str, Any]:
    return {
        "rounds_in_all": view.rounds_in_all,
        "results": [
            {"message": each.message, "tool": first_line(each.tool)} for each in view.results
        ],
        "rounds": [_round(each) for each in view.rounds],
    }


def _round(each: RoundView) -> dict[str, Any]:
    names = ("number", "tokens", "aged_tokens", "cached_tokens", "aged_cached_tokens")
    return {name: getattr(each, name) for name in names} | {"fates": list(each.fates)}
