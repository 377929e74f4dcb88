"""Advice: what the client tells an agent loop, and where it is from."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

__all__ = ["FALLBACKS", "Advice", "Decision", "Fallback", "Source", "Unanswered"]

Decision = Literal["compact", "wait"]
Source = Literal["server", "cached", "default"]
#: Why an answer is not the server's own.
Fallback = Literal[
    "timeout",
    "unreachable",
    "server_error",
    "garbage",
    "refused",
    "breaker",
    "arguments",
    "internal",
]
FALLBACKS: tuple[Fallback, ...] = (
    "timeout",
    "unreachable",
    "server_error",
    "garbage",
    "refused",
    "breaker",
    "arguments",
    "internal",
)


class Unanswered(NamedTuple):
    """Why the server's own answer is not to be had: a code for programs, a clause for people."""

    code: Fallback
    text: str


class Advice(NamedTuple):
    """Whether to compact before the next request. It can't be changed.

    Parameters
    ----------
    decision : {'compact', 'wait'}
        What to do.
    source : {'server', 'cached', 'default'}
        Who says so: the server; its last good thresholds, looked up here; or nobody, and then it is
        to wait, except past the window's hard limit.
    reason : str
        Why, in a sentence; its wording may change.
    age_seconds : float or None
        How long ago the server last said what this rests on: 0 for its own answer, None where it
        never did.
    answer : mapping or None
        The server's whole answer, as JSON values.
    fallback : str or None
        Why it is not the server's own answer, one of `FALLBACKS`. None where it is.
    """

    decision: Decision
    source: Source
    reason: str
    age_seconds: float | None = None
    answer: Mapping[str, Any] | None = None
    fallback: Fallback | None = None

    def __bool__(self) -> bool:
        # Otherwise any advice would be true, and `if client.should_compact(…)` always compact.
        return self.compact

    @property
    def compact(self) -> bool:
        """Whether to compact now."""
        return self.decision == "compact"
