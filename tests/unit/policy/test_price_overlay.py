import json
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from genai_prices import data_snapshot

from compactuary.errors import InputError, UnknownPriceError
from policy.price_overlay import PriceOverlay, PriceRow, bundled_rows, user_file
from policy.prices import GenaiPriceBook

pytestmark = pytest.mark.disable_socket

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ROW = {
    "provider": "anthropic",
    "models": ["claude-opus-5-5"],
    "since": "2026-11-01",
    "source": "our contract",
    "dollars_per_million": {"input": 3, "output": 18},
}


@pytest.fixture
def book_of(tmp_path):
    def make(*rows):
        file = tmp_path / "contract.json"
        file.write_text(json.dumps({"rows": rows}))
        return GenaiPriceBook(file)

    return make


def ask(book, model, at=NOW, context_tokens=50_000, **more):
    return book.prices(model, at=at, context_tokens=context_tokens, **more)


# The pricing reference, §1.2 and §1.3: time to live and smallest prefix that is cached.
CACHES = [
    ("claude-fable-5-2", 300, 512),
    ("claude-opus-5", 300, 512),
    ("claude-opus-5-5", 300, 512),
    ("claude-opus-4-8", 300, 1_024),
    ("claude-sonnet-4-5", 300, 1_024),
    ("claude-opus-4-7", 300, 2_048),
    ("claude-opus-4-5", 300, 4_096),
    ("claude-haiku-4-5", 300, 4_096),
    ("gpt-5.6-sol", 1_800, 1_024),
    ("gpt-6.1-sol", 1_800, 1_024),
    ("gpt-5.5", 300, 1_024),
    ("gemini-3.1-pro-preview", None, 4_096),
    ("kimi-k3", 300, None),
    ("grok-4.7", None, None),
]


@pytest.mark.parametrize(("model", "ttl", "minimum"), CACHES, ids=str)
def test_what_the_caches_promise(model, ttl, minimum):
    found = ask(GenaiPriceBook(), model)
    assert (found.cache_ttl_seconds, found.minimum_cacheable_tokens) == (ttl, minimum)
    told = (ttl is not None, minimum is not None)
    assert (
        tuple(
            name in found.overlay_sources
            for name in ("cache_ttl_seconds", "minimum_cacheable_tokens")
        )
        == told
    )


def test_what_else_genai_prices_lacks():
    book = GenaiPriceBook()
    assert ask(book, "gpt-6.1-sol").cache_write_12h == 2.5
    assert ask(book, "claude-opus-5-5").cache_clock == "request"
    assert ask(book, "gemini-3.1-pro-preview").cache_storage_dollars == 4.5
    assert ask(book, "gemini-3.8-flash").cache_storage_dollars == 0.5
    assert ask(book, "gemini-3.1-pro-preview").context_window == 1_048_576
    assert "LiteLLM" in ask(book, "gpt-6.1-terra").overlay_sources["cache_write_12h"]


def test_what_genai_prices_lists_is_not_said_to_be_the_overlays():
    found = ask(GenaiPriceBook(), "claude-opus-5-5")
    assert set(found.overlay_sources) == {
        "cache_ttl_seconds",
        "cache_policy",
        "cache_clock",
        "minimum_cacheable_tokens",
    }


def test_every_bundled_row_is_about_a_known_model_and_has_a_source():
    known = {
        provider.id: [model.id for model in provider.models]
        for provider in data_snapshot.get_snapshot().providers
    }
    rows = bundled_rows()
    assert rows
    for row in rows:
        assert row.source
        assert not row.overrides
        assert not row.new
        for model in row.models:
            assert any(fnmatchcase(one, model) for one in known[row.provider]), (row, model)


def test_no_two_bundled_rows_of_equal_standing_speak_of_one_fact():
    """Rows are appended with a new date; a second one of the same date would rewrite the past."""
    said = [
        (row.provider, model, row.since, fact)
        for row in bundled_rows()
        for model in row.models
        for fact in row.facts
    ]
    assert len(said) == len(set(said))


def test_a_later_row_leaves_the_past_alone(book_of):
    later = ROW | {"since": "2026-11-20", "dollars_per_million": {"input": 2}}
    book = book_of(later, ROW)
    days = [datetime(2026, month, day, tzinfo=UTC) for month, day in ((10, 31), (11, 5), (11, 25))]
    found = [ask(book, "claude-opus-5-5", at=day) for day in days]
    assert [prices.dollars_per_million["input"] for prices in found] == [4, 3, 2]
    assert [prices.output for prices in found] == pytest.approx([20 / 4, 18 / 3, 18 / 2])
    assert "contract.json" not in found[0].source
    assert found[1].source.endswith(", contract.json")
    assert found[1].overlay_sources["dollars_per_million.input"] == "our contract"


