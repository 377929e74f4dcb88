import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import genai_prices
import pytest
from genai_prices import data_snapshot
from genai_prices.types import TimeOfDateConstraint

from compactuary.errors import InputError, MissingExtraError, UnknownPriceError
from policy.prices import GenaiPriceBook
from policy.weights import weights_from

pytestmark = pytest.mark.disable_socket


@pytest.fixture(scope="module")
def book():
    return GenaiPriceBook()


# model, context, $ input, read, write 5 min, write 1 h, output, window. The providers' price
# pages as of 2026-11-30; 1 h is twice the input where a write fee but no 1 h price is published.
PUBLISHED = [
    ("claude-sonnet-4-5", 150_000, 3, 0.10, 1.25, 2.0, 5, 200_000),
    ("claude-opus-4-8", 900_000, 5, 0.10, 1.25, 2.0, 5, 1_000_000),
    ("claude-opus-5-5", 200_000, 4, 0.05, 1.25, 2.0, 5, 1_000_000),
    ("claude-fable-5-2", 200_000, 8, 0.025, 1.25, 2.0, 5, 1_000_000),
    ("claude-haiku-5-5", 100_000, 0.1, 0.10, 1.25, 2.0, 5, 1_000_000),
    ("claude-haiku-5-5", 100_001, 0.5, 0.10, 1.25, 2.0, 5, 1_000_000),
    ("gpt-4o", 50_000, 2.5, 0.50, 1, 1, 4, 128_000),
    ("gpt-5.5", 272_000, 5, 0.10, 1, 1, 6, 1_000_000),
    ("gpt-5.5", 272_001, 10, 0.10, 1, 1, 4.5, 1_000_000),
    ("gpt-6.1-sol", 272_000, 2, 0.05, 1.25, 2.0, 5, 1_050_000),
    ("gpt-6.1-sol", 272_001, 4, 0.05, 1.25, 2.0, 3.75, 1_050_000),
    ("deepseek-v4-pro", 200_000, 0.66, 1 / 30, 1, 1, 3, 1_000_000),
    ("deepseek-v4-flash", 200_000, 0.15, 0.02, 1, 1, 4, 1_000_000),
    ("kimi-k3", 200_000, 3, 0.10, 1, 2.0, 5, 1_048_576),
    ("gemini-2.5-pro", 200_000, 1.25, 0.10, 1, 1, 8, 1_048_576),
    ("gemini-2.5-pro", 200_001, 2.5, 0.10, 1, 1, 6, 1_048_576),
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row[0]}-{row[1]}")
def test_weights_are_the_published_ones(book, at, row):
    model, context, dollars, read, write, write_1h, output, window = row
    found = book.prices(model, at=at, context_tokens=context)
    assert found.dollars_per_million["input"] == pytest.approx(dollars, rel=1e-12)
    weights = (found.input, found.cache_read, found.cache_write_5m, found.cache_write_1h)
    assert weights == pytest.approx((1, read, write, write_1h), rel=1e-12)
    assert found.output == pytest.approx(output, rel=1e-12)
    assert found.context_window == window
    assert found.as_of == "2026-11-30"
    assert found.source == f"genai-prices {genai_prices.__version__}"


def test_time_of_day_doubles_dollars_and_leaves_weights(book):
    cheap = book.prices("deepseek-v4-pro", at=_utc(30, 0, 59), context_tokens=1000)
    dear = book.prices("deepseek-v4-pro", at=_utc(30, 1, 0), context_tokens=1000)
    assert (cheap.dollars_per_million["input"], dear.dollars_per_million["input"]) == (0.66, 1.32)
    assert (cheap.cache_read, cheap.output) == (dear.cache_read, dear.output)


def test_a_price_changes_at_midnight_utc_whatever_the_callers_zone(book):
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    elsewhere = timezone(timedelta(hours=-8))
    before = book.prices("gemini-4-argon", at=midnight - timedelta(seconds=1), context_tokens=9)
    after = book.prices("gemini-4-argon", at=midnight.astimezone(elsewhere), context_tokens=9)
    assert (before.dollars_per_million["input"], after.dollars_per_million["input"]) == (2, 4)
    assert (before.as_of, after.as_of) == ("2026-11-30", "2026-12-01")


def test_every_bundled_price_window_begins_on_a_quarter_of_an_hour():
    times = [
        time
        for provider in data_snapshot.get_snapshot().providers
        for model in provider.models
        if isinstance(model.prices, list)
        for entry in model.prices
        if isinstance(entry.constraint, TimeOfDateConstraint)
        for time in (entry.constraint.start_time, entry.constraint.end_time)
    ]
    assert times
    assert all(time.minute % 15 == 0 and time.second == 0 for time in times)


def test_a_repeated_look_up_returns_the_same_value(book, at):
    first = book.prices("gpt-5.5", "openai", at=at, context_tokens=10)
    assert book.prices("gpt-5.5", "openai", at=at, context_tokens=20) is first


