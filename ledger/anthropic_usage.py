"""Anthropic's usage object: the request's own tokens, and each iteration that is billed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.token_classes import Usage, write_rest
from ledger.usage_fields import misshapen, part, tokens, tokens_or_none

__all__ = ["BilledIteration", "anthropic_usage", "billed_iterations"]

WRITTEN = "cache_creation_input_tokens"
FALLBACK = "fallback_message"
#: Iterations that answered the request, or tried to.
ANSWERS = ("message", FALLBACK)
COUNTS = ("input_tokens", "cache_read_input_tokens", WRITTEN, "output_tokens")


@dataclass(frozen=True, slots=True)
class BilledIteration:
    """One model call inside a request, billed for itself.

    Parameters
    ----------
    type : str
        As the provider names it: ``compaction``, ``message``, ``advisor_message``, ….
    kind : str
        ``compaction`` or ``agent``, as the ledger names it.
    model : str or None
        The model that ran it, None where the request's own did.
    usage : Usage
        Its tokens; an entry carries cache fields of its own.
    """

    type: str
    kind: str
    model: str | None
    usage: Usage


def anthropic_usage(raw: Mapping[str, Any]) -> Usage:
    """Read an Anthropic Messages usage object: the request's answer, without any compaction.

    With several ``iterations`` the top-level input counts are the sum over the messages; the last
    message is what the context really held. Where the top level counts nothing, the messages do.
    Compactions and advisors are in `billed_iterations`.

    Raises
    ------
    InputError
        Naming the field, if a count is negative or no integer, a part is of another shape, or
        the lifetimes of cache writes add up to more than their total.
    """
    if not raw.get("iterations"):
        return _counted(raw, raw)
    entries = _iterations(raw)
    answers = [entry for entry in entries if entry.get("type") in ANSWERS]
    if not answers:
        return _counted(raw, raw)
    if any(raw.get(name) for name in COUNTS):
        return _counted(answers[-1] if len(entries) > 1 else raw, raw)
    output = sum(tokens(answer, "output_tokens") for answer in answers)
    return _counted(answers[-1], {"output_tokens": output})


def billed_iterations(raw: Mapping[str, Any]) -> tuple[BilledIteration, ...]:
    """Return each model call that a usage object's ``iterations`` are billed for, in order.

    Empty where there are no ``iterations``: the request is then billed for its own counts. An
    attempt directly followed by a ``fallback_message`` was declined, and declined attempts are
    not billed.

    Raises
    ------
    InputError
        As `anthropic_usage`.
    """
    entries = _iterations(raw)
    following = [*(entry.get("type") for entry in entries[1:]), None]
    return tuple(
        _billed(entry)
        for entry, after in zip(entries, following, strict=False)
        if not (entry.get("type") in ANSWERS and after == FALLBACK)
    )


def _billed(entry: Mapping[str, Any]) -> BilledIteration:
    told, model = entry.get("type"), entry.get("model")
    if not isinstance(told, str):
        raise misshapen("iterations.type", told, "a text")
    if model is not None and not isinstance(model, str):
        raise misshapen("iterations.model", model, "a text")
    kind = "compaction" if told == "compaction" else "agent"
    return BilledIteration(told, kind, model, _counted(entry, entry))


def _iterations(raw: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    entries = raw.get("iterations") or ()
    if entries and not (isinstance(entries, list) and all(isinstance(i, dict) for i in entries)):
        raise misshapen("iterations", entries, "a list of objects")
    return entries


def _counted(counted: Mapping[str, Any], whole: Mapping[str, Any]) -> Usage:
    lifetimes = part(counted, "cache_creation")
    write_5m = tokens(lifetimes, "ephemeral_5m_input_tokens")
    write_1h = tokens(lifetimes, "ephemeral_1h_input_tokens")
    return Usage(
        uncached=tokens(counted, "input_tokens"),
        cache_read=tokens(counted, "cache_read_input_tokens"),
        cache_write_5m=write_5m,
        cache_write_1h=write_1h,
        cache_write_other=write_rest(
            WRITTEN, tokens_or_none(counted, WRITTEN), write_5m + write_1h
        ),
        output=tokens(whole, "output_tokens"),
        reasoning=tokens(part(whole, "output_tokens_details"), "thinking_tokens"),
    )
