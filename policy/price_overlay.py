"""Dated facts about prices and caches that genai-prices lacks, bundled and from a user's file.

A file is JSON, ``{"rows": [...]}``. A row has ``provider``, ``models`` (ids, where ``*`` stands
for anything), ``since`` (an ISO date), ``source``, and facts. Rows are appended, never changed:
a turn of last month is priced by the rows of last month.
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

from compactuary.errors import InputError

__all__ = [
    "PRICES_VARIABLE",
    "Fact",
    "PriceOverlay",
    "PriceRow",
    "bundled_rows",
    "user_file",
    "user_rows",
]

#: Names the environment variable that holds the path of a user's price file.
PRICES_VARIABLE = "COMPACTUARY_PRICES"

_BUNDLED = Path(__file__).parent / "data" / "overlay.json"
_KEYS = ("provider", "models", "since", "source")
#: Prices in dollars per million tokens that a user's file may set.
DOLLARS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
_POLICIES = ("refresh", "fixed", "evict")
_CLOCKS = ("request", "response", "unknown")


@dataclass(frozen=True, slots=True)
class Fact:
    """One value about a model, with who says so.

    Parameters
    ----------
    value : int, float, str or mapping
        The value.
    source : str
        Where it is from.
    overrides : bool
        Whether it replaces what genai-prices lists, or only fills a gap.
    """

    value: Any
    source: str
    overrides: bool


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One row of an overlay file.

    Parameters
    ----------
    provider : str
        Who bills, by the id that genai-prices uses.
    models : tuple of str
        Ids of models, or patterns.
    since : date
        The first day, in UTC, that the facts hold on.
    facts : mapping
        Values by name; ``dollars_per_million.input`` and so on for prices.
    source : str
        Where they are from.
    new : bool
        Whether the row introduces a model that genai-prices does not know.
    overrides : bool
        Whether the facts replace listed prices; true for a user's file.
    """

    provider: str
    models: tuple[str, ...]
    since: date
    facts: Mapping[str, Any]
    source: str
    new: bool = False
    overrides: bool = False


class PriceOverlay:
    """Finds the facts about a model on a day.

    Parameters
    ----------
    rows : iterable of PriceRow
        In order of precedence, the last one first asked: of the rows that speak of a fact, an
        overriding one goes before a filling one, a model's id before a pattern, a longer pattern
        before a shorter one, a later date before an earlier one.
    """

    def __init__(self, rows: Iterable[PriceRow]) -> None:
        self._rows: dict[str, list[PriceRow]] = {}
        for row in rows:
            self._rows.setdefault(row.provider, []).append(row)

    def facts(self, provider: str, model: str, day: date) -> dict[str, Fact]:
        """Return what holds for a model on a day, by name; empty where nothing is known."""
        ranked = [
            ((row.overrides, rank, row.since), row)
            for row in self._rows.get(provider, ())
            if row.since <= day and (rank := _rank(row.models, model))
        ]
        # A stable sort: of two rows that are equal in everything, the one appended later wins.
        ranked.sort(key=lambda pair: pair[0])
        return {
            name: Fact(value, row.source, row.overrides)
            for _, row in ranked
            for name, value in row.facts.items()
        }

    def new_model(self, model: str, provider: str | None) -> str | None:
        """Return the provider of a model that only a user's file knows, or None."""
        for owner, rows in self._rows.items():
            if provider in {None, owner} and any(row.new and model in row.models for row in rows):
                return owner
        return None


