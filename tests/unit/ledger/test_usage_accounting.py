"""Published miscounts and worked bills: what each usage object costs by weights worked out by hand.

The issue named beside a case is where the wrong figure was reported.
"""

from dataclasses import dataclass

import pytest

from compactuary.errors import InputError
from ledger.usage import Usage, billed_iterations, usage_from


@dataclass(frozen=True)
class Weights:
    """Prices of one model in base tokens, and dollars per million base tokens."""

    read: float
    write: float
    write_1h: float
    output: float
    dollars: float
    write_12h: float = 0


OPUS_4 = Weights(0.1, 1.25, 2, 5, 5)
SONNET_3_7 = Weights(0.1, 1.25, 2, 5, 3)
FABLE_5 = Weights(0.1, 1.25, 2, 5, 10)
GPT_5_5 = Weights(0.1, 1, 1, 6, 5)
GPT_6_1 = Weights(0.05, 1.25, 1.25, 5, 2, write_12h=2.5)


def base_tokens(usage, weights):
    return (
        usage.uncached
        + weights.read * usage.cache_read
        + weights.write * (usage.cache_write_5m + usage.cache_write_30m + usage.cache_write_other)
        + weights.write_1h * usage.cache_write_1h
        + weights.write_12h * usage.cache_write_12h
        + weights.output * usage.output
    )


def dollars(usage, weights):
    return base_tokens(usage, weights) * weights.dollars / 1e6


ANTHROPIC = {"input_tokens": 100, "cache_read_input_tokens": 1_000, "output_tokens": 10}


