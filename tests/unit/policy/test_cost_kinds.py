import math

import pytest

from compactuary.errors import InputError
from policy.break_even import break_even_requests
from policy.cache_state import AFTER_PAUSE, BEFORE_PAUSE, WARM, CacheState
from policy.cost import compaction_terms, sliding_window, warm_summary
from policy.sizes import Sizes
from policy.summary_call import NO_CALL, observed_call, separate_call, shared_prefix_call
from policy.weights import weights_from

# The worked numbers of the pricing reference, §3.4: X = 200k, P = 20k, S = 5k, R = 1k, I = .5k,
# T = 10k, so that X' = 35k.
WORKED = Sizes(200_000, 35_000, prefix_tokens=20_000, summary_output_tokens=6_000)

# r, w, o, s; C and C/s of kinds a, b, c; net(1) before a pause and after it, as printed there.
TABLE = {
    "opus 4.8, 5 min": (
        (0.1, 1.25, 5, 16_500),
        (67_750, 4.1, 227_750, 13.8, 17_250, 1.0),
        (155_750, -24_250),
    ),
    "opus 4.8, 1 h": (
        (0.1, 2.0, 5, 16_500),
        (79_000, 4.8, 239_000, 14.5, 28_500, 1.7),
        (279_500, 99_500),
    ),
    "opus 5.5, 5 min": (
        (0.05, 1.25, 5, 8_250),
        (58_500, 7.1, 228_500, 27.7, 18_000, 2.2),
        (165_750, -24_250),
    ),
    "opus 5.5, 1 h": (
        (0.05, 2.0, 5, 8_250),
        (69_750, 8.5, 239_750, 29.1, 29_250, 3.5),
        (289_500, 99_500),
    ),
    "fable 5.2": (
        (0.025, 1.25, 5, 4_125),
        (53_875, 13.1, 228_875, 55.5, 18_375, 4.5),
        (170_750, -24_250),
    ),
    "gpt-5.5": (
        (0.1, 1, 6, 16_500),
        (70_000, 4.2, 230_000, 13.9, 13_500, 0.8),
        (108_500, -71_500),
    ),
    "gpt-6.1-sol": (
        (0.05, 1.25, 5, 8_250),
        (58_500, 7.1, 228_500, 27.7, 18_000, 2.2),
        (165_750, -24_250),
    ),
    "deepseek-v4-flash": (
        (0.02, 1, 4, 3_300),
        (43_200, 13.1, 219_200, 66.4, 14_700, 4.5),
        (136_500, -59_500),
    ),
    "grok 4.7": (
        (0.25, 1, 3, 41_250),
        (79_750, 1.9, 209_750, 5.1, 11_250, 0.3),
        (96_500, -53_500),
    ),
}
ROWS = [pytest.param(*row, id=name) for name, row in TABLE.items()]


@pytest.mark.parametrize(("weights", "warm", "paused"), ROWS)
def test_worked_costs_on_a_warm_cache(weights, warm, paused):
    prices = _weights(*weights[:3])
    calls = (shared_prefix_call(WORKED, prices), separate_call(WORKED, prices, prices), NO_CALL)
    found = [compaction_terms(call, WORKED, prices) for call in calls]
    assert [terms.saving for terms in found] == pytest.approx([weights[3]] * 3)
    assert [terms.cost for terms in found] == pytest.approx(warm[::2])
    requests = [break_even_requests(terms.cost, terms.saving) for terms in found]
    assert requests == pytest.approx(warm[1::2], abs=0.05)


@pytest.mark.parametrize(("weights", "warm", "paused"), ROWS)
def test_worked_nets_around_a_pause(weights, warm, paused):
    prices = _weights(*weights[:3])
    before = compaction_terms(
        shared_prefix_call(WORKED, prices, BEFORE_PAUSE), WORKED, prices, state=BEFORE_PAUSE
    )
    after = compaction_terms(
        shared_prefix_call(WORKED, prices, AFTER_PAUSE), WORKED, prices, state=AFTER_PAUSE
    )
    assert (before.net(1), after.net(1)) == pytest.approx(paused)


# A production log of gpt-5.5 (iterate/iterate pull request 1888): a summary call of 144,410
# tokens, 129,792 of them cached, and 899 of output; the next request had 18,079.
def test_a_logged_summary_behind_the_prefix_and_without_one():
    prices = _weights(0.1, 1, 6)
    sizes = Sizes(144_229, 18_079, 17_152, 899, 181, cached_tokens=129_792)
    assert shared_prefix_call(sizes, prices).cost == pytest.approx(32_991, abs=0.5)
    uncached = separate_call(sizes, prices, prices, sent_tokens=144_229)
    assert uncached.cost * 5 / 1e6 == pytest.approx(0.749, abs=5e-4)


# tmustier/pine-of-glass issue 51: 173,864 before (171,520 read), a summary call of 40,987 tokens,
# all uncached, then 39,083 = 17,920 read + 21,163.
PI = {"context_tokens": 173_864, "context_after_tokens": 39_083, "prefix_tokens": 17_920}


def test_the_next_request_of_a_logged_compaction_costs_that_much_more():
    terms = compaction_terms(NO_CALL, Sizes(**PI), _weights(0.1, 1, 6))
    assert -terms.net(1) == pytest.approx(5_569, abs=0.5)


