"""One call told in every convention, how each is recognised, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from ledger.usage import CONVENTIONS, Usage, usage_from

# 1,000 tokens of context: 100 uncached, 700 read, 200 written of which 150 for an hour;
# 90 tokens of output, 30 of them reasoning.
CALL = Usage(100, 700, cache_write_1h=150, cache_write_other=50, output=90, reasoning=30)
READS = Usage(300, 700, output=90, reasoning=30)
BARE = Usage(1_000, output=90)

TOLD = {
    "anthropic": (CALL, {
        "input_tokens": 100, "cache_read_input_tokens": 700, "cache_creation_input_tokens": 200,
        "cache_creation": {"ephemeral_1h_input_tokens": 150}, "output_tokens": 90,
        "output_tokens_details": {"thinking_tokens": 30},
    }),
    "bedrock_converse": (Usage(100, 700, cache_write_1h=150, cache_write_other=50, output=90), {
        "inputTokens": 100, "cacheReadInputTokens": 700, "cacheWriteInputTokens": 200,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 150}], "outputTokens": 90,
        "totalTokens": 1_090,
    }),
    "openai_responses": (
        Usage(100, 700, cache_write_30m=120, cache_write_12h=80, output=90, reasoning=30), {
            "input_tokens": 1_000, "output_tokens": 90, "total_tokens": 1_090,
            "input_tokens_details": {
                "cached_tokens": 700, "cache_write_tokens": 200,
                "cache_write_tokens_details": {"ttl_30m_tokens": 120, "ttl_12h_tokens": 80},
            },
            "output_tokens_details": {"reasoning_tokens": 30},
        },
    ),
    "openai_chat": (Usage(100, 700, cache_write_other=200, output=90, reasoning=30), {
        "prompt_tokens": 1_000, "completion_tokens": 90, "total_tokens": 1_090,
        "prompt_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 200},
        "completion_tokens_details": {"reasoning_tokens": 30}, "cost": 0.01,
    }),
    "xai_chat": (READS, {
        "prompt_tokens": 1_000, "completion_tokens": 60, "total_tokens": 1_090,
        "prompt_tokens_details": {"cached_tokens": 700, "text_tokens": 1_000},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }),
    "deepseek": (READS, {
        "prompt_tokens": 1_000, "prompt_cache_hit_tokens": 700, "prompt_cache_miss_tokens": 300,
        "completion_tokens": 90, "completion_tokens_details": {"reasoning_tokens": 30},
    }),
    "gemini": (Usage(350, 700, output=90, reasoning=30), {
        "promptTokenCount": 1_000, "cachedContentTokenCount": 700, "candidatesTokenCount": 60,
        "thoughtsTokenCount": 30, "toolUsePromptTokenCount": 50, "totalTokenCount": 1_140,
    }),
    "litellm": (CALL, {
        "prompt_tokens": 1_000, "completion_tokens": 90, "total_tokens": 1_090,
        "cache_read_input_tokens": 700, "cache_creation_input_tokens": 200,
        "prompt_tokens_details": {
            "cached_tokens": 700, "cache_creation_tokens": 200,
            "cache_creation_token_details": {"ephemeral_1h_input_tokens": 150},
        },
        "completion_tokens_details": {"reasoning_tokens": 30},
    }),
    "langchain": (Usage(100, 700, cache_write_5m=50, cache_write_1h=150, output=90, reasoning=30), {
        "input_tokens": 1_000, "output_tokens": 90, "total_tokens": 1_090,
        "input_token_details": {
            "cache_read": 700, "cache_creation": 0,
            "ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 150,
        },
        "output_token_details": {"reasoning": 30},
    }),
    "codex": (Usage(100, 700, cache_write_other=200, output=90, reasoning=30), {
        "input_tokens": 1_000, "cached_input_tokens": 700, "cache_write_input_tokens": 200,
        "output_tokens": 90, "reasoning_output_tokens": 30, "total_tokens": 1_090,
    }),
    "pi": (CALL, {
        "input": 100, "output": 90, "cacheRead": 700, "cacheWrite": 200, "reasoning": 30,
        "cttl": {"ephemeral1h": 150}, "totalTokens": 1_090, "cost": {"total": 0.01},
    }),
    "opencode": (Usage(100, 700, cache_write_other=200, output=90, reasoning=30), {
        "input": 100, "output": 60, "reasoning": 30, "cache": {"read": 700, "write": 200},
        "total": 1_090,
    }),
    "gemini_cli": (Usage(350, 700, output=90, reasoning=30), {
        "input": 1_000, "cached": 700, "output": 60, "thoughts": 30, "tool": 50, "total": 1_140,
    }),
    "otel": (Usage(100, 700, cache_write_other=200, output=90, reasoning=30), {
        "gen_ai.usage.input_tokens": 1_000, "gen_ai.usage.output_tokens": 90,
        "gen_ai.usage.cache_read.input_tokens": 700,
        "gen_ai.usage.cache_creation.input_tokens": 200,
        "gen_ai.usage.reasoning.output_tokens": 30, "gen_ai.request.model": "m",
    }),
    "own": (CALL, {
        "uncached": 100, "cache_read": 700, "cache_write": 200, "cache_write_1h": 150,
        "output": 90, "reasoning": 30,
    }),
}  # fmt: skip

#: The same object, counted as its look-alike counts.
LOOK_ALIKE = {
    "litellm_uncached": (Usage(100, 700, cache_write_other=200, output=90), {
        "prompt_tokens": 100, "completion_tokens": 90,
        "cache_read_input_tokens": 700, "cache_creation_input_tokens": 200,
    }),
    "otel_uncached": (Usage(100, 700, cache_write_other=200, output=90), {
        "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 90,
        "gen_ai.usage.cache_read_input_tokens": 700,
        "gen_ai.usage.cache_creation_input_tokens": 200,
    }),
}  # fmt: skip


def test_every_convention_has_a_case():
    assert set(TOLD | LOOK_ALIKE) == set(CONVENTIONS)


@pytest.mark.parametrize("name", TOLD)
def test_its_own_fields_tell_a_convention(name):
    expected, raw = TOLD[name]
    assert usage_from(raw) == usage_from(raw, name) == expected


def test_reasoning_inside_an_output_is_not_added_to_it():
    raw = {"input": 100, "output": 90, "reasoning": 30, "cache": {"read": 700}, "total": 890}
    assert usage_from(raw) == Usage(100, 700, output=90, reasoning=30)


def test_an_output_alone_is_this_projects_own():
    assert usage_from({"output": 5}) == Usage(output=5)


@pytest.mark.parametrize("name", LOOK_ALIKE)
def test_a_look_alike_has_to_be_named(name):
    expected, raw = LOOK_ALIKE[name]
    assert usage_from(raw, name) == expected


@pytest.mark.parametrize(
    ("expected", "raw"),
    [
        (BARE, {"input_tokens": 1_000, "output_tokens": 90}),
        (BARE, {"input_tokens": 1_000, "output_tokens": 90, "total_tokens": 1_090}),
        (BARE, {"prompt_tokens": 1_000, "completion_tokens": 90}),
        (BARE, {"input_tokens": 1_000, "output_tokens": 90,
                "prompt_tokens": 1_000, "completion_tokens": 90}),
        (BARE, {"prompt_tokens": 1_000, "completion_tokens": 90, "input_tokens_details": None}),
        # MiniMax speaks Anthropic's, Moonshot tells what was read beside the totals.
        (Usage(10, cache_write_other=990, output=90),
         {"input_tokens": 10, "cache_creation_input_tokens": 990, "output_tokens": 90}),
        (Usage(300, 700, output=90),
         {"prompt_tokens": 1_000, "cached_tokens": 700, "completion_tokens": 90}),
        # Nothing cached: whether the total includes it makes no difference.
        (BARE, {"prompt_tokens": 1_000, "completion_tokens": 90,
                "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}),
        (BARE, {"gen_ai.usage.input_tokens": 1_000, "gen_ai.usage.output_tokens": 90,
                "gen_ai.usage.cache_read_input_tokens": 0}),
        (Usage(300, 700, output=90),
         {"prompt_token_count": 1_000, "cached_content_token_count": 700,
          "candidates_token_count": 90, "thoughts_token_count": None}),
        # More reasoning than output comes on top of it.
        (Usage(5, output=130, reasoning=120),
         {"prompt_tokens": 5, "completion_tokens": 10,
          "completion_tokens_details": {"reasoning_tokens": 120}}),
        (Usage(5, output=13, reasoning=3),
         {"prompt_tokens": 5, "completion_tokens": 10, "num_sources_used": 0,
          "completion_tokens_details": {"reasoning_tokens": 3}}),
        (Usage(300, 700, output=90),
         {"prompt_cache_hit_tokens": 700, "prompt_cache_miss_tokens": 300,
          "completion_tokens": 90}),
        (Usage(300, 700, output=90),
         {"total_token_usage": {"input_tokens": 10**6},
          "last_token_usage": {"input_tokens": 1_000, "cached_input_tokens": 700,
                               "output_tokens": 90}}),
    ],
)  # fmt: skip
def test_what_the_fields_leave_open_is_read_where_it_makes_no_difference(expected, raw):
    assert usage_from(raw) == expected


@pytest.mark.parametrize(
    ("fields", "names", "raw"),
    [
        ("completion_tokens_details.reasoning_tokens", {"openai_chat", "xai_chat"},
         {"prompt_tokens": 5, "completion_tokens": 10,
          "completion_tokens_details": {"reasoning_tokens": 3}}),
        ("cache_read_input_tokens", {"litellm", "litellm_uncached"},
         {"prompt_tokens": 900, "completion_tokens": 10, "cache_read_input_tokens": 700}),
        ("gen_ai.usage.cache_read_input_tokens", {"otel", "otel_uncached"},
         {"gen_ai.usage.input_tokens": 900, "gen_ai.usage.cache_read_input_tokens": 700}),
        ("input_tokens_details.cached_tokens", {"anthropic", "openai_responses"},
         {"input_tokens": 900, "cache_read_input_tokens": 700,
          "input_tokens_details": {"cached_tokens": 700}}),
        ("input_token_details.cache_read", {"langchain", "anthropic"},
         {"input_tokens": 900, "cache_read_input_tokens": 700,
          "input_token_details": {"cache_read": 700}}),
    ],
)  # fmt: skip
def test_what_the_fields_leave_open_is_refused_where_it_matters(fields, names, raw):
    with pytest.raises(InputError) as caught:
        usage_from(raw)
    assert fields.split(".", maxsplit=1)[0] in str(caught.value)
    assert all(name in caught.value.remedy for name in names)
    # Doing as the remedy says answers, and the answers differ.
    assert len({usage_from(raw, name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("gpt", {}),
        ("", {"input_tokens": 1}),
        ("anthropic", {"prompt_tokens": 5}),
        ("openai_chat", TOLD["litellm"][1]),
        ("openai_chat", TOLD["deepseek"][1]),
        ("gemini", {"input_tokens": 1}),
        ("bedrock_converse", TOLD["anthropic"][1]),
        ("openai_responses", TOLD["anthropic"][1]),
        ("codex", {"uncached": 5}),
        ("otel", {"service_tier": "standard"}),
    ],
)
def test_a_convention_that_is_unknown_or_another_is_refused(name, raw):
    with pytest.raises(InputError) as caught:
        usage_from(raw, name)
    assert (caught.value.where, caught.value.value) == ("convention", name)
    assert caught.value.remedy


def test_a_gateways_name_holds_for_objects_with_fewer_fields():
    raw = {"prompt_tokens": 1_000, "prompt_tokens_details": {"cached_tokens": 700}}
    assert usage_from(raw, "litellm") == usage_from(raw) == Usage(300, 700)
    assert usage_from({}, "litellm") == Usage()


@pytest.mark.parametrize(
    ("field", "raw"),
    [
        ("input_tokens", {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 6}}),
        ("prompt_tokens", {"prompt_tokens": 5, "cached_tokens": 6}),
        ("prompt_tokens", {"prompt_tokens": 5, "prompt_tokens_details":
                           {"cached_tokens": 3, "cache_write_tokens": 3}}),
        ("prompt_tokens", {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3,
                           "cache_creation_tokens": 3}}),
        ("prompt_tokens", {"prompt_tokens": 9, "prompt_cache_hit_tokens": 7,
                           "prompt_cache_miss_tokens": 3}),
        ("prompt_cache_hit_tokens", {"prompt_tokens": 9, "prompt_cache_hit_tokens": 7,
                                     "prompt_tokens_details": {"cached_tokens": 6}}),
        ("promptTokenCount", {"promptTokenCount": 5, "cachedContentTokenCount": 6}),
        ("input_tokens", {"input_tokens": 5, "input_token_details": {"cache_read": 6}}),
        ("input_tokens", {"input_tokens": 5, "cached_input_tokens": 6}),
        ("gen_ai.usage.input_tokens", {"gen_ai.usage.input_tokens": 5,
                                       "gen_ai.usage.cache_read.input_tokens": 6}),
        ("gen_ai.usage.input_tokens", {"gen_ai.usage.input_tokens": 5,
                                       "gen_ai.usage.prompt_tokens": 6}),
        ("cache_write_tokens", {"prompt_tokens": 50, "prompt_tokens_details": {
            "cache_write_tokens": 5, "cache_write_tokens_details": {"ttl_12h_tokens": 6}}}),
        ("cache_creation_input_tokens", {"cache_creation_input_tokens": 5, "cache_creation":
                                         {"ephemeral_5m_input_tokens": 6}}),
        ("cache_creation", {"input_tokens": 50, "input_token_details":
                            {"cache_creation": 5, "ephemeral_5m_input_tokens": 6}}),
        ("cacheWriteInputTokens", {"inputTokens": 5, "cacheWriteInputTokens": 5,
                                   "cacheDetails": [{"ttl": "5m", "inputTokens": 6}]}),
        ("cacheDetails", {"inputTokens": 5, "cacheDetails": {"ttl": "5m"}}),
        ("cachedInputTokens", {"inputTokens": 5, "cachedInputTokens": 3}),
        ("total_token_usage", {"total_token_usage": {"input_tokens": 5}}),
        ("reasoning", {"input_tokens": 5, "output_tokens": 1,
                       "output_tokens_details": {"reasoning_tokens": 2}}),
        ("prompt_tokens_details", {"prompt_tokens": 5, "prompt_tokens_details": [1]}),
        ("promptTokenCount", {"promptTokenCount": "5"}),
        ("outputTokens", {"inputTokens": 5, "outputTokens": 1.5}),
        ("prompt_tokens", {"prompt_tokens": True}),
        ("prompt_cache_hit_tokens", {"prompt_cache_hit_tokens": -1}),
    ],
)  # fmt: skip
def test_parts_larger_than_their_whole_and_counts_that_are_none_are_refused(field, raw):
    with pytest.raises(InputError) as caught:
        usage_from(raw)
    assert caught.value.where == f"usage.{field}"
    assert caught.value.remedy


COUNTS = [
    (name, field)
    for name, (_, raw) in TOLD.items()
    for field, value in raw.items()
    if type(value) is int and "total" not in field.lower()
]


@pytest.mark.parametrize("value", [-1, 10**9 + 1, 10**30, 2.5, "7", True, [7]])
@pytest.mark.parametrize(("name", "field"), COUNTS)
def test_negative_and_absurd_counts_are_refused_in_every_convention(name, field, value):
    raw = TOLD[name][1] | {field: value}
    for named in (None, name):
        with pytest.raises(InputError) as caught:
            usage_from(raw, named)
        assert caught.value.where == f"usage.{field}"


VALUES = st.recursive(
    st.none() | st.integers(-5, 10**10) | st.text(max_size=3) | st.booleans() | st.floats(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
FIELDS = sorted(
    {path for _, raw in (TOLD | LOOK_ALIKE).values() for path in raw}
    | {"iterations", "cached_tokens", "total_tokens"}
)


@given(
    st.dictionaries(st.sampled_from(FIELDS), VALUES | st.integers(0, 2_000), max_size=6),
    st.none() | st.sampled_from(sorted(CONVENTIONS)),
)
def test_whatever_comes_is_a_sound_record_or_a_refusal(raw, name):
    try:
        usage = usage_from(raw, name)
    except InputError:
        return
    counts = [getattr(usage, field) for field in Usage.__dataclass_fields__]
    assert all(type(count) is int and count >= 0 for count in counts)
    assert usage.cache_read + usage.cache_write <= usage.context_tokens
    assert usage.reasoning <= usage.output
