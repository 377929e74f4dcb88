"""Verdicts on single compactions, held against sums done by hand."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backtest.audit import Pricing, audit
from backtest.compaction_cases import CompactionCase, Remaining
from backtest.context_lines import MadeRequest
from backtest.summary_calls_seen import SummaryCallSeen
from compactuary.errors import InputError
from policy.prices import GenaiPriceBook
from policy.weights import weights_from

WEIGHTS = weights_from({"cache_read": 0.1, "cache_write": 1.25, "output": 5})
BOOK = GenaiPriceBook()
AT_MS = int(datetime(2026, 1, 15, tzinfo=UTC).timestamp()) * 1000


def followed(requests, *, final=True, missed=0, calls=None):
    calls = requests if calls is None else calls
    return Remaining(calls, requests, calls, requests, missed, final)


def made(read, written, *, uncached=0, hour=0, at_ms=None):
    return MadeRequest(0, at_ms, "m", uncached, read, written, hour)


def case(before_tokens, first, remaining, **more):
    """Return a summary made in mid-turn by a model without a price of its own."""
    given = {
        "compaction_id": "c",
        "session_id": "s",
        "turn_id": "t",
        "at_ms": AT_MS,
        "trigger": "auto",
        "strategy": "summary",
        "role": "main",
        "model": "m",
        "provider": None,
        "between_turns": False,
        "context_before": before_tokens,
        "context_after": first and first.context,
        "before": made(before_tokens, 0),
        "first": first,
        "pause_before_seconds": 60.0,
        "pause_seconds": 70.0,
        "in_turn": remaining,
        "in_session": remaining,
    }
    return CompactionCase(**(given | more))


def judged(one, horizon="turn", *, weights=WEIGHTS, model=None):
    return audit([one], Pricing(BOOK, model, weights), horizon).compactions[0]


# Its own call is logged: .1·90,000 + 3 + 1.25·10,500 + 5·2,000 = 32,128. The request after it reads
# 20,000, writes 20,000 and sends 10: .9·10 + 1.15·20,000 = 23,009 more than reading its 40,010.
# s = .1·(100,500 − 40,010) = 6,049.
LOGGED = SummaryCallSeen("m", 3, 90_000, 10_500, 0, 2_000)


@pytest.mark.parametrize(
    ("requests", "net", "verdict"), [(4, -30_941, "lost"), (10, 5_353, "paid")]
)
def test_an_observed_call_is_priced_by_its_own_usage(requests, net, verdict):
    first = made(20_000, 20_000, uncached=10)
    one = judged(case(100_500, first, followed(requests), call=LOGGED))
    assert one.cost_source == "observed"
    assert one.cost == pytest.approx(55_137)
    assert one.saving == pytest.approx(6_049)
    assert one.net == pytest.approx(net)
    assert one.verdict == verdict


# Modelled: .1·100,000 + 500 + 5·5,000 = 35,500; then 1.15·10,000 = 11,500; s = .1·60,000.
@pytest.mark.parametrize(
    ("requests", "final", "net", "verdict"),
    [
        (7, False, -5_000, "undecided"),
        (7, True, -5_000, "lost"),
        (8, False, 1_000, "paid"),
        (8, True, 1_000, "paid"),
    ],
)
def test_a_cut_turn_is_undecided_until_what_was_seen_has_paid(requests, final, net, verdict):
    remaining = followed(requests, final=final)
    one = judged(case(100_000, made(30_000, 10_000), remaining))
    assert one.cost_source == "modelled"
    assert one.cost == pytest.approx(47_000)
    assert one.break_even == pytest.approx(47 / 6)
    assert one.net == pytest.approx(net)
    assert one.verdict == verdict


def test_a_price_cliff_between_both_contexts_is_part_of_the_saving():
    # Beyond 200,000 tokens 6, .6 and 22.5 dollars a million, below 3, .3 and 3.75 for writes.
    # C = .1·250,000 + 500 + 3.75·5,000 + ½·1.15·20,000 = 55,750; s = 25,000 − ½·.1·50,000.
    one = judged(
        case(250_000, made(30_000, 20_000), followed(3), model="claude-sonnet-4-5"), weights=None
    )
    assert one.cost == pytest.approx(55_750)
    assert one.saving == pytest.approx(22_500)
    assert one.net == pytest.approx(11_750)
    assert one.net * one.dollars_per_token == pytest.approx(0.0705)
    assert one.verdict == "paid"


def test_after_a_pause_the_long_context_would_have_been_written_again():
    # The call finds nothing: 100,500 + 25,000. 23,000 for what is written next, but 1.15·80,000
    # spared: 20,000 were read after the pause, so they would have been read without it as well.
    one = judged(
        case(
            100_000,
            made(20_000, 20_000),
            followed(10),
            pause_before_seconds=600.0,
            pause_seconds=700.0,
        )
    )
    assert one.cost == pytest.approx(125_500 + 23_000 - 92_000)
    assert one.net == pytest.approx(3_500)
    assert one.idle


def test_a_pause_as_long_as_the_call_itself_is_no_pause():
    # 370 seconds, of which the call took some 80: the cache of 5 minutes would have held.
    warm = judged(case(100_000, made(30_000, 10_000), followed(8), pause_seconds=370.0))
    cold = judged(case(100_000, made(30_000, 10_000), followed(8), pause_seconds=390.0))
    assert warm.cost == pytest.approx(47_000)
    assert cold.cost == pytest.approx(47_000 - 1.15 * 70_000)


def test_a_cache_written_for_an_hour_outlives_the_pause():
    before = made(90_000, 0, hour=10_000)
    given = {"before": before, "pause_before_seconds": 600.0, "pause_seconds": 700.0}
    one = judged(case(100_000, made(30_000, 10_000), followed(8), **given))
    assert one.cost == pytest.approx(47_000)


def test_requests_that_missed_the_cache_would_have_written_the_long_context():
    # Three read 60,000 tokens less at .1 each and one at 1.25: 18,000 + 75,000.
    one = judged(case(100_000, made(30_000, 10_000), followed(4, missed=1)))
    assert 4 * one.saving == pytest.approx(93_000)
    assert one.net == pytest.approx(46_000)


@pytest.mark.parametrize(("requests", "net", "verdict"), [(19, -500, "lost"), (20, 2_500, "paid")])
def test_clearing_costs_what_is_cached_again_and_no_call(requests, net, verdict):
    one = judged(case(100_000, made(20_000, 50_000), followed(requests), strategy="clear"))
    assert one.cost_source == "no_call"
    assert one.net == pytest.approx(net)
    assert one.verdict == verdict


@pytest.mark.parametrize(("final", "verdict"), [(True, "lost"), (False, "undecided")])
def test_without_any_request_after_it_the_call_alone_is_lost(final, verdict):
    one = judged(case(100_000, None, followed(0, final=final)))
    assert one.cost == pytest.approx(35_500)
    assert one.net == pytest.approx(-35_500)
    assert one.saving is None
    assert one.verdict == verdict


def test_what_grew_the_context_is_lost_whatever_may_follow():
    one = judged(case(50_000, made(30_000, 30_000), followed(3, final=False)))
    assert one.saving < 0
    assert one.verdict == "lost"
    assert one.break_even is None


def test_what_the_next_one_replaced_at_once_and_for_free_did_nothing():
    one = judged(case(100_000, None, followed(0), strategy="clear"))
    assert (one.net, one.verdict) == (0, "undecided")


def test_an_output_that_is_not_believed_is_modelled():
    call = SummaryCallSeen("m", 3, 90_000, 10_500, 0, None)
    one = judged(case(100_500, made(20_000, 20_000, uncached=10), followed(4), call=call))
    assert one.cost_source == "partly_observed"
    assert one.cost == pytest.approx(55_137 - 10_000 + 25_000)


def test_modelled_calls_write_what_logged_ones_wrote():
    logged = case(100_500, made(20_000, 20_000), followed(4), call=LOGGED)
    other = case(100_000, made(30_000, 10_000), followed(8), compaction_id="d")
    found = audit([logged, other], Pricing(BOOK, weights=WEIGHTS))
    assert (found.summary_output_tokens, found.summaries_seen) == (2_000, 1)
    assert found.compactions[1].cost == pytest.approx(47_000 - 5 * 3_000)


def test_a_summary_by_another_model_costs_its_own_price():
    # Haiku 4.5 costs a third of Sonnet 4.5 a token, at the same weights.
    call = SummaryCallSeen("claude-haiku-4-5", 3_000, 0, 0, 0, 1_200)
    given = {"call": call, "model": "claude-sonnet-4-5"}
    one = judged(case(100_000, made(30_000, 10_000), followed(8), **given), weights=None)
    assert one.cost == pytest.approx((3_000 + 5 * 1_200) / 3 + 11_500)


def test_the_horizon_is_the_turn_or_the_session():
    one = case(100_000, made(30_000, 10_000), followed(7), in_session=followed(70, final=False))
    assert judged(one).verdict == "lost"
    assert judged(one, "session").net == pytest.approx(70 * 6_000 - 47_000)


def test_rework_is_written_once_and_read_by_the_others():
    # 10,000 tokens: 1.25 once, .1 in seven more.
    one = judged(case(100_000, made(30_000, 10_000), followed(8), rework_tokens=10_000.0))
    assert one.rework_cost == pytest.approx(12_500 + 7_000)
    assert one.net == pytest.approx(1_000)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"model": "nobody-knows"}, "no price is known"),
        ({"model": None}, "model: the log does not tell it"),
        ({"model": "claude-sonnet-4-5", "at_ms": None}, "date: the log does not tell it"),
        ({"context_before": None}, "context before"),
    ],
)
def test_what_has_no_price_is_told_and_never_free(more, told):
    one = judged(case(100_000, made(30_000, 10_000), followed(8), **more), weights=None)
    assert told in one.problem
    assert (one.cost, one.net, one.verdict) == (None, None, None)


def test_a_model_can_be_named_for_all():
    one = case(100_000, made(30_000, 10_000), followed(8), model="nobody-knows")
    assert judged(one, weights=None, model="claude-opus-4-5").net == pytest.approx(1_000)


def test_another_horizon_is_refused():
    with pytest.raises(InputError, match=r"horizon.*'week'.*turn or session"):
        audit([], Pricing(BOOK), "week")


tokens = st.integers(0, 200_000)


@given(
    kept=st.integers(0, 50_000),
    anew=st.integers(1, 50_000),
    cut=st.integers(1, 150_000),
    steps=st.lists(st.tuples(st.integers(0, 5_000), st.booleans()), max_size=12),
    cold=st.booleans(),
)
def test_net_is_the_difference_of_two_bills(kept, anew, cut, steps, cold):
    """Bill every request with and without the compaction, token by token."""
    after, before = kept + anew, kept + anew + cut
    pause = 900.0 if cold else 60.0
    call = 0.1 * before if not cold else 1.0 * before
    with_it = call + 500 + 25_000 + 0.1 * kept + 1.25 * anew
    without = 0.1 * kept + 1.25 * (before - kept) if cold else 0.1 * before
    short, long = after, before
    for grown, missed in steps:
        each = 1.25 if missed else 0.1
        with_it += each * short + 1.25 * grown
        without += each * long + 1.25 * grown
        short, long = short + grown, long + grown
    remaining = followed(1 + len(steps), missed=sum(missed for _, missed in steps))
    given_pauses = {"pause_before_seconds": pause, "pause_seconds": pause}
    one = judged(case(before, made(kept, anew), remaining, **given_pauses))
    assert one.net == pytest.approx(without - with_it, abs=0.01)
    assert (one.verdict == "paid") == (one.net > 0)