def user_file(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the price file that ``COMPACTUARY_PRICES`` names, if any."""
    given = environment.get(PRICES_VARIABLE)
    return Path(given) if given else None


def bundled_rows() -> list[PriceRow]:
    """Return the rows that come with the package."""
    return _rows(_BUNDLED, None)


def user_rows(file: Path, known: Mapping[str, Iterable[str]]) -> list[PriceRow]:
    """Return the rows of a user's file, which override what is listed.

    Parameters
    ----------
    file : Path
        The JSON file.
    known : mapping of str to iterable of str
        Ids of the models by provider. A row of any other model must say ``"new": true`` and give
        its dollars, so that a typo is no new model.

    Raises
    ------
    InputError
        The file can't be read; or a key, provider, model or value in it is wrong: names the file,
        the row and the key.
    """
    return _rows(file, {provider: tuple(models) for provider, models in known.items()})


def _rows(file: Path, known: Mapping[str, tuple[str, ...]] | None) -> list[PriceRow]:
    try:
        content = json.loads(file.read_bytes(), object_pairs_hook=_once)
    except (OSError, ValueError) as error:
        raise InputError(
            f"is no readable price file: {error}",
            where=str(file),
            remedy=f"Mend it, or unset {PRICES_VARIABLE}",
        ) from error
    if not isinstance(content, dict) or set(content) != {"rows"} or not _list(content["rows"]):
        _wrong(str(file), "must be an object with one list, rows", content, 'Give {"rows": [...]}')
    return [_row(f"{file}: rows[{at}]", row, known) for at, row in enumerate(content["rows"])]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"a key is given twice among {', '.join(names)}")
    return found


def _row(where: str, row: Any, known: Mapping[str, tuple[str, ...]] | None) -> PriceRow:
    if not isinstance(row, dict):
        _wrong(where, "must be an object", row, f"Give {', '.join(_KEYS)} and facts")
    for name in _KEYS:
        if name not in row:
            _wrong(f"{where}.{name}", "is missing", None, f"Give {name}")
    names = (*_KEYS, "new", "dollars_per_million", *_FACTS)
    for name in row:
        if name not in names:
            _wrong(f"{where}.{name}", "is no key of a price row", row[name], _like(name, names))
    for name in ("provider", "source"):
        if not isinstance(row[name], str) or not row[name]:
            _wrong(f"{where}.{name}", "must be a text", row[name], f"Give the {name}")
    new = row.get("new", False)
    if not isinstance(new, bool):
        _wrong(f"{where}.new", "must be true or false", new, "Leave it out for a listed model")
    facts = _facts(where, row)
    if not facts:
        _wrong(where, "says nothing", row, f"Give one of {', '.join(names[len(_KEYS) :])}")
    models = _models(where, row, new=new, known=known)
    if new:
        _check_new(where, row, facts)
    since = _since(where, row["since"])
    return PriceRow(
        row["provider"], models, since, facts, row["source"], new, overrides=known is not None
    )


def _since(where: str, value: Any) -> date:
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        _wrong(f"{where}.since", "is no date", value, "Give a date like 2026-11-30")


def _models(
    where: str, row: Mapping[str, Any], *, new: bool, known: Mapping[str, tuple[str, ...]] | None
) -> tuple[str, ...]:
    models = row["models"]
    if not _list(models) or not models or not all(isinstance(one, str) and one for one in models):
        remedy = 'Give ids, like ["gpt-5.5"], or ["*"]'
        _wrong(f"{where}.models", "must be a list of names", models, remedy)
    if known is None or new:
        return tuple(models)
    provider = row["provider"]
    if provider not in known:
        _wrong(f"{where}.provider", "is not known", provider, _like(provider, known))
    ids = known[provider]
    for model in models:
        if not any(fnmatchcase(one, model) for one in ids):
            remedy = f'{_like(model, ids)}; or say "new": true and give its dollars_per_million'
            _wrong(f"{where}.models", f"is no model of {provider}", model, remedy)
    return tuple(models)


def _check_new(where: str, row: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    for model in row["models"]:
        if "*" in model:
            _wrong(f"{where}.models", "can't introduce a pattern", model, "Give the model's id")
    for name in ("input", "output"):
        if not facts.get(f"dollars_per_million.{name}"):
            field = f"{where}.dollars_per_million.{name}"
            _wrong(field, "is missing for a new model", None, "Give its price")


def _facts(where: str, row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (fits, problem) in _FACTS.items():
        if name in row:
            if not fits(row[name]):
                _wrong(f"{where}.{name}", problem, row[name], "See docs/prices.md")
            found[name] = row[name]
    dollars = row.get("dollars_per_million", {})
    if not isinstance(dollars, dict):
        remedy = f"Give some of {', '.join(DOLLARS)}"
        _wrong(f"{where}.dollars_per_million", "must be an object", dollars, remedy)
    for name, value in dollars.items():
        field = f"{where}.dollars_per_million.{name}"
        if name not in DOLLARS:
            _wrong(field, "is no price", value, _like(name, DOLLARS))
        if not _number(value) or value <= 0:
            _wrong(field, "must be a positive number", value, "Give dollars per million tokens")
        if name in row:
            _wrong(field, f"is given twice, also as the weight {name}", value, "Give one of them")
        found[f"dollars_per_million.{name}"] = value
    return found


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 10**12


def _list(value: Any) -> bool:
    return isinstance(value, list)


_WEIGHT = (lambda value: _number(value) and 1 <= value <= 1e6, "must be a weight of at least 1")
_TOKENS = (_whole, "must be a positive whole number")
_FACTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "context_window": _TOKENS,
    "cache_ttl_seconds": _TOKENS,
    "cache_policy": (lambda value: value in _POLICIES, f"must be one of {', '.join(_POLICIES)}"),
    "cache_clock": (lambda value: value in _CLOCKS, f"must be one of {', '.join(_CLOCKS)}"),
    "minimum_cacheable_tokens": _TOKENS,
    "cache_storage_dollars": (
        lambda value: _number(value) and value > 0,
        "must be positive dollars per million tokens and hour",
    ),
    "cache_write_5m": _WEIGHT,
    "cache_write_1h": _WEIGHT,
    "cache_write_12h": _WEIGHT,
}


def _rank(models: tuple[str, ...], model: str) -> int:
    """Return how closely a row's names fit a model: 0 not at all, most for its very id."""
    ranks = [0]
    for name in models:
        if name == model:
            ranks.append(1_000)
        elif fnmatchcase(model, name):
            ranks.append(1 + len(name.replace("*", "")))
    return max(ranks)


def _like(name: str, names: Iterable[str]) -> str:
    listed = sorted(names)
    close = get_close_matches(name, listed, n=3)
    if close:
        return f"Did you mean {' or '.join(close)}"
    shown = ", ".join(listed[:10])
    return f"Known: {shown}" + (", ..." if len(listed) > 10 else "")


def _wrong(where: str, problem: str, value: Any, remedy: str) -> NoReturn:
    raise InputError(problem, where=where, value=value, remedy=remedy)
