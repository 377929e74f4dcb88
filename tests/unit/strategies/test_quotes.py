"""C, X′ and p′ of each strategy by hand: read .1, write 1.25, output 5."""

import pytest

from strategies.formats.recognise import see
from strategies.registry import strategy
from strategies.situation import Situation
from strategies.summary import Summarizer
from tests.unit.strategies.conversations import FORMATS

pytestmark = pytest.mark.disable_socket

SYSTEM = 1_000
KNOWN = Situation(prefix_tokens=SYSTEM)
FORCED = Situation(prefix_tokens=SYSTEM, force=True)


def session():
    """Messages of 100, 50 (no arguments), 600, 100, 100 and 100 tokens."""
    use = {"type": "tool_use", "id": "a", "name": "b" * 200, "input": None}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "r" * 2400}
    return [
        {"role": "user", "content": "p" * 400},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "s" * 400},
        {"role": "user", "content": "q" * 400},
        {"role": "assistant", "content": "t" * 400},
    ]


def sizes(quote):
    return quote.kind, quote.context_tokens, quote.context_after_tokens, quote.cached_after_tokens


def test_none(prices):
    quote = strategy("none").quote(session(), prices, KNOWN)
    assert sizes(quote) == ("none", 2050, 2050, 2050)
    assert (quote.cost, quote.saving) == (0, 0)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("sliding_window", {"keep_last": 2}), ("token_budget", {"budget_tokens": 1300})],
)
def test_dropping_caches_what_is_left_again(prices, name, settings):
    quote = strategy(name, **settings).quote(session(), prices, KNOWN)
    assert sizes(quote) == ("clear", 2050, 1200, 1000)
    assert quote.cost == pytest.approx(1.15 * 200)
    assert quote.saving == pytest.approx(0.1 * 850)


def test_micro_keeps_the_cache_up_to_the_first_placeholder(prices):
    quote = strategy("micro", keep=0).quote(session(), prices, KNOWN)
    # "[Previous: used bbb…]" is 217 characters; 2183 of 2400 go, 545 tokens.
    assert sizes(quote) == ("clear", 2050, 1505, 1150)
    assert quote.cost == pytest.approx(1.15 * (1505 - 1150))
    assert quote.saving == pytest.approx(0.1 * 545)


def test_a_separate_summary_sends_the_old_part_at_full_price(prices):
    model = Summarizer(str, prompt="x" * 400, summary_tokens=200)
    chosen = strategy("summarize", model=model, keep_recent=2)
    quote = chosen.quote(session(), prices, FORCED)
    # The instructions are 400 characters; the line that they lack makes it 476: 119 tokens.
    assert sizes(quote) == ("separate", 2050, 1400, 1000)
    # As a transcript it has marks: 7, 19, 52 and 12 characters, and 2 behind each message: 24.
    assert quote.cost == pytest.approx((850 + 24 + 119) + 5 * 200 + 1.15 * 400)
    assert quote.saving == pytest.approx(0.1 * 650)


def test_behind_the_prefix_it_reads_the_cache(prices):
    model = Summarizer(str, prompt="x" * 400, summary_tokens=200, behind_prefix=True)
    chosen = strategy("summarize", model=model, keep_recent=2)
    quote = chosen.quote(session(), prices, FORCED)
    assert sizes(quote) == ("summary", 2050, 1400, 1000)
    assert quote.cost == pytest.approx(0.1 * 1850 + 119 + 5 * 200 + 1.15 * 400)


@pytest.mark.parametrize("name", ["auto", "compact_tool"])
def test_auto_leaves_summary_and_last_prompt(prices, name):
    model = Summarizer(str, prompt="x" * 400, summary_tokens=200)
    quote = strategy(name, model=model).quote(session(), prices, FORCED)
    assert sizes(quote) == ("separate", 2050, 1300, 1000)
    # The marks of five messages are 112 characters.
    assert quote.cost == pytest.approx((950 + 28 + 119) + 5 * 200 + 1.15 * 300)


def test_thinking_and_images_are_not_sent_to_a_summarizer(prices):
    model = Summarizer(str, prompt="x" * 400, summary_tokens=200)
    chosen = strategy("summarize", model=model, keep_recent=2)
    plain = session()
    thinking = {"type": "thinking", "thinking": "h" * 4000, "signature": "s"}
    image = {"type": "image", "source": {"type": "base64", "data": "aGk="}}
    more = [
        {"role": "user", "content": [{"type": "text", "text": "p" * 400}, image]},
        {"role": "assistant", "content": [thinking, *plain[1]["content"]]},
        *plain[2:],
    ]
    less, full = (chosen.quote(messages, prices, FORCED) for messages in (plain, more))
    assert full.context_tokens - less.context_tokens == 1000 + 1600
    assert full.cost == pytest.approx(less.cost)


def test_below_their_thresholds_they_quote_nothing(prices):
    for name, settings in (("summarize", {"model": str}), ("auto", {"model": str})):
        quote = strategy(name, **settings).quote(session(), prices, KNOWN)
        assert sizes(quote) == ("none", 2050, 2050, 2050)


def test_tail_digest(prices):
    chosen = strategy("tail_digest", keep_recent=2)
    messages = session()
    quote = chosen.quote(messages, prices, KNOWN)
    after = see(chosen.compact(messages, KNOWN).messages).tokens() + SYSTEM
    assert quote.kind == "clear"
    assert quote.cached_after_tokens == 1150
    # Digests and memory are not written for a quote; here the tool's name is 200 characters.
    assert quote.context_after_tokens == pytest.approx(after, abs=100)


@pytest.mark.parametrize(
    ("way", "after"), [("anthropic", 1000 + 5000 + 200), ("anthropic_threshold", 1000 + 5000)]
)
def test_the_server_reads_the_cache(prices, way, after):
    big = [{"role": "user", "content": "u" * 800_000}, *session()[3:]]
    quote = strategy("server_side", way=way).quote(big, prices, KNOWN)
    assert sizes(quote) == ("server_side", 201_300, after, 1000)
    sent = 201_100 if way == "anthropic" else 201_300
    assert quote.cost == pytest.approx(0.1 * sent + 5 * 5000 + 1.15 * (after - 1000))


def test_what_usage_taught_scales_the_messages_and_not_the_prefix(prices):
    situation = Situation(prefix_tokens=SYSTEM, token_ratio=2.0)
    quote = strategy("sliding_window", keep_last=2).quote(session(), prices, situation)
    assert sizes(quote) == ("clear", 3100, 1400, 1000)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("made", ["sliding_window keep_last=3", "micro keep=2", "token_budget"])
def test_a_quote_foretells_what_compacting_leaves(prices, name, made):
    from tests.unit.strategies.conversations import WRITERS  # noqa: PLC0415 - beside its use

    writer = WRITERS[name]()
    writer.system("be good")
    for number in range(6):
        writer.prompt(f"do {number}", False)
        writer.calls([(f"c{number}", "bash", "x" * 50, "")], False)
        writer.results([(f"c{number}", "bash", "", "y" * 60_000)], False)
        writer.answer("done")
    chosen = strategy(made)
    quote = chosen.quote(writer.messages, prices)
    result = chosen.compact(writer.messages)
    assert result.changed
    assert quote.context_tokens == result.messages_tokens
    assert quote.context_after_tokens == pytest.approx(result.messages_after_tokens, abs=1)
    assert see(result.messages, name).tokens() == pytest.approx(quote.context_after_tokens, abs=6)
