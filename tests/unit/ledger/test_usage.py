"""Anthropic's usage objects, the project's own token classes, and their refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from ledger.usage import (
    MAX_TOKENS,
    BilledIteration,
    Usage,
    anthropic_usage,
    billed_iterations,
    usage_from,
)

REAL = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 8_037,
    "cache_read_input_tokens": 17_842,
    "cache_creation": {"ephemeral_5m_input_tokens": 37, "ephemeral_1h_input_tokens": 8_000},
    "output_tokens": 441,
    "service_tier": "standard",
    "inference_geo": "not_available",
    "server_tool_use": {"web_search_requests": 0},
    "output_tokens_details": {"thinking_tokens": 120},
}


def test_anthropics_object_with_write_lifetimes():
    usage = usage_from(REAL)
    assert usage == Usage(
        uncached=3,
        cache_read=17_842,
        cache_write_5m=37,
        cache_write_1h=8_000,
        output=441,
        reasoning=120,
    )
    assert usage.cache_write == 8_037
    assert usage.context_tokens == 3 + 17_842 + 8_037


def test_a_write_without_a_lifetime_is_of_none():
    usage = usage_from({"input_tokens": 1, "cache_creation_input_tokens": 50})
    assert (usage.cache_write_other, usage.cache_write) == (50, 50)


def test_lifetimes_that_tell_less_than_the_total_leave_a_rest():
    raw = REAL | {"cache_creation": {"ephemeral_5m_input_tokens": 37}}
    assert usage_from(raw).cache_write_other == 8_000


def test_nothing_told_is_nothing_used():
    assert anthropic_usage({}) == Usage() == usage_from({})


@pytest.mark.parametrize("iterations", [None, [], [{"type": "message", "input_tokens": 9}]])
def test_one_iteration_or_none_leaves_the_top_level(iterations):
    assert usage_from(REAL | {"iterations": iterations}) == usage_from(REAL)


def test_iterations_without_a_message_leave_the_top_level():
    told = [{"type": "advisor_message"}, {"type": "advisor_message"}]
    assert usage_from(REAL | {"iterations": told}) == usage_from(REAL)


def test_the_last_message_iteration_is_the_context():
    told = [
        {"type": "message", "input_tokens": 1, "cache_read_input_tokens": 65_000},
        {"type": "advisor_message", "input_tokens": 70_000},
        {"type": "message", "input_tokens": 2, "cache_read_input_tokens": 66_000},
    ]
    usage = usage_from({"input_tokens": 3, "output_tokens": 900, "iterations": told})
    assert (usage.context_tokens, usage.output) == (66_002, 900)


def test_a_top_level_that_counts_nothing_leaves_it_to_the_messages():
    # Seen in a log: zeros at the top, with the last message's lifetimes.
    told = {
        "input_tokens": 2,
        "cache_read_input_tokens": 204_576,
        "cache_creation_input_tokens": 87,
        "cache_creation": {"ephemeral_1h_input_tokens": 87, "ephemeral_5m_input_tokens": 0},
        "output_tokens": 1_651,
        "type": "message",
    }
    raw = {
        "input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "cache_creation": {"ephemeral_1h_input_tokens": 87},
        "output_tokens": 0,
        "iterations": [told],
    }
    expected = Usage(2, 204_576, cache_write_1h=87, output=1_651)
    assert anthropic_usage(raw) == usage_from(raw) == expected


def test_a_compaction_is_billed_apart_and_no_part_of_the_answer():
    raw = {
        "input_tokens": 23_000,
        "output_tokens": 1_000,
        "iterations": [
            {
                "type": "compaction",
                "input_tokens": 500,
                "cache_read_input_tokens": 179_500,
                "output_tokens": 3_500,
            },
            {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
            {"type": "advisor_message", "model": "claude-opus-5-5", "input_tokens": 70_000},
        ],
    }
    assert usage_from(raw) == Usage(23_000, output=1_000)
    assert billed_iterations(raw) == (
        BilledIteration("compaction", "compaction", None, Usage(500, 179_500, output=3_500)),
        BilledIteration("message", "agent", None, Usage(23_000, output=1_000)),
        BilledIteration("advisor_message", "agent", "claude-opus-5-5", Usage(70_000)),
    )


def test_declined_attempts_are_not_billed_and_the_last_one_is_the_answer():
    raw = {
        "output_tokens": 40,
        "iterations": [
            {"type": "message", "input_tokens": 900, "output_tokens": 1},
            {"type": "fallback_message", "model": "a", "input_tokens": 900, "output_tokens": 2},
            {"type": "fallback_message", "model": "b", "input_tokens": 901, "output_tokens": 40},
        ],
    }
    assert usage_from(raw) == Usage(901, output=40)
    assert billed_iterations(raw) == (
        BilledIteration("fallback_message", "agent", "b", Usage(901, output=40)),
    )


def test_without_iterations_none_is_billed_apart():
    assert billed_iterations(REAL) == billed_iterations({}) == ()


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"input_tokens": 1}, "usage.iterations.type"),
        ({"type": 3}, "usage.iterations.type"),
        ({"type": "message", "model": 3}, "usage.iterations.model"),
        ({"type": "compaction", "input_tokens": -1}, "usage.input_tokens"),
    ],
)
def test_an_iteration_of_another_shape_is_refused(entry, field):
    with pytest.raises(InputError) as caught:
        billed_iterations({"iterations": [entry]})
    assert caught.value.where == field


def test_own_token_classes():
    raw = {"uncached": 1, "cache_read": 2, "cache_write": 3, "output": 4, "reasoning": 4}
    assert usage_from(raw) == Usage(1, 2, cache_write_other=3, output=4, reasoning=4)


def test_own_lifetimes_are_parts_of_the_own_total():
    raw = {"cache_write": 100, "cache_write_5m": 30, "cache_write_12h": 20}
    usage = usage_from(raw)
    assert (usage.cache_write_other, usage.cache_write) == (50, 100)


@given(st.lists(st.integers(0, 10**6), min_size=9, max_size=9))
def test_own_classes_come_back_as_they_went(counts):
    names = list(Usage.__dataclass_fields__)
    raw = dict(zip(names, counts, strict=True))
    raw["reasoning"] = min(raw["reasoning"], raw["output"])
    usage = usage_from(raw)
    assert {name: getattr(usage, name) for name in names} == raw
    assert usage_from(raw | {"cache_write": usage.cache_write}) == usage


@pytest.mark.parametrize("value", [-1, 1.5, "3", True, [1], MAX_TOKENS + 1])
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "uncached", "cache_write_1h"])
def test_a_count_that_is_none_names_its_field(name, value):
    with pytest.raises(InputError) as caught:
        usage_from({name: value, **({"input_tokens": 0} if name == "output_tokens" else {})})
    assert caught.value.where == f"usage.{name}"
    assert caught.value.value == value
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"tokens": 5}, "usage.tokens"),
        ({"service_tier": "standard"}, "usage.service_tier"),
        ({"uncached": 5, "cached": 1}, "usage.cached"),
        ({"uncached": 5, "input_tokens": 5}, "usage.input_tokens"),
        ({"cache_write": 5, "cache_write_5m": 6}, "usage.cache_write"),
        ({"output": 5, "reasoning": 6}, "usage.reasoning"),
        ({"input_tokens": 1, "cache_creation": 3}, "usage.cache_creation"),
        ({"input_tokens": 1, "cache_creation": [3]}, "usage.cache_creation"),
        ({"input_tokens": 1, "iterations": 5}, "usage.iterations"),
        ({"input_tokens": 1, "iterations": [1, 2]}, "usage.iterations"),
        ({"input_tokens": 1, "iterations": {"type": "message"}}, "usage.iterations"),
        ({"input_tokens": 1, "output_tokens_details": "x"}, "usage.output_tokens_details"),
        (
            {
                "input_tokens": 1,
                "output_tokens": 5,
                "output_tokens_details": {"thinking_tokens": 6},
            },
            "usage.reasoning",
        ),
    ],
)
def test_an_object_of_another_kind_is_refused(raw, field):
    with pytest.raises(InputError) as caught:
        usage_from(raw)
    assert caught.value.where == field
    assert caught.value.remedy
