"""How each provider or instrumentation counts tokens, read into the one record.

Conventions differ in what the input total includes, where the cache and the reasoning stand, and
whether reasoning is a part of the output.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from compactuary.errors import InputError
from ledger.anthropic_usage import anthropic_usage
from ledger.token_classes import Usage, classes_of_total, write_rest
from ledger.usage_fields import misshapen, part, tokens, tokens_or_none

__all__ = ["CONVENTIONS", "OWN_FIELDS"]

Raw = Mapping[str, Any]

OWN_FIELDS = (*Usage.__dataclass_fields__, "cache_write")


def _own(raw: Raw) -> Usage:
    unknown = sorted(set(raw) - set(OWN_FIELDS))
    if unknown:
        raise InputError(
            "unknown field",
            where=f"usage.{unknown[0]}",
            value=raw[unknown[0]],
            remedy="Send a provider's usage object as it came, "
            f"or any of: {', '.join(OWN_FIELDS)}.",
        )
    counts = {name: tokens(raw, name) for name in Usage.__dataclass_fields__}
    told = sum(n for name, n in counts.items() if name.startswith("cache_write_"))
    total = tokens_or_none(raw, "cache_write")
    counts["cache_write_other"] += write_rest("cache_write", total, told)
    return Usage(**counts)


def _openai_responses(raw: Raw) -> Usage:
    return _openai(raw, "input_tokens", "output_tokens")


def _openai_chat(raw: Raw) -> Usage:
    return _openai(raw, "prompt_tokens", "completion_tokens")


def _xai_chat(raw: Raw) -> Usage:
    return _openai(raw, "prompt_tokens", "completion_tokens", reasoning_added=True)


def _openai(raw: Raw, total: str, output: str, *, reasoning_added: bool = False) -> Usage:
    details = part(raw, f"{total}_details")
    lifetimes = _openai_lifetimes(details)
    written = tokens_or_none(details, "cache_write_tokens")
    reasoning = tokens(part(raw, f"{output}_details"), "reasoning_tokens")
    return classes_of_total(
        total,
        tokens(raw, total),
        # Moonshot tells it beside the totals, the others among the details.
        read=_agreed((raw, "cached_tokens"), (details, "cached_tokens")),
        **lifetimes,
        cache_write_other=write_rest("cache_write_tokens", written, sum(lifetimes.values())),
        output=tokens(raw, output) + (reasoning if reasoning_added else 0),
        reasoning=reasoning,
    )


def _openai_lifetimes(details: Raw) -> dict[str, int]:
    lifetimes = part(details, "cache_write_tokens_details")
    return {
        "cache_write_30m": tokens(lifetimes, "ttl_30m_tokens"),
        "cache_write_12h": tokens(lifetimes, "ttl_12h_tokens"),
    }


def _deepseek(raw: Raw) -> Usage:
    details = part(raw, "prompt_tokens_details")
    hit = _agreed((raw, "prompt_cache_hit_tokens"), (details, "cached_tokens"))
    miss = tokens_or_none(raw, "prompt_cache_miss_tokens")
    total = tokens_or_none(raw, "prompt_tokens")
    if total is None:
        total = hit + (miss or 0)
    elif miss is not None and hit + miss != total:
        raise _disagreeing("prompt_tokens", total, f"the {hit} cache hits and {miss} misses")
    return classes_of_total(
        "prompt_tokens",
        total,
        read=hit,
        output=tokens(raw, "completion_tokens"),
        reasoning=tokens(part(raw, "completion_tokens_details"), "reasoning_tokens"),
    )


def _litellm(raw: Raw) -> Usage:
    if raw.get("iterations"):
        # LiteLLM's totals then include the compactions; the iterations are Anthropic's.
        return anthropic_usage({"iterations": raw["iterations"]})
    return classes_of_total(
        "prompt_tokens", tokens(raw, "prompt_tokens"), **_output(raw), **_cached(raw)
    )


def _litellm_uncached(raw: Raw) -> Usage:
    return Usage(uncached=tokens(raw, "prompt_tokens"), **_output(raw), **_renamed(_cached(raw)))


def _output(raw: Raw) -> dict[str, int]:
    details = part(raw, "completion_tokens_details")
    return {
        "output": tokens(raw, "completion_tokens"),
        "reasoning": tokens(details, "reasoning_tokens"),
    }


def _cached(raw: Raw) -> dict[str, int]:
    """Return the cache fields as LiteLLM passes them on: Anthropic's told once or twice."""
    details = part(raw, "prompt_tokens_details")
    lifetimes = part(details, "cache_creation_token_details") or part(raw, "cache_creation")
    by_lifetime = {
        "cache_write_5m": tokens(lifetimes, "ephemeral_5m_input_tokens"),
        "cache_write_1h": tokens(lifetimes, "ephemeral_1h_input_tokens"),
        **_openai_lifetimes(details),
    }
    places = (
        (raw, "cache_creation_input_tokens"),
        (details, "cache_creation_tokens"),
        (details, "cache_write_tokens"),
    )
    told = any(tokens_or_none(*place) is not None for place in places)
    written = _agreed(*places) if told else None
    return {
        "read": _agreed((raw, "cache_read_input_tokens"), (details, "cached_tokens")),
        **by_lifetime,
        "cache_write_other": write_rest(
            "cache_creation_input_tokens", written, sum(by_lifetime.values())
        ),
    }


