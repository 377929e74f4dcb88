"""Local thresholds: the server's compiled rules, looked up without it."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from compactuary.advice import Decision
from compactuary.errors import InputError

__all__ = [
    "GROWTH_TOKENS",
    "SUMMARY_OUTPUT_TOKENS",
    "USELESS_IN_A_ROW",
    "LocalThresholds",
    "LocalVerdict",
    "decide_locally",
    "past_limit",
    "thresholds_from",
]

#: What the service assumes until its ledger has taught it better; a test holds them equal.
GROWTH_TOKENS = 1_100
SUMMARY_OUTPUT_TOKENS = 5_000
#: So many compactions in a row that shrank the context by less than 5% are enough.
USELESS_IN_A_ROW = 2

_REMEDY = "Fetch the thresholds again"


class LocalThresholds(NamedTuple):
    """The contexts from which a rule compacts, in tokens; None is never.

    Parameters
    ----------
    rule : str
        Its name.
    at_call : tuple of (float or None)
        After i requests of the turn, before the next one; the last one holds beyond.
    at_turn_end, at_resume : float or None
        At the end of a turn, and before the first request after a pause.
    at_idle : tuple of (float, float or None)
        ``(idle_seconds, context)``, rising: from so many seconds of waiting on.
    ask_again_seconds : float or None
        Idle time just before the cache expires.
    requests_per_call : float
        Turns calls into requests.
    hard_limit_tokens : float or None
        The largest context that need not be compacted, whatever the rule says.
    context_after_tokens : float or None
        Context after a compaction; a smaller one is not worth any.
    """

    rule: str
    at_call: tuple[float | None, ...]
    at_turn_end: float | None
    at_resume: float | None
    at_idle: tuple[tuple[float, float | None], ...]
    ask_again_seconds: float | None
    requests_per_call: float
    hard_limit_tokens: float | None
    context_after_tokens: float | None

    def at(self, moment: str, requests: int, idle_seconds: float | None) -> float | None:
        """Return the context from which to compact at a moment, in tokens; None for never.

        Raises
        ------
        InputError
            The moment is unknown.
        """
        if moment == "call":
            at_call = self.at_call
            return at_call[requests] if requests < len(at_call) else at_call[-1]
        if moment == "turn_end":
            return self.at_turn_end
        if moment == "resume":
            return self.at_resume
        if moment != "idle":
            raise InputError("is unknown", where="at", value=moment, remedy="Say call or turn_end")
        seconds = self.ask_again_seconds if idle_seconds is None else idle_seconds
        if seconds is None:
            return None
        begun = [tokens for begins, tokens in self.at_idle if begins <= seconds]
        return begun[-1] if begun else None


class LocalVerdict(NamedTuple):
    """A decision made here, and why."""

    decision: Decision
    text: str


def decide_locally(
    thresholds: LocalThresholds,
    calls: int,
    context_tokens: int,
    *,
    at: str = "call",
    idle_seconds: float | None = None,
    useless_compactions: int = 0,
) -> LocalVerdict:
    """Decide as the server would: its guards in its order, then its thresholds.

    Parameters
    ----------
    thresholds : LocalThresholds
    calls : int
        Made in this turn so far, in the unit that the thresholds were asked for.
    context_tokens : int
        Context now.
    at, idle_seconds, useless_compactions
        As in a question to the server.

    Raises
    ------
    InputError
        The moment is unknown.
    """
    limit, after = thresholds.hard_limit_tokens, thresholds.context_after_tokens
    if limit is not None and context_tokens > limit and at in ("call", "resume"):
        return LocalVerdict("compact", f"{context_tokens:,} tokens are past the limit {limit:,.0f}")
    if after is not None and context_tokens <= after:
        return LocalVerdict("wait", f"A compaction would leave {after:,.0f} tokens")
    if useless_compactions >= USELESS_IN_A_ROW:
        return LocalVerdict("wait", f"The last {useless_compactions} compactions shrank little")
    requests = round(calls * thresholds.requests_per_call)
    threshold = thresholds.at(at, requests, idle_seconds)
    if threshold is None:
        return LocalVerdict("wait", f"{thresholds.rule} waits here at any context")
    decision: Decision = "compact" if context_tokens >= threshold else "wait"
    return LocalVerdict(decision, f"{thresholds.rule} compacts here from {threshold:,.0f} tokens")


def past_limit(
    context_tokens: int,
    window_tokens: float,
    growth_tokens: float = GROWTH_TOKENS,
    summary_output_tokens: float = SUMMARY_OUTPUT_TOKENS,
) -> bool:
    """Return whether the next request and a summary would not both fit into the window."""
    return context_tokens + growth_tokens + summary_output_tokens > window_tokens


def thresholds_from(document: Any) -> LocalThresholds:
    """Return thresholds as ``GET /thresholds/{role}`` serves them.

    Raises
    ------
    InputError
        This is something else, or holds an impossible number.
    """
    try:
        setting = document["setting"] or {}
        found = LocalThresholds(
            rule=_text(document["rule"]),
            at_call=tuple(_tokens(value) for value in document["at_call"]),
            at_turn_end=_tokens(document["at_turn_end"]),
            at_resume=_tokens(document["at_resume"]),
            at_idle=tuple((_number(since), _tokens(value)) for since, value in document["at_idle"]),
            ask_again_seconds=_tokens(document["ask_again_seconds"]),
            requests_per_call=_number(document["requests_per_call"]),
            hard_limit_tokens=_tokens(document["hard_limit_tokens"]),
            context_after_tokens=_after(setting),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"are no thresholds: {type(error).__name__} {error}"
        raise InputError(problem, where="thresholds", remedy=_REMEDY) from error
    if not found.at_call:
        raise InputError("is empty", where="at_call", remedy=_REMEDY)
    return found


def _after(setting: Mapping[str, Any]) -> float | None:
    return _tokens(setting.get("context_after_tokens"))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("rule is no text")
    return value


def _tokens(value: Any) -> float | None:
    return None if value is None else _number(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    if not 0 <= value < math.inf:
        raise ValueError(f"{value!r} is out of range")
    return value