def test_a_users_row_goes_before_what_is_listed(book_of):
    """$3 in, cached reads still at the listed $0.2, writes at 1.5 times the input."""
    book = book_of(ROW | {"cache_write_5m": 1.5, "context_window": 500_000})
    found = ask(book, "claude-opus-5-5")
    assert found.cache_read == pytest.approx(0.2 / 3)
    assert (found.cache_write_5m, found.context_window) == (1.5, 500_000)
    assert found.dollars_per_million["cache_write_5m"] == pytest.approx(4.5)
    assert ask(book, "claude-opus-4-8").dollars_per_million["input"] == 5


def test_a_new_model_needs_to_be_called_new(book_of):
    new = ROW | {"provider": "acme", "models": ["acme-1"], "new": True}
    found = ask(book_of(new), "acme-1")
    assert (found.provider, found.output, found.cache_write_5m) == ("acme", 6, 1)
    assert (found.cache_read, found.assumed) == (1, ("weights.cache_read",))
    with pytest.raises(UnknownPriceError, match="no input price is known"):
        ask(book_of(new), "acme-1", at=datetime(2026, 10, 1, tzinfo=UTC))


def test_the_closest_row_is_heard():
    since = date(2026, 1, 1)
    rows = [
        PriceRow("p", ("model-1",), since, {"context_window": 1}, "id"),
        PriceRow("p", ("model-*",), date(2026, 2, 1), {"context_window": 2}, "pattern"),
        PriceRow("p", ("*",), since, {"context_window": 3, "cache_ttl_seconds": 9}, "all"),
        PriceRow("p", ("*",), since, {"cache_ttl_seconds": 8}, "appended later"),
        PriceRow("q", ("*",), since, {"context_window": 4}, "another provider"),
    ]
    overlay = PriceOverlay(rows)
    day = date(2026, 3, 1)
    heard = {name: overlay.facts("p", name, day) for name in ("model-1", "model-2", "x")}
    assert [facts["context_window"].value for facts in heard.values()] == [1, 2, 3]
    assert heard["x"]["cache_ttl_seconds"].value == 8
    assert overlay.facts("p", "x", date(2025, 12, 31)) == {}
    assert overlay.facts("r", "x", day) == {}


WRONG = [
    (ROW | {"modles": ["x"]}, "modles", "models"),
    (ROW | {"provider": "antropic"}, "provider", "anthropic"),
    (ROW | {"provider": 5}, "provider", "provider"),
    (ROW | {"models": ["claude-opus-5-6"]}, "models", "claude-opus-5-5"),
    (ROW | {"models": ["claude-opsu-*"]}, "models", "new"),
    (ROW | {"models": []}, "models", "ids"),
    (ROW | {"models": "claude-opus-5-5"}, "models", "ids"),
    (ROW | {"since": "november"}, "since", "2026-11-30"),
    (ROW | {"since": 20261101}, "since", "2026-11-30"),
    (ROW | {"source": ""}, "source", "source"),
    (ROW | {"new": "yes"}, "new", "Leave"),
    (ROW | {"dollars_per_million": {"inputs": 3}}, "dollars_per_million.inputs", "input"),
    (ROW | {"dollars_per_million": {"input": -3}}, "dollars_per_million.input", "dollars"),
    (ROW | {"dollars_per_million": {"input": "3"}}, "dollars_per_million.input", "dollars"),
    (ROW | {"dollars_per_million": {"input": float("nan")}}, "dollars_per_million.input", "doll"),
    (ROW | {"dollars_per_million": [3]}, "dollars_per_million", "input"),
    (
        ROW | {"cache_write_5m": 2, "dollars_per_million": {"cache_write_5m": 2}},
        "dollars_per_million.cache_write_5m",
        "one of them",
    ),
    (ROW | {"cache_write_12h": 0.5}, "cache_write_12h", "docs/prices.md"),
    (ROW | {"cache_ttl_seconds": 0}, "cache_ttl_seconds", "docs/prices.md"),
    (ROW | {"cache_ttl_seconds": True}, "cache_ttl_seconds", "docs/prices.md"),
    (ROW | {"context_window": 1.5}, "context_window", "docs/prices.md"),
    (ROW | {"cache_policy": "forever"}, "cache_policy", "docs/prices.md"),
    (ROW | {"cache_clock": []}, "cache_clock", "docs/prices.md"),
    (ROW | {"cache_storage_dollars": -1}, "cache_storage_dollars", "docs/prices.md"),
    (
        ROW | {"new": True, "models": ["a"], "dollars_per_million": {"input": 3}},
        "dollars_per_million.output",
        "price",
    ),
    (ROW | {"new": True, "models": ["a-*"]}, "models", "id"),
    ({name: ROW[name] for name in ROW if name != "since"}, "since", "Give since"),
]


