"""What a compaction costs for a question, at every moment and of every kind, by hand."""

from dataclasses import replace

import pytest

from compactuary.errors import InputError
from policy.parameters import ASSUMED, CompactionParameters, Parameter
from policy.question import Question, validate
from policy.quote import quote, quotes

pytestmark = pytest.mark.disable_socket

PAUSES = ((60, 0.9), (240, 0.6), (300, 0.4))


@pytest.fixture
def quoted(at, make_book, make_prices):
    """Quote a context of 200,000 tokens at r = .1, w = 1.25, o = 5 and a life of 300 seconds."""

    def of(known=ASSUMED, book=None, **fields):
        asked = {"role": "main", "calls": 3, "model": "m", "context_tokens": 200_000} | fields
        question = Question(**asked)
        validate(question)
        prices = book or make_book(make_prices(cache_ttl_seconds=300))
        return quote(question, prices, known, at=at)

    return of


def test_learned_sizes_go_before_the_assumed_ones(quoted, make_parameters):
    """.1·200k + 500 + 5·4k + 1.15·(60k − 20k) + 1.15·2k, s = .1·(200k − 62k)."""
    known = make_parameters(
        context_after_tokens=60_000,
        cached_after_tokens=20_000,
        summary_output_tokens=4_000,
        rework_tokens=2_000,
    )
    found = quoted(known)
    assert found.cost == pytest.approx(20_000 + 500 + 20_000 + 46_000 + 2_300)
    assert found.saving == pytest.approx(13_800)
    assert found.assumed == ("instruction_tokens",)
    assert found.learned == (
        "context_after_tokens",
        "prefix_tokens",
        "summary_output_tokens",
        "rework_tokens",
    )


def test_what_the_caller_gives_goes_before_what_was_learned(quoted, make_parameters):
    known = make_parameters(context_after_tokens=60_000, summary_output_tokens=4_000)
    found = quoted(known, context_after_tokens=40_000, summary_output_tokens=2_000)
    assert found.sizes.context_after_tokens == 40_000
    assert found.sizes.summary_output_tokens == 2_000
    assert found.learned == ()
    assert found.inputs.origins["context_after_tokens"] == "given"


@pytest.mark.parametrize(
    ("kind", "given", "learned", "after"),
    [
        # The prefix and the summary are left at least, whatever a smaller prefix taught.
        ("summary", {"prefix_tokens": 70_000}, 60_000, 74_000),
        ("clear", {"prefix_tokens": 70_000}, 60_000, 70_000),
        ("summary", {"prefix_tokens": 30_000}, 60_000, 60_000),
        ("summary", {"prefix_tokens": 70_000, "context_after_tokens": 65_000}, 60_000, 65_000),
    ],
)
def test_a_prefix_that_the_caller_tells_is_part_of_what_is_left(
    quoted, make_parameters, kind, given, learned, after
):
    known = make_parameters(context_after_tokens=learned, summary_output_tokens=4_000)
    found = quoted(known, kind=kind, **given)
    assert found.sizes.context_after_tokens == after


def test_an_unreliable_cache_costs_more_to_read(quoted, make_parameters):
    """r̄ = .9·.1 + .1·1.25 = .215; the summary call reads 180k at .1 and sends 20k + 500."""
    found = quoted(make_parameters(miss_probability=0.1))
    assert found.saving == pytest.approx(0.215 * 149_000)
    assert found.cost == pytest.approx(18_000 + 20_500 + 25_000 + (1.25 - 0.215) * 23_000)


def test_the_end_of_a_turn_weighs_what_comes_after_the_pause(quoted, make_parameters):
    """C_sum = 45,500; with q_s = .5 and p_c = .4 the next request pays .3·26,450 + .2·58,650
    more, and .2·230,000 less than it would on the context cached again."""
    known = make_parameters(resume_probability=0.5, requests_after_turn=10, pauses=PAUSES)
    found = quoted(known, at="turn_end")
    assert (found.pause.resumed, found.pause.cold) == (0.5, pytest.approx(0.4))
    assert found.cost == pytest.approx(45_500 + 7_935 + 11_730 - 46_000)
    assert found.saving == pytest.approx(14_900)