def _renamed(classes: dict[str, int]) -> dict[str, int]:
    return {"cache_read" if name == "read" else name: n for name, n in classes.items()}


def _langchain(raw: Raw) -> Usage:
    details = part(raw, "input_token_details")
    write_5m = tokens(details, "ephemeral_5m_input_tokens")
    write_1h = tokens(details, "ephemeral_1h_input_tokens")
    # LangChain sets the total to 0 where it tells lifetimes, so as not to count them twice.
    written = tokens(details, "cache_creation") or None
    return classes_of_total(
        "input_tokens",
        tokens(raw, "input_tokens"),
        read=tokens(details, "cache_read"),
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        cache_write_other=write_rest("cache_creation", written, write_5m + write_1h),
        output=tokens(raw, "output_tokens"),
        reasoning=tokens(part(raw, "output_token_details"), "reasoning"),
    )


def _gemini(raw: Raw) -> Usage:
    def told(camel: str, snake: str) -> int:
        return _agreed((raw, camel), (raw, snake))

    thoughts = told("thoughtsTokenCount", "thoughts_token_count")
    usage = classes_of_total(
        "promptTokenCount",
        told("promptTokenCount", "prompt_token_count"),
        read=told("cachedContentTokenCount", "cached_content_token_count"),
        output=told("candidatesTokenCount", "candidates_token_count") + thoughts,
        reasoning=thoughts,
    )
    results = told("toolUsePromptTokenCount", "tool_use_prompt_token_count")
    return replace(usage, uncached=usage.uncached + results)


def _bedrock_converse(raw: Raw) -> Usage:
    if "cachedInputTokens" in raw:
        raise InputError(
            "a field of the AI SDK, whose inputTokens means another thing for each provider",
            where="usage.cachedInputTokens",
            value=raw["cachedInputTokens"],
            remedy="Send the provider's own usage object, or uncached, cache_read, cache_write "
            "and output.",
        )
    by_lifetime = {"5m": 0, "1h": 0}
    details = raw.get("cacheDetails") or []
    if not isinstance(details, list) or not all(isinstance(one, dict) for one in details):
        raise misshapen("cacheDetails", details, "a list of objects")
    for one in details:
        if one.get("ttl") in by_lifetime:
            by_lifetime[one["ttl"]] += tokens(one, "inputTokens")
    told = sum(by_lifetime.values())
    written = tokens_or_none(raw, "cacheWriteInputTokens")
    return Usage(
        uncached=tokens(raw, "inputTokens"),
        cache_read=tokens(raw, "cacheReadInputTokens"),
        cache_write_5m=by_lifetime["5m"],
        cache_write_1h=by_lifetime["1h"],
        cache_write_other=write_rest("cacheWriteInputTokens", written, told),
        output=tokens(raw, "outputTokens"),
    )


def _codex(raw: Raw) -> Usage:
    if raw.get("total_token_usage") and not raw.get("last_token_usage"):
        raise InputError(
            "the session's running total, not one request's usage",
            where="usage.total_token_usage",
            value=raw["total_token_usage"],
            remedy="Send last_token_usage.",
        )
    counted = part(raw, "last_token_usage") or raw
    return classes_of_total(
        "input_tokens",
        tokens(counted, "input_tokens"),
        read=tokens(counted, "cached_input_tokens"),
        cache_write_other=tokens(counted, "cache_write_input_tokens"),
        output=tokens(counted, "output_tokens"),
        reasoning=tokens(counted, "reasoning_output_tokens"),
    )