@pytest.mark.parametrize(("row", "key", "remedy"), WRONG, ids=lambda part: str(part)[-40:])
def test_a_typo_is_named_with_file_row_and_remedy(book_of, row, key, remedy):
    with pytest.raises(InputError) as caught:
        book_of(ROW, row)
    assert caught.value.where.endswith(f"contract.json: rows[1].{key}")
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"row": []}', '{"rows": {}}', '{"rows": [5]}', '{"rows": [], "rows": []}', "\xff"],
)
def test_another_kind_of_file_is_refused(tmp_path, text):
    file = tmp_path / "prices.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        GenaiPriceBook(file)
    assert caught.value.where.startswith(str(file))
    assert caught.value.remedy


def test_a_row_without_facts_says_nothing(book_of):
    row = {name: value for name, value in ROW.items() if name != "dollars_per_million"}
    with pytest.raises(InputError, match=r"rows\[0\]: says nothing"):
        book_of(row)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"COMPACTUARY_PRICES"):
        GenaiPriceBook(tmp_path / "nothing.json")


def test_the_environment_names_the_file(monkeypatch, tmp_path, book_of):
    book_of(ROW)
    monkeypatch.setenv("COMPACTUARY_PRICES", str(tmp_path / "contract.json"))
    assert ask(GenaiPriceBook(), "claude-opus-5-5").dollars_per_million["input"] == 3
    assert user_file({"COMPACTUARY_PRICES": ""}) is None


def test_tiers_and_speed_have_prices_of_their_own():
    """The price lists: fast and priority cost twice as much, batch and flex half; same weights."""
    book = GenaiPriceBook()
    cases = [
        ("claude-opus-5-5", {"speed": "fast"}, 8),
        ("claude-opus-5-5", {"processing": "batch"}, 2),
        ("gpt-6.1-sol", {"service_tier": "priority"}, 4),
        ("gpt-6.1-sol", {"service_tier": "flex"}, 1),
        ("gpt-6.1-sol", {"service_tier": "default"}, 2),
        ("claude-opus-5-5", {"service_tier": "standard"}, 4),
        ("claude-opus-5-5", {}, 4),
    ]
    for model, context, dollars in cases:
        found = ask(book, model, price_context=context)
        assert found.dollars_per_million["input"] == dollars, (model, context)
        assert found.cache_read == 0.05
        assert found.output == 5
    # The cliff of a tier is that of the list.
    assert ask(book, "gpt-6.1-sol", price_context={"service_tier": "flex"}).output == 5
    beyond = ask(
        book, "gpt-6.1-sol", context_tokens=272_001, price_context={"service_tier": "flex"}
    )
    assert (beyond.dollars_per_million["input"], beyond.output) == (2, 3.75)


@pytest.mark.parametrize(
    ("model", "context"),
    [
        ("claude-opus-5-5", {"speed": "fst"}),
        ("gpt-5.5", {"speeed": "fast"}),
        ("gemini-2.5-pro", {"service_tier": "scale"}),
    ],
)
def test_a_tier_without_a_price_is_not_answered_with_the_standard(model, context):
    with pytest.raises(UnknownPriceError) as caught:
        ask(GenaiPriceBook(), model, price_context=context)
    assert caught.value.where == f"price_context.{next(iter(context))}"
    assert "standard price" in caught.value.remedy


def test_a_repeated_look_up_reads_no_file(monkeypatch):
    book = GenaiPriceBook()
    first = ask(book, "claude-opus-5-5")
    for name in ("read_bytes", "read_text", "open"):
        monkeypatch.setattr(Path, name, lambda *given: pytest.fail("a file was read"))
    assert ask(book, "claude-opus-5-5") is first
    assert ask(book, "gpt-6.1-sol").cache_write_12h == 2.5
