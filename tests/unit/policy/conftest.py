import math
from dataclasses import fields
from datetime import UTC, datetime

import pytest

from policy.parameters import CompactionParameters, Parameter, Parameters
from policy.prices import Prices
from policy.role_table import RoleTable
from policy.snapshot import Snapshot, TableKey


def table_of(expected, *, role="main", survival=None, ends=10, **changes):
    """A table with this m(i) at ages 0.. and, unless given, a survival that halves at each age."""
    ages = len(expected)
    values = {
        "role": role,
        "unit": "tool_calls",
        "turns": 40,
        "tail_age": ages - 1,
        "at_risk": tuple(range(40, 40 - ages, -1)),
        "ends": (ends,) * ages,
        "expected": tuple(expected),
        "lower": tuple(m * 0.9 for m in expected),
        "upper": tuple(m * 1.2 for m in expected),
        "survival": survival or tuple(0.5**age for age in range(ages)),
        "continue_probability": (0.75,) * ages,
        "level": 0.9,
        "requests_per_call": None,
    }
    return RoleTable(**(values | changes))


def parameters_of(**values):
    """Parameters of main: those named learned from 30 observations, the rest assumed."""
    learned = {
        name: Parameter(value, "role", 30, 0.9, value, value, value)
        for name, value in values.items()
        if name != "pauses"
    }
    in_compaction = {field.name for field in fields(CompactionParameters)}
    own = {name: learned.pop(name) for name in list(learned) if name in in_compaction}
    return Parameters(
        role="main",
        pauses=values.get("pauses", ()),
        compactions={"summary": CompactionParameters(**own)},
        **learned,
    )


def snapshot_of(*tables, portfolio=None, models=(), standard=None, parameters=None):
    """Tables that are printed and decide alike; all roles' is the fallback of every name.

    `models` are (role, model, table) of a role's turns on one model.
    """
    kept = {}
    for table in tables:
        kept[TableKey("raw", table.unit, table.role)] = table
        kept[TableKey("decisive", table.unit, table.role)] = table
    for role, model, table in models:
        kept[TableKey("decisive", table.unit, role, model)] = table
    if portfolio is not None:
        kept[TableKey("portfolio", portfolio.unit)] = portfolio
        kept[TableKey("fallback", portfolio.unit)] = portfolio
    learned = {} if parameters is None else {TableKey("parameters", "", "main"): parameters}
    return Snapshot.of(7, "2026-11-30T12:00:00+00:00", kept, standard=standard, parameters=learned)


def prices_of(**changes):
    """Weights r = .1, w = 1.25, 2 for an hour, o = 5, at $5, with a window of 1M."""
    values = {
        "model": "m",
        "provider": "p",
        "cache_read": 0.1,
        "cache_write_5m": 1.25,
        "cache_write_1h": 2.0,
        "output": 5.0,
        "dollars_per_million": {"input": 5.0, "output": 25.0},
        "context_window": 1_000_000,
        "source": "a list",
        "as_of": "2026-11-30",
    }
    return Prices(**(values | changes))


class CliffBook:
    """Answers `below` up to a context size, `above` beyond it, and counts its look-ups."""

    def __init__(self, below, above=None, cliff=math.inf):
        self.below, self.above, self.cliff, self.asked = below, above, cliff, 0

    def prices(self, model, provider, *, at, context_tokens):
        self.asked += 1
        return self.above if context_tokens > self.cliff else self.below


@pytest.fixture(scope="session")
def at():
    return datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def make_table():
    return table_of


@pytest.fixture(scope="session")
def make_snapshot():
    return snapshot_of


@pytest.fixture(scope="session")
def make_prices():
    return prices_of


@pytest.fixture(scope="session")
def make_book():
    return CliffBook


@pytest.fixture(scope="session")
def make_parameters():
    return parameters_of