def test_while_idle_the_time_waited_counts(quoted, make_parameters):
    """After 240 seconds .5·.6 ÷ (.5·.6 + .5) go on, and .4 ÷ .6 of those find the cache cold."""
    known = make_parameters(resume_probability=0.5, requests_after_turn=10, pauses=PAUSES)
    found = quoted(known, at="idle", idle_seconds=250)
    assert found.pause.resumed == pytest.approx(0.375)
    assert found.pause.cold == pytest.approx(2 / 3)
    late = quoted(known, at="idle", idle_seconds=300)
    assert late.pause.expired
    assert late.pause.cold == 1
    # The call sends all of it uncached, the next request writes 51k instead of 200k.
    resumed = 0.2 / 0.7
    assert late.cost == pytest.approx(200_500 + 25_000 - resumed * 1.15 * 149_000)


def test_after_a_pause_nothing_is_read(quoted):
    """200,500 + 25,000 sent, and 1.15·(51k − 200k) saved on writing the context again."""
    found = quoted(at="resume")
    assert found.cost == pytest.approx(225_500 - 1.15 * 149_000)
    warm = quoted(at="resume", idle_seconds=299)
    assert warm.cost == pytest.approx(71_950)


def test_nothing_follows_a_turn_until_that_is_learned(quoted):
    found = quoted(at="turn_end")
    assert (found.pause.resumed, found.cost) == (0, pytest.approx(45_500))


def test_a_longer_life_of_the_cache_costs_its_own_weight(quoted):
    """(2 − .1)·23,000 instead of (1.25 − .1)·23,000."""
    assert quoted(ttl="1h").cost == pytest.approx(45_500 + 43_700)
    assert quoted(ttl="1h").pause.ttl_seconds == 3_600


def test_a_charge_for_quality_is_part_of_the_cost(quoted):
    assert quoted(quality_cost=50_000).cost == pytest.approx(71_950 + 50_000)


def test_the_kinds_by_hand(quoted):
    """Clear: 1.15·23,000 alone. Separate at the same prices: (200k − 28k + 500) + 25,000 more."""
    assert quoted(kind="clear").cost == pytest.approx(26_450)
    separate = quoted(kind="separate", summary_model="m")
    assert separate.cost == pytest.approx(26_450 + 172_500 + 25_000)


def test_what_the_provider_charged_before_stands_for_its_own_compaction(quoted):
    """.1·150k + 1·2k + 1.25·1k + 5·3k seen, beside 1.15·23,000 for the next request."""
    usage = {"read_tokens": 150_000, "uncached_tokens": 2_000, "written_5m_tokens": 1_000}
    output = Parameter(3_000, "role", 5, 0.6)
    seen = CompactionParameters("server_side", summary_output_tokens=output, observed_call=usage)
    known = replace(ASSUMED, compactions=dict(ASSUMED.compactions) | {"server_side": seen})
    found = quoted(known, kind="server_side")
    assert found.terms.read + found.terms.uncached + found.terms.output == pytest.approx(33_250)


def test_quotes_name_the_kinds_that_can_be_quoted(at, make_book, make_prices):
    book = make_book(make_prices())
    asked = Question(role="main", calls=3, model="m", context_tokens=200_000)
    assert [made.kind for made in quotes(asked, book, ASSUMED, at=at)] == ["summary"]
    cleared = CompactionParameters("clear", Parameter(90_000, "role", 5, 0.6))
    known = replace(ASSUMED, compactions=dict(ASSUMED.compactions) | {"clear": cleared})
    made = quotes(replace(asked, summary_model="m"), book, known, at=at)
    assert [found.kind for found in made] == ["summary", "separate", "clear"]
    assert made[2].sizes.context_after_tokens == 90_000


