"""Usage objects of providers → one record; the convention is told by fields or named."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from compactuary.errors import InputError
from ledger.anthropic_usage import BilledIteration, anthropic_usage, billed_iterations
from ledger.token_classes import MAX_TOKENS, Usage
from ledger.usage_conventions import CONVENTIONS, OWN_FIELDS
from ledger.usage_fields import tokens, tokens_or_none

__all__ = [
    "CONVENTIONS",
    "MAX_TOKENS",
    "BilledIteration",
    "Usage",
    "anthropic_usage",
    "billed_iterations",
    "usage_from",
]

_OWN = frozenset(OWN_FIELDS)
#: Fields that only objects of a convention have; a dot leads into an inner object.
_TELLING: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "anthropic": "cache_read_input_tokens cache_creation_input_tokens cache_creation "
        "iterations output_tokens_details.thinking_tokens",
        "bedrock_converse": "inputTokens outputTokens cacheReadInputTokens "
        "cacheWriteInputTokens cacheDetails",
        "openai_responses": "input_tokens_details output_tokens_details.reasoning_tokens",
        "openai_chat": "prompt_tokens completion_tokens prompt_tokens_details "
        "completion_tokens_details",
        "deepseek": "prompt_cache_hit_tokens prompt_cache_miss_tokens",
        "gemini": "promptTokenCount candidatesTokenCount cachedContentTokenCount "
        "thoughtsTokenCount toolUsePromptTokenCount prompt_token_count candidates_token_count "
        "cached_content_token_count thoughts_token_count tool_use_prompt_token_count",
        "langchain": "input_token_details output_token_details",
        "codex": "cached_input_tokens cache_write_input_tokens reasoning_output_tokens "
        "last_token_usage total_token_usage",
        "pi": "cacheRead cacheWrite",
        "opencode": "cache.read cache.write",
        "gemini_cli": "cached thoughts",
        "otel": "gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens "
        "gen_ai.usage.output_tokens gen_ai.usage.completion_tokens "
        "gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_creation.input_tokens "
        "gen_ai.usage.cache_read_input_tokens gen_ai.usage.cache_creation_input_tokens "
        "gen_ai.usage.reasoning.output_tokens",
    }.items()
}
_EVERY_TELLING = frozenset().union(*_TELLING.values())
#: Conventions whose totals are input_tokens and output_tokens: without other fields all agree.
_BARE = frozenset({"anthropic", "openai_responses", "langchain", "codex"})
#: In LiteLLM's objects beside prompt_tokens, apart from Anthropic's own fields.
_LITELLM = frozenset(
    {
        "prompt_tokens_details.cache_creation_tokens",
        "prompt_tokens_details.cache_creation_token_details",
    }
)
#: Conventions of agents' logs that name the output as this project does, and what they share.
_LOGGED = frozenset({"pi", "opencode", "gemini_cli"})
_SHARED = frozenset({"output", "reasoning"})
_XAI = frozenset({"num_sources_used", "cost_in_usd_ticks"})
_CHAT = frozenset({"openai_chat", "xai_chat"})
#: What may be named where the fields tell one of the first: they have all these fields too.
_NAMEABLE = (
    (_CHAT, _CHAT | {"litellm", "litellm_uncached", "deepseek"}),
    ({"litellm"}, {"litellm_uncached"}),
    ({"otel"}, {"otel_uncached"}),
)


def usage_from(raw: Mapping[str, Any], convention: str | None = None) -> Usage:
    """Read a usage object as its provider sent it, or this project's own token classes.

    Parameters
    ----------
    raw : mapping
        The usage of one request. Fields it does not tell count 0; an empty one is all 0.
    convention : str, optional
        One of `CONVENTIONS`; by default the fields tell it. An object that fits several is read
        where all of them give the same record.

    Raises
    ------
    InputError
        If a count is negative, absurd or no integer; a part is larger than its whole; two
        fields tell the same count differently; the convention is unknown, is not the object's,
        or is needed because the fields leave it open.
    """
    fitting = _fitting(raw)
    own = _OWN.intersection(raw)
    if convention is None and own and (own - _SHARED or fitting.isdisjoint(_LOGGED)):
        return CONVENTIONS["own"](raw)
    if convention is not None:
        return CONVENTIONS[_named(convention, fitting, raw)](raw)
    if not fitting:
        # Refuses every field there is, and reads none as nothing used.
        return CONVENTIONS["own"](raw)
    readings = {name: CONVENTIONS[name](raw) for name in sorted(fitting)}
    if len(set(readings.values())) > 1:
        fields = sorted(_names(raw) & (_EVERY_TELLING | {"input_tokens", "output_tokens"}))
        raise InputError(
            f"{', '.join(fields)} fit {' and '.join(readings)}, which count differently",
            where=f"usage.{fields[0]}",
            remedy=f"Name the convention: {' or '.join(readings)}.",
        )
    return next(iter(readings.values()))


def _named(convention: str, fitting: set[str], raw: Mapping[str, Any]) -> str:
    if convention not in CONVENTIONS:
        raise InputError(
            "unknown convention of counting tokens",
            where="convention",
            value=convention,
            remedy=f"Name one of: {', '.join(CONVENTIONS)}.",
        )
    allowed = fitting.union(*(more for some, more in _NAMEABLE if some & fitting))
    if raw and convention not in allowed | {"own"}:
        told = f"its fields are of {' or '.join(sorted(allowed))}" if allowed else "no field tells"
        raise InputError(
            f"not the convention of this usage: {told}",
            where="convention",
            value=convention,
            remedy="Leave it out, or send the usage object as it came.",
        )
    return convention


def _names(raw: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the fields that are told, those of inner objects behind a dot."""
    names = {name for name, value in raw.items() if value is not None}
    for name, value in raw.items():
        if isinstance(value, Mapping):
            names.update(f"{name}.{inner}" for inner in value if value[inner] is not None)
    return frozenset(names)


