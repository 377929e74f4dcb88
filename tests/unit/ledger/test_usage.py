"""Usage objects of both shapes, and every refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from ledger.usage import MAX_TOKENS, Usage, anthropic_usage, usage_from

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
        ({"input_tokens": 5, "input_tokens_details": {}}, "usage.input_tokens_details"),
        ({"input_tokens": 5, "input_token_details": {}}, "usage.input_token_details"),
        ({"input_tokens": 5, "prompt_tokens": 5}, "usage.prompt_tokens"),
        ({"prompt_tokens": 5, "completion_tokens": 1}, "usage.completion_tokens"),
        ({"uncached": 5, "cached": 1}, "usage.cached"),
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