def test_missing_read_price_is_billed_as_input_and_said(book, at):
    model, provider = _model_with(
        lambda p: p.input_mtok and p.output_mtok and not p.cache_read_mtok
    )
    found = book.prices(model, provider, at=at, context_tokens=10)
    assert found.cache_read == 1.0
    assert "weights.cache_read" in found.assumed


def test_a_missing_hour_price_is_twice_input_and_said(book, at):
    found = book.prices("anthropic/claude-opus-5.5", "openrouter", at=at, context_tokens=10)
    assert (found.cache_write_5m, found.cache_write_1h) == (1.25, 2.0)
    assert found.assumed == ("weights.cache_write_1h",)


def test_no_bundled_model_writes_below_input_or_has_an_impossible_weight(book, at):
    for provider in data_snapshot.get_snapshot().providers:
        for model in provider.models:
            try:
                found = book.prices(model.id, provider.id, at=at, context_tokens=1_000)
            except UnknownPriceError:
                continue
            assert 1 <= found.cache_write_5m < math.inf, (provider.id, model.id)
            assert 1 <= found.cache_write_1h < math.inf, (provider.id, model.id)
            assert found.cache_read > 0, (provider.id, model.id)
            assert found.output > 0, (provider.id, model.id)


@pytest.mark.parametrize(
    ("model", "provider"), [("gpt-6.2-sol", None), ("no-such", None), ("gpt-5.5", "no-such")]
)
def test_an_unknown_model_is_an_error_with_a_remedy(book, at, model, provider):
    with pytest.raises(
        UnknownPriceError, match=r"provider, give weights where .* prices into .* COMPACTUARY_PRIC"
    ):
        book.prices(model, provider, at=at, context_tokens=10)


def test_a_model_without_input_price_is_an_error(book, at):
    model, provider = _model_with(lambda prices: not prices.input_mtok)
    with pytest.raises(UnknownPriceError, match="no input price"):
        book.prices(model, provider, at=at, context_tokens=10)


def test_a_naive_time_is_an_error(book):
    with pytest.raises(InputError, match="at: has no time zone"):
        book.prices("gpt-5.5", at=datetime(2026, 11, 30), context_tokens=10)  # noqa: DTZ001


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(MissingExtraError, match=r"compactuary\[analysis\]"):
        GenaiPriceBook()


def test_the_decision_does_not_load_the_price_data():
    root = Path(__file__).parents[3]
    program = "import sys, policy.decision; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 0


def test_given_weights():
    found = weights_from({"cache_read": 0.2, "cache_write": 1, "output": 4})
    assert (found.input, found.cache_read, found.output) == (1, 0.2, 4)
    assert (found.cache_write_5m, found.cache_write_1h) == (1, 1)
    assert (found.source, found.as_of, found.context_window) == ("caller", None, None)


def test_given_dollar_prices_are_rescaled():
    found = weights_from({"input": 4, "cache_read": 0.2, "cache_write_5m": 5, "output": 20})
    assert (found.input, found.cache_read, found.output) == (1, 0.05, 5)
    assert (found.cache_write_5m, found.cache_write_1h) == (1.25, 2)
    assert found.assumed == ("weights.cache_write_1h",)


GOOD = {"cache_read": 0.1, "cache_write": 1.25, "output": 5}


@pytest.mark.parametrize(
    ("weights", "field"),
    [
        (GOOD | {"cache_red": 0.1}, "weights.cache_red"),
        (GOOD | {"cache_read": -0.1}, "weights.cache_read"),
        (GOOD | {"output": math.nan}, "weights.output"),
        (GOOD | {"output": math.inf}, "weights.output"),
        (GOOD | {"output": True}, "weights.output"),
        (GOOD | {"output": "5"}, "weights.output"),
        (GOOD | {"input": 0}, "weights.input"),
        (GOOD | {"cache_write": 0}, "weights.cache_write"),
        (GOOD | {"cache_write_5m": 1.25}, "weights.cache_write"),
        (GOOD | {"cache_write_1h": 0.5}, "weights.cache_write_1h"),
        ({"cache_read": 0.1, "output": 5}, "weights.cache_write"),
        ({"cache_write": 1.25, "output": 5}, "weights.cache_read"),
        ({"cache_read": 0.1, "cache_write": 1.25}, "weights.output"),
        ([1, 2], "weights"),
    ],
)
def test_a_wrong_weight_is_named(weights, field):
    with pytest.raises(InputError) as caught:
        weights_from(weights)
    assert caught.value.where == field
    assert caught.value.remedy


def _utc(day, hour, minute):
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def _model_with(wanted):
    """The first model of the bundled data whose own name leads back to it and whose prices fit."""
    for provider in data_snapshot.get_snapshot().providers:
        for model in provider.models:
            fits = wanted(model.get_prices(_utc(30, 12, 0)))
            if fits and provider.find_model(model.id) is model:
                return model.id, provider.id
    return pytest.fail("the bundled prices hold no such model any more")