def test_sizes_given_for_one_kind_do_not_hold_for_another(at, make_book, make_prices):
    cleared = CompactionParameters("clear", Parameter(90_000, "role", 5, 0.6))
    known = replace(ASSUMED, compactions=dict(ASSUMED.compactions) | {"clear": cleared})
    asked = Question(
        role="main", calls=3, model="m", context_tokens=200_000, context_after_tokens=30_000
    )
    summary, clear = quotes(asked, make_book(make_prices()), known, at=at)
    assert summary.sizes.context_after_tokens == 30_000
    assert clear.sizes.context_after_tokens == 90_000


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"at": "soon"}, "at"),
        ({"at": "idle"}, "idle_seconds"),
        ({"at": "idle", "idle_seconds": -1.0}, "idle_seconds"),
        ({"kind": "magic"}, "kind"),
        ({"kind": "separate"}, "summary_model"),
        ({"kind": "separate", "summary_model": ""}, "summary_model"),
        ({"ttl": "2h"}, "ttl"),
        ({"rule": "coin"}, "rule"),
        ({"miss_probability": 1.5}, "miss_probability"),
        ({"resume_probability": float("nan")}, "resume_probability"),
        ({"growth_tokens": float("inf")}, "growth_tokens"),
        ({"prefix_tokens": -1}, "prefix_tokens"),
        ({"useless_compactions": 1.5}, "useless_compactions"),
        ({"strategy": 7}, "strategy"),
        ({"quality_cost": -1.0}, "quality_cost"),
        ({"requests_after_turn": True}, "requests_after_turn"),
    ],
)
def test_wrong_fields_are_named(quoted, fields, where):
    with pytest.raises(InputError) as caught:
        quoted(**fields)
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.fixture
def summary_and_clear(make_parameters):
    """A summary leaves 60k, 20k of it cached, and 2k of rework; clearing leaves 80k and none."""
    known = make_parameters(
        context_after_tokens=60_000,
        cached_after_tokens=20_000,
        summary_output_tokens=4_000,
        rework_tokens=2_000,
    )
    cleared = CompactionParameters(
        "clear", Parameter(80_000, "role"), Parameter(30_000, "role"), Parameter(0, "role")
    )
    return replace(known, compactions={**known.compactions, "clear": cleared})


@pytest.mark.parametrize("strategy", [None, "micro", "tail_digest", "sliding_window", "foo"])
def test_a_strategy_never_seen_takes_its_kinds_sizes(quoted, summary_and_clear, strategy):
    """Clearing pays 1.15·(80k − 30k) and saves .1·(200k − 80k), with nothing read in again."""
    found = quoted(summary_and_clear, kind="clear", strategy=strategy)
    assert found.cost == pytest.approx(57_500)
    assert found.saving == pytest.approx(12_000)
    # A summary's: .1·200k + 500 + 5·4k + 1.15·40k + 1.15·2k, and .1·(200k − 62k) saved.
    found = quoted(summary_and_clear, kind="summary", strategy=strategy)
    assert found.cost == pytest.approx(88_800)
    assert found.saving == pytest.approx(13_800)


@pytest.mark.parametrize("strategy", [None, "micro"])
def test_clearing_never_seen_is_not_charged_a_summarys_rework(quoted, make_parameters, strategy):
    """Of 40k given, 10k are cached: 1.15·30k, and .1·(200k − 40k) saved."""
    known = make_parameters(context_after_tokens=60_000, rework_tokens=2_000)
    fields = {"context_after_tokens": 40_000, "prefix_tokens": 10_000, "strategy": strategy}
    found = quoted(known, kind="clear", **fields)
    assert found.cost == pytest.approx(34_500)
    assert found.saving == pytest.approx(16_000)
    assert found.inputs.rework_tokens == 0
    assert quoted(known, kind="clear").assumed == ("context_after_tokens", "prefix_tokens")


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("cost", "base tokens"),
        ("saving", "base tokens per request"),
        ("idle_seconds", "seconds"),
        ("growth_tokens", "tokens per request"),
        ("quality_cost", "base tokens"),
        ("requests_after_turn", "a mean number of requests"),
    ],
)
def test_a_wrong_amount_is_told_its_own_unit(quoted, name, unit):
    with pytest.raises(InputError) as caught:
        quoted(**{name: -3})
    assert (caught.value.where, caught.value.remedy) == (name, f"Give {unit}")


@pytest.mark.parametrize(
    ("name", "first"),
    [("kind", "summary, separate"), ("at", "call, turn_end"), ("ttl", "5m, 1h"),
     ("unit", "tool_calls, requests")],
)  # fmt: skip
def test_an_unknown_word_is_told_the_known_ones(quoted, name, first):
    with pytest.raises(InputError) as caught:
        quoted(**{name: "foo"})
    assert caught.value.remedy.startswith(f"Known: {first}")