@pytest.mark.parametrize(
    ("output", "separate", "shared"), [(1_000, 4.9, 3.3), (6_000, 7.1, 5.5)], ids=str
)
def test_the_break_even_of_a_logged_compaction(output, separate, shared):
    prices = _weights(0.1, 1, 6)
    sizes = Sizes(**PI, summary_output_tokens=output, instruction_tokens=0, cached_tokens=171_520)
    calls = (
        separate_call(sizes, prices, prices, sent_tokens=40_987),
        shared_prefix_call(sizes, prices),
    )
    found = [compaction_terms(call, sizes, prices) for call in calls]
    requests = [break_even_requests(terms.cost, terms.saving) for terms in found]
    assert requests == pytest.approx([separate, shared], abs=0.05)


def test_a_compaction_on_the_servers_side_is_billed_from_its_usage():
    """Anthropic's example, Opus 4.8 at $5 and $25: 180,000 in and 3,500 out make $0.9875."""
    call = observed_call(_weights(0.1, 1.25, 5), uncached_tokens=180_000, output_tokens=3_500)
    assert call.cost * 5 / 1e6 == pytest.approx(0.9875)
    hours = {"cache_read": 0.1, "cache_write_5m": 1.25, "cache_write_1h": 2, "output": 5}
    written = observed_call(
        weights_from(hours), read_tokens=1_000, written_5m_tokens=400, written_1h_tokens=300
    )
    assert written.cost == pytest.approx(100 + 500 + 600)


def test_a_cheaper_model_is_priced_by_the_ratio_of_inputs(make_prices):
    """$5 an agent's token, $1 a summarizer's: ρ = .2, with markers u₂ = 1.25."""
    own = make_prices(dollars_per_million={"input": 5.0})
    cheap = make_prices(dollars_per_million={"input": 1.0}, output=4.0)
    plain = separate_call(WORKED, own, cheap)
    assert (plain.uncached, plain.output) == pytest.approx((0.2 * 180_500, 0.2 * 24_000))
    marked = separate_call(WORKED, own, cheap, markers=True)
    assert marked.uncached == pytest.approx(0.2 * 1.25 * 180_500)
    assert separate_call(WORKED, own, cheap, price_ratio=0.5).output == pytest.approx(12_000)


def test_a_window_that_slides_at_every_request_may_never_pay():
    """r·165,000 = 16,500 saved, 1.15·15,000 = 17,250 paid, at every request."""
    terms = sliding_window(WORKED, _weights(0.1, 1.25, 5))
    assert terms.saving == pytest.approx(-750)
    assert terms.cost == 0
    assert break_even_requests(terms.cost, terms.saving) is None


def test_a_clear_without_a_call_always_pays_on_a_cold_cache():
    for state in (BEFORE_PAUSE, AFTER_PAUSE):
        terms = compaction_terms(NO_CALL, WORKED, _weights(0.025, 1.25, 5), state=state)
        assert terms.net(1) == pytest.approx(1.25 * 165_000)


def test_an_unreliable_cache_reads_at_the_expected_weight():
    """q = .2: r̄ = .8·.1 + .2·1.25 = .33; the call reads .8·200,000 and sends the rest."""
    state, prices = CacheState(miss_probability=0.2), _weights(0.1, 1.25, 5)
    call = shared_prefix_call(WORKED, prices, state)
    terms = compaction_terms(call, WORKED, prices, state=state)
    assert terms.saving == pytest.approx(0.33 * 165_000)
    assert (terms.read, terms.uncached) == pytest.approx((16_000, 40_500))
    assert terms.recache == pytest.approx(0.92 * 15_000)


def test_rework_and_quality_are_terms_of_their_own():
    """L = 10,000: 1.15·10,000 more once, .1·10,000 less saved at each request."""
    prices = _weights(0.1, 1.25, 5)
    call = shared_prefix_call(WORKED, prices)
    plain = compaction_terms(call, WORKED, prices)
    terms = compaction_terms(call, WORKED, prices, rework_tokens=10_000, quality_cost=7_000)
    assert (terms.rework, terms.quality) == pytest.approx((11_500, 7_000))
    assert terms.cost - plain.cost == pytest.approx(18_500)
    assert plain.saving - terms.saving == pytest.approx(1_000)
    assert plain.net(3) - terms.net(3) == pytest.approx(18_500 + 3_000)


def test_the_twelve_hour_weight_is_paid_on_request(make_prices):
    prices = make_prices(cache_write_12h=2.5)
    assert warm_summary(WORKED, prices, ttl="12h").recache == pytest.approx(2.4 * 15_000)


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda prices: CacheState("lukewarm"), "moment"),
        (lambda prices: CacheState(ttl="2h"), "ttl"),
        (lambda prices: CacheState(miss_probability=1.1), "miss_probability"),
        (lambda prices: CacheState(miss_probability=math.nan), "miss_probability"),
        (lambda prices: CacheState(ttl="12h").write_weight(prices), "ttl"),
        (lambda prices: observed_call(prices, read_tokens=-1), "read_tokens"),
        (lambda prices: separate_call(WORKED, prices, prices, price_ratio=0), "price_ratio"),
        (lambda prices: separate_call(WORKED, prices, prices, price_ratio=math.nan), "price_ratio"),
        (
            lambda prices: separate_call(WORKED, prices, _weights(0.1, 1, 5), WARM),
            "price_ratio",
        ),
    ],
)
def test_what_cannot_be_priced_is_named(make_prices, make, where):
    with pytest.raises(InputError) as caught:
        make(make_prices())
    assert caught.value.where == where
    assert caught.value.remedy


def _weights(read, write, output):
    return weights_from({"cache_read": read, "cache_write": write, "output": output})