@pytest.mark.parametrize(
    ("expected", "raw"),
    [
        # BerriAI/litellm#9812, writes charged as prompt too: 100 + 1.25·400 + 50, not 1,050.
        (650, {"prompt_tokens": 500, "completion_tokens": 10, "cache_creation_input_tokens": 400,
               "cache_read_input_tokens": 0, "prompt_tokens_details": {"cached_tokens": 0}}),
        # BerriAI/litellm#14849, cached tokens at both rates: 200 + 0.1·800 + 5·10, not 1,130.
        (330, {"promptTokenCount": 1_000, "cachedContentTokenCount": 800,
               "candidatesTokenCount": 10}),
        # BerriAI/litellm#31724, Owloops/claude-powerline#104, earendil-works/pi#5603, one-hour
        # writes at the five-minute rate: 100 + 100 + 2·400 + 50, not 750.
        (1_050, ANTHROPIC | {"cache_creation_input_tokens": 400,
                             "cache_creation": {"ephemeral_1h_input_tokens": 400}}),
        # BerriAI/litellm#33772, writes dropped: 300 + 0.1·300 + 1.25·400 + 50, not 380.
        (880, {"input_tokens": 1_000, "output_tokens": 10, "input_tokens_details":
               {"cached_tokens": 300, "cache_write_tokens": 400}}),
        # langfuse/langfuse#12306, pydantic/pydantic-ai#4364, the cache added to a total that has
        # it: 100 + 0.1·900 + 50, not 1,140.
        (240, {"input_tokens": 1_000, "output_tokens": 10,
               "input_token_details": {"cache_read": 900}}),
        # langfuse/langfuse#10592, Aider-AI/aider#5518: 100 + 0.1·900 + 50.
        (240, {"prompt_tokens": 1_000, "completion_tokens": 10,
               "prompt_tokens_details": {"cached_tokens": 900}}),
        # langfuse/codex-observability-plugin#22, steipete/CodexBar#1796: counted twice, or free.
        (240, {"input_tokens": 1_000, "cached_input_tokens": 900, "output_tokens": 10}),
        # langchain-ai/langsmith-sdk#2519, the base input clamped to 0: 100 + 100 + 50, not 150.
        (250, ANTHROPIC),
        # openlit/openlit#1378, writes read from a field that is never there: 500 more.
        (750, ANTHROPIC | {"cache_creation_input_tokens": 400}),
        # getagentseal/codeburn#1075, reasoning on top of an output that has it: not 350.
        (300, {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140,
               "completion_tokens_details": {"reasoning_tokens": 10}}),
        # The same with xAI, where it does come on top: 100 + 5·50.
        (350, {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 150,
               "completion_tokens_details": {"reasoning_tokens": 10}}),
        # Hits without prompt_tokens_details: 100 + 0.1·900 + 50, not 1,050.
        (240, {"prompt_tokens": 1_000, "completion_tokens": 10,
               "prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100}),
        # Thoughts are no part of the candidates, results of tools no part of the prompt.
        (380, {"promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 30,
               "toolUsePromptTokenCount": 80}),
    ],
)  # fmt: skip
def test_each_token_is_billed_once_at_its_own_rate(expected, raw):
    assert base_tokens(usage_from(raw), OPUS_4) == pytest.approx(expected)


def test_twelve_hour_writes_have_a_rate_of_their_own():
    raw = {
        "input_tokens": 20_000,
        "output_tokens": 0,
        "input_tokens_details": {
            "cache_write_tokens": 20_000,
            "cache_write_tokens_details": {"ttl_12h_tokens": 20_000},
        },
    }
    # 20,000 tokens at $5 instead of $2.50 a million: $0.05 more.
    assert dollars(usage_from(raw), GPT_6_1) == pytest.approx(0.05 + 20_000 * 2.5e-6)


@pytest.mark.parametrize(
    "raw",
    [
        # BerriAI/litellm#40845: the explicit 0 came last, its parts are those of the start.
        {"cache_read_input_tokens": 58_000, "cache_creation_input_tokens": 0,
         "cache_creation": {"ephemeral_5m_input_tokens": 58_000}},
        # Wei-Shaw/sub2api#6125: corrected from five minutes to one hour, both kept.
        {"cache_creation_input_tokens": 400, "cache_creation":
         {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 400}},
    ],
)  # fmt: skip
def test_stale_writes_of_a_stream_are_refused(raw):
    with pytest.raises(InputError, match="by lifetime") as caught:
        usage_from(raw)
    assert caught.value.where == "usage.cache_creation_input_tokens"


def test_one_call_is_the_same_whoever_tells_it():
    # traceloop/openllmetry#4449, vercel/ai#8794: one field, two meanings.
    told = [
        usage_from({"input_tokens": 5, "cache_read_input_tokens": 95, "output_tokens": 7}),
        usage_from({"inputTokens": 5, "cacheReadInputTokens": 95, "outputTokens": 7}),
        usage_from({"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 7,
                    "gen_ai.usage.cache_read.input_tokens": 95}),
        usage_from({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 7,
                    "gen_ai.usage.cache_read.input_tokens": 95}, "otel_uncached"),
    ]  # fmt: skip
    assert set(told) == {Usage(5, 95, output=7)}
    with pytest.raises(InputError, match="name another"):
        usage_from({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 95})


def test_the_context_counts_what_was_read_and_written_once():
    # anomalyco/opencode#4416 counted reads twice and compacted early; steipete/CodexBar#895 and
    # junhoyeo/tokscale#862 set the cliff at 272,000 against one class, or left writes out.
    raw = {
        "input_tokens": 273_000,
        "output_tokens": 1,
        "input_tokens_details": {"cached_tokens": 200_000, "cache_write_tokens": 72_000},
    }
    usage = usage_from(raw)
    assert usage.context_tokens == 273_000
    assert max(usage.uncached, usage.cache_read, usage.cache_write) < 272_000


def test_a_running_total_is_no_request():
    # ccusage/ccusage#950: totals of a session, replayed.
    with pytest.raises(InputError, match="running total"):
        usage_from({"total_token_usage": {"input_tokens": 5_000_000, "output_tokens": 9}})


COMPACTED = {
    "input_tokens": 23_000,
    "output_tokens": 1_000,
    "iterations": [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
    ],
}


def test_a_compaction_inside_a_request_is_on_the_bill():
    # BerriAI/litellm#27060, pydantic/pydantic-ai#5065, maximhq/bifrost#6500 lost it, 8 times low.
    assert dollars(usage_from(COMPACTED), OPUS_4) == pytest.approx(0.14)
    billed = [dollars(one.usage, OPUS_4) for one in billed_iterations(COMPACTED)]
    assert billed == pytest.approx([0.9875, 0.14])
    assert sum(billed) == pytest.approx(1.1275)


def test_litellms_totals_hold_the_compaction_and_the_context_does_not():
    raw = {
        "prompt_tokens": 203_000,
        "completion_tokens": 4_500,
        "iterations": COMPACTED["iterations"],
    }
    assert usage_from(raw) == Usage(23_000, output=1_000)
    assert [one.kind for one in billed_iterations(raw)] == ["compaction", "agent"]


def test_the_summary_call_of_a_production_log():
    # iterate/iterate#1888: 14,618 + 12,979.2 + 5,394 base tokens.
    raw = {
        "input_tokens": 144_410,
        "output_tokens": 899,
        "input_tokens_details": {"cached_tokens": 129_792},
    }
    assert base_tokens(usage_from(raw), GPT_5_5) == pytest.approx(32_991.2)
    assert dollars(usage_from(raw), GPT_5_5) == pytest.approx(0.164956)


def test_a_window_of_one_hour_writes():
    # langfuse/claude-observability-plugin#34: $16.31 as billed, $12.31 at the five-minute rate.
    raw = {
        "input_tokens": 1_900,
        "cache_read_input_tokens": 4_800_000,
        "cache_creation_input_tokens": 533_800,
        "output_tokens": 16_300,
    }
    hour = raw | {"cache_creation": {"ephemeral_1h_input_tokens": 533_800}}
    assert dollars(usage_from(hour), FABLE_5) == pytest.approx(16.310)
    assert dollars(usage_from(raw), FABLE_5) == pytest.approx(12.3065)


def test_a_call_against_the_consoles_figure():
    # BerriAI/litellm#9812: the console said $0.05439.
    raw = {"input_tokens": 3, "cache_creation_input_tokens": 12_304, "output_tokens": 550}
    assert dollars(usage_from(raw), SONNET_3_7) == pytest.approx(0.054399, abs=1e-9)
    passed_on = {
        "prompt_tokens": 12_307,
        "completion_tokens": 550,
        "prompt_tokens_details": {"cached_tokens": 0, "cache_creation_tokens": 12_304},
    }
    assert usage_from(passed_on) == usage_from(raw)


def test_a_session_of_ninety_million_reads():
    # blog.sd.idv.tw: $55.94 in all.
    raw = {
        "input_tokens": 5_017,
        "cache_read_input_tokens": 90_360_262,
        "cache_creation_input_tokens": 1_511_817,
        "output_tokens": 51_360,
    }
    assert dollars(usage_from(raw), OPUS_4) == pytest.approx(55.94, abs=0.005)


def test_one_write_and_nine_reads():
    # OpenAI's own example: 1.25 + 9·0.1 = 2.15 of the price of one uncached call, instead of 10.
    def call(**details):
        return {"input_tokens": 2_000, "output_tokens": 0, "input_tokens_details": details}

    weights = Weights(0.1, 1.25, 1.25, 5, 4)
    calls = [call(cache_write_tokens=2_000), *[call(cached_tokens=2_000)] * 9]
    total = sum(base_tokens(usage_from(raw), weights) for raw in calls)
    assert total / 2_000 == pytest.approx(2.15)
