import pytest

from policy.break_even import break_even_requests, pays
from policy.cost import warm_summary
from policy.guards import hard_limit, no_saving
from policy.sizes import Sizes
from policy.weights import weights_from

# The worked numbers of the pricing reference: X = 200k, P = 20k, S + R = 6k, I = .5k, X' = 35k.
WORKED = Sizes(200_000, 35_000, prefix_tokens=20_000, summary_output_tokens=6_000)

# r, write weight, o, then s, C and C/s as worked there.
ROWS = [
    pytest.param(0.1, 1.25, 5, 16_500, 67_750, 4.1, id="opus 4.8, 5 min"),
    pytest.param(0.1, 2.0, 5, 16_500, 79_000, 4.8, id="opus 4.8, 1 h"),
    pytest.param(0.05, 1.25, 5, 8_250, 58_500, 7.1, id="opus 5.5, 5 min"),
    pytest.param(0.05, 2.0, 5, 8_250, 69_750, 8.5, id="opus 5.5, 1 h"),
    pytest.param(0.025, 1.25, 5, 4_125, 53_875, 13.1, id="fable 5.2"),
    pytest.param(0.1, 1, 6, 16_500, 70_000, 4.2, id="gpt-5.5"),
    pytest.param(0.05, 1.25, 5, 8_250, 58_500, 7.1, id="gpt-6.1-sol"),
    pytest.param(0.02, 1, 4, 3_300, 43_200, 13.1, id="deepseek-v4-flash"),
    pytest.param(0.25, 1, 3, 41_250, 79_750, 1.9, id="grok 4.7"),
]


@pytest.mark.parametrize(("read", "write", "output", "saving", "cost", "requests"), ROWS)
def test_worked_numbers(read, write, output, saving, cost, requests):
    terms = warm_summary(WORKED, _weights(read, write, output))
    assert terms.saving == pytest.approx(saving)
    assert terms.cost == pytest.approx(cost)
    assert break_even_requests(terms.cost, terms.saving) == pytest.approx(requests, abs=0.05)


def test_the_hour_weight_is_paid_on_request():
    weights = {"cache_read": 0.1, "cache_write_5m": 1.25, "cache_write_1h": 2, "output": 5}
    assert warm_summary(WORKED, weights_from(weights), ttl="1h").cost == pytest.approx(79_000)


# A production log of gpt-5.5 (iterate/iterate pull request 1888): the summary call had 144,410
# tokens of input, 129,792 of them cached, and 899 of output; the next request had 18,079.
@pytest.mark.parametrize(("still_cached", "requests"), [(17_152, 2.7), (0, 3.9)])
def test_a_logged_summary_call(still_cached, requests):
    before, instruction = 144_229, 181
    sizes = Sizes(before, 18_079, still_cached, 899, instruction, cached_tokens=129_792)
    terms = warm_summary(sizes, _weights(0.1, 1, 6))
    summary = terms.read + terms.uncached + terms.output
    assert summary * 5 / 1e6 == pytest.approx(0.164956, abs=1e-6)
    assert terms.saving == pytest.approx(12_615)
    assert break_even_requests(terms.cost, terms.saving) == pytest.approx(requests, abs=0.05)


def test_a_prefix_longer_than_the_new_context_is_cached_as_far_as_it_goes():
    terms = warm_summary(Sizes(50_000, 10_000, prefix_tokens=20_000), _weights(0.1, 1.25, 5))
    assert terms.recache == 0


def test_net_is_the_bill_of_a_cache_ledger_by_brute_force():
    """Bill every request of both futures token by token class: n·s − C is their difference."""
    sizes = Sizes(150_000, 40_000, 25_000, 6_000, 700)
    terms = warm_summary(sizes, _weights(0.1, 1.25, 5))
    for requests in (1, 2, 9):
        growth, waiting, compacting = 1_500, 0.0, 0.0
        context, cached = 150_000, 150_000
        for _ in range(requests):
            waiting += 0.1 * cached + 1.25 * (context + growth - cached)
            context += growth
            cached = context
        compacting += 0.1 * 150_000 + 700 + 5 * 6_000
        context, cached = 40_000, 25_000
        for _ in range(requests):
            compacting += 0.1 * cached + 1.25 * (context + growth - cached)
            context += growth
            cached = context
        assert requests * terms.saving - terms.cost == pytest.approx(waiting - compacting)


def test_falling_below_a_price_cliff_is_part_of_the_saving(make_prices):
    """Haiku 5.5 at 150k costs five times what it costs below 100k, in dollars by hand."""
    above = make_prices(dollars_per_million={"input": 0.5})
    below = make_prices(dollars_per_million={"input": 0.1})
    terms = warm_summary(Sizes(150_000, 51_000, 28_000), above, below)
    read_before = 150_000 * 0.05
    read_after = 51_000 * 0.01
    assert terms.saving * 0.5 == pytest.approx(read_before - read_after)
    assert terms.recache * 0.5 == pytest.approx((0.125 - 0.01) * 23_000)


def test_without_dollars_the_base_price_is_the_same_before_and_after(make_prices):
    one, other = make_prices(dollars_per_million={}), make_prices(dollars_per_million={})
    assert warm_summary(WORKED, one, other).saving == pytest.approx(16_500)


def test_break_even():
    assert break_even_requests(60_000, 3_500) == pytest.approx(17.142857)
    assert break_even_requests(0, 3_500) == 0
    assert break_even_requests(60_000, 0) is None
    assert break_even_requests(60_000, -1) is None
    assert break_even_requests(60_000, 5e-324) is None


def test_break_even_is_strict():
    assert not pays(4.0, 4.0)
    assert pays(4.0000001, 4.0)
    assert not pays(3.9999999, 4.0)


def test_hard_limit_leaves_room_for_one_request_and_the_summary():
    assert not hard_limit(193_900, 200_000)
    assert hard_limit(193_901, 200_000)
    assert not hard_limit(99, 100, growth_tokens=1, summary_output_tokens=0)


def test_no_saving():
    assert no_saving(0, None, None)
    assert no_saving(-1, 100, 50)
    assert no_saving(10, 51_000, 51_000)
    assert not no_saving(10, 51_001, 51_000)
    assert not no_saving(10, None, 51_000)


def _weights(read, write, output):
    return weights_from({"cache_read": read, "cache_write": write, "output": output})