def _otel(raw: Raw) -> Usage:
    total, read, written, output = _attributes(raw)
    return classes_of_total(
        "gen_ai.usage.input_tokens", total, read=read, cache_write_other=written, **output
    )


def _otel_uncached(raw: Raw) -> Usage:
    uncached, read, written, output = _attributes(raw)
    return Usage(uncached=uncached, cache_read=read, cache_write_other=written, **output)


def _attributes(raw: Raw) -> tuple[int, int, int, dict[str, int]]:
    """Return input, read, written and output of a span's attributes, by new or old names."""

    def told(*names: str) -> int:
        return _agreed(*((raw, f"gen_ai.usage.{name}") for name in names))

    return (
        told("input_tokens", "prompt_tokens"),
        told("cache_read.input_tokens", "cache_read_input_tokens"),
        told("cache_creation.input_tokens", "cache_creation_input_tokens"),
        {
            "output": told("output_tokens", "completion_tokens"),
            "reasoning": told("reasoning.output_tokens"),
        },
    )


def _pi(raw: Raw) -> Usage:
    lifetimes = part(raw, "cttl")
    write_5m, write_1h = tokens(lifetimes, "ephemeral5m"), tokens(lifetimes, "ephemeral1h")
    written = tokens_or_none(raw, "cacheWrite")
    return Usage(
        uncached=tokens(raw, "input"),
        cache_read=tokens(raw, "cacheRead"),
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        cache_write_other=write_rest("cacheWrite", written, write_5m + write_1h),
        output=tokens(raw, "output"),
        reasoning=_agreed((raw, "reasoning"), (raw, "reasoningTokens")),
    )


def _opencode(raw: Raw) -> Usage:
    cache = part(raw, "cache")
    uncached, output = tokens(raw, "input"), tokens(raw, "output")
    read, written = tokens(cache, "read"), tokens(cache, "write")
    reasoning = tokens(raw, "reasoning")
    # Reasoning stands beside the output, unless the total shows that it is a part of it.
    inside = tokens_or_none(raw, "total") == uncached + read + written + output
    return Usage(
        uncached=uncached,
        cache_read=read,
        cache_write_other=written,
        output=output if inside else output + reasoning,
        reasoning=reasoning,
    )


def _gemini_cli(raw: Raw) -> Usage:
    thoughts = tokens(raw, "thoughts")
    usage = classes_of_total(
        "input",
        tokens(raw, "input"),
        read=tokens(raw, "cached"),
        output=tokens(raw, "output") + thoughts,
        reasoning=thoughts,
    )
    return replace(usage, uncached=usage.uncached + tokens(raw, "tool"))


def _agreed(*places: tuple[Raw, str]) -> int:
    """Return a count told in several places, 0 where it is told in none."""
    told: dict[int, str] = {}
    for raw, name in places:
        value = tokens_or_none(raw, name)
        if value is not None:
            told.setdefault(value, name)
    if len(told) > 1:
        (value, name), (other, beside), *_ = told.items()
        raise _disagreeing(name, value, f"the {other} that {beside} tells elsewhere")
    return next(iter(told), 0)


def _disagreeing(name: str, value: int, other: str) -> InputError:
    return InputError(
        f"not the same as {other}",
        where=f"usage.{name}",
        value=value,
        remedy="Send the provider's usage object as it came, or uncached, cache_read, "
        "cache_write and output.",
    )


#: Every convention that can be named, and what reads it.
CONVENTIONS: Mapping[str, Callable[[Raw], Usage]] = {
    "own": _own,
    "anthropic": anthropic_usage,
    "bedrock_converse": _bedrock_converse,
    "openai_responses": _openai_responses,
    "openai_chat": _openai_chat,
    "xai_chat": _xai_chat,
    "deepseek": _deepseek,
    "gemini": _gemini,
    "litellm": _litellm,
    "litellm_uncached": _litellm_uncached,
    "langchain": _langchain,
    "codex": _codex,
    "pi": _pi,
    "opencode": _opencode,
    "gemini_cli": _gemini_cli,
    "otel": _otel,
    "otel_uncached": _otel_uncached,
}