@lru_cache(maxsize=256)
def _fitting_names(names: frozenset[str]) -> frozenset[str]:
    """Return the conventions of which some field is told: usage objects are of a few shapes."""
    return frozenset(name for name, telling in _TELLING.items() if not telling.isdisjoint(names))


def _fitting(raw: Mapping[str, Any]) -> set[str]:
    """Return the conventions that the fields of an object leave open."""
    names = _names(raw)
    fitting = set(_fitting_names(names & _EVERY_TELLING))
    if "openai_chat" in fitting:
        fitting.remove("openai_chat")
        if "anthropic" in fitting or not _LITELLM.isdisjoint(names):
            fitting.discard("anthropic")
            fitting |= _litellm_kinds(names)
        elif "deepseek" not in fitting:
            fitting |= _chat_kinds(raw, names)
    if not names.isdisjoint({"input_tokens", "output_tokens"}) and fitting.isdisjoint(_BARE):
        fitting |= _BARE
    old = _any_named(names, "gen_ai.usage.cache_", "_input_tokens")
    if old and not _any_named(names, "gen_ai.usage.cache_", ".input_tokens"):
        # The old names were in use before anybody said whether the total includes them.
        fitting.add("otel_uncached")
    return fitting


def _any_named(names: Iterable[str], start: str, end: str) -> bool:
    return any(name.startswith(start) and name.endswith(end) for name in names)


def _litellm_kinds(names: frozenset[str]) -> set[str]:
    """Tell LiteLLM's prompt_tokens, which include the cache, from gateways' that do not."""
    inside = "prompt_tokens_details.cached_tokens" in names or not _LITELLM.isdisjoint(names)
    return {"litellm"} if inside or "iterations" in names else {"litellm", "litellm_uncached"}


def _chat_kinds(raw: Mapping[str, Any], names: frozenset[str]) -> set[str]:
    """Tell OpenAI's chat from xAI's, which adds the reasoning to the output, by the total."""
    if not _XAI.isdisjoint(names):
        return {"xai_chat"}
    total = tokens_or_none(raw, "total_tokens")
    details = raw.get("completion_tokens_details")
    reasoning = tokens(details, "reasoning_tokens") if isinstance(details, Mapping) else 0
    if not reasoning:
        return {"openai_chat"}
    beside = tokens(raw, "prompt_tokens") + tokens(raw, "completion_tokens")
    kinds = {beside: {"openai_chat"}, beside + reasoning: {"xai_chat"}}
    if total in kinds:
        return kinds[total]
    # More reasoning than output is possible only where it comes on top.
    added = reasoning > tokens(raw, "completion_tokens")
    return {"xai_chat"} if added else set(_CHAT)
