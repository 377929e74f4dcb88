"""The adviser: what a client says with the server's answer, and what it says without."""

import json
import time
from collections.abc import Mapping
from typing import Any

from compactuary.advice import Advice, Unanswered
from compactuary.breaker import Breaker
from compactuary.counters import Counters
from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.http_message import Answered, request_bytes
from compactuary.json_bytes import json_bytes
from compactuary.local_thresholds import (
    GROWTH_TOKENS,
    SUMMARY_OUTPUT_TOKENS,
    LocalVerdict,
    decide_locally,
    past_limit,
)
from compactuary.log_once import LogOnce
from compactuary.stored_thresholds import Held
from compactuary.threshold_shelf import ThresholdShelf, asked_for
from compactuary.wondering import Wondering

__all__ = ["Adviser"]

#: Statuses that say nothing about the question: the server, or what is before it, is unwell.
_UNWELL = (408, 425, 429)
_SHOWN = 300


class Adviser:
    """Makes advice of answers, of thresholds and of nothing. It does no I/O but for one file.

    Both clients do this: `prepare` a request, have it answered, and `conclude`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        shelf: ThresholdShelf,
        breaker: Breaker,
        counters: Counters,
        log: LogOnce,
    ) -> None:
        self._endpoint, self._shelf, self._breaker = endpoint, shelf, breaker
        self._counters, self._log = counters, log

    def prepare(self, asked: Wondering) -> bytes | Unanswered:
        """Return the request to send, or why there is no use in sending one."""
        self._counters.count("asked")
        try:
            body = json_bytes(asked.told())
        except InputError as error:
            return Unanswered("arguments", f"The question can't be sent: {error}")
        if not self._breaker.allows(time.monotonic()):
            return Unanswered("breaker", "The server failed before and is asked again later")
        return request_bytes(self._endpoint, "POST", "/should-compact", body)

    def conclude(self, asked: Wondering, said: Answered | Unanswered) -> Advice:
        """Return advice for a question, by what the server said or failed to say."""
        answer = _answer_in(said) if isinstance(said, Answered) else said
        self._judge_server(answer)
        wanted = asked_for(asked.role, asked.model, asked.fields)
        if not isinstance(answer, Unanswered):
            if wanted is not None:
                self._shelf.hear_mode(wanted.role, answer.get("mode"))
                self._shelf.want(wanted)
            self._counters.count("server")
            return Advice(answer["decision"], "server", _reason(answer), 0.0, answer)
        held = None
        if wanted is not None and answer.code != "arguments":
            self._shelf.want(wanted)
            held = self._shelf.find(wanted)
        if answer.code != "breaker":
            self._log.tell(("advice", answer.code), f"{answer.text}.")
        advice = self._cached(asked, held, answer)
        if advice is None:
            advice = self._default(asked, held, answer)
        self._counters.count(advice.source, answer.code)
        return advice

    def broken(self, error: Exception) -> Advice:
        """Return the default after a fault of the client's own."""
        self._counters.count("default", "internal")
        self._log.tell(("internal", type(error)), f"A fault of the client: {error!r}.")
        reason = f"A fault of the client ({type(error).__name__}); wait"
        return Advice("wait", "default", reason, fallback="internal")

    def _judge_server(self, answer: Mapping[str, Any] | Unanswered) -> None:
        if not isinstance(answer, Unanswered) or answer.code == "refused":
            self._breaker.succeeded()
        elif answer.code not in ("breaker", "arguments") and self._breaker.failed(time.monotonic()):
            self._counters.count("breaker_opened")

    def _cached(self, asked: Wondering, held: Held | None, why: Unanswered) -> Advice | None:
        if held is None or not _count(asked.calls) or not _count(asked.context_tokens):
            return None
        fields = asked.fields
        moment, useless = fields.get("at") or "call", fields.get("useless_compactions") or 0
        try:
            verdict = decide_locally(
                held.thresholds,
                asked.calls,
                asked.context_tokens,
                at=moment,
                idle_seconds=fields.get("idle_seconds"),
                useless_compactions=useless,
            )
        except (InputError, TypeError):
            return None
        mode = self._shelf.mode_of(asked.role, held)
        if mode != "enforce" and verdict.decision == "compact":
            verdict = LocalVerdict("wait", f"{verdict.text}, but the role's mode is {mode}")
        age = max(0.0, time.time() - held.confirmed_at)
        reason = f"{verdict.text} (thresholds of {age:.0f} s ago). {why.text}."
        return Advice(verdict.decision, "cached", reason, age, fallback=why.code)

    def _default(self, asked: Wondering, held: Held | None, why: Unanswered) -> Advice:
        enforced = held is None or self._shelf.mode_of(asked.role, held) == "enforce"
        if enforced and self._past_limit(asked):
            reason = f"{asked.context_tokens:,} tokens leave no room in the window. {why.text}."
            return Advice("compact", "default", reason, fallback=why.code)
        return Advice("wait", "default", f"Wait, by default. {why.text}.", fallback=why.code)

    def _past_limit(self, asked: Wondering) -> bool:
        context, fields = asked.context_tokens, asked.fields
        if not _count(context) or (fields.get("at") or "call") not in ("call", "resume"):
            return False
        window = fields.get("window_tokens")
        if window is not None and _count(window):
            growth = _amount(fields.get("growth_tokens"), GROWTH_TOKENS)
            output = _amount(fields.get("summary_output_tokens"), SUMMARY_OUTPUT_TOKENS)
            return past_limit(context, window, growth, output)
        limit = self._shelf.limit_of(asked.model)
        return limit is not None and context > limit


def _answer_in(said: Answered) -> Mapping[str, Any] | Unanswered:
    """Return the answer in what the server sent, or what that is instead."""
    if said.status in _UNWELL or said.status >= 500:
        return Unanswered("server_error", f"The server answered {said.status}")
    if 400 <= said.status < 500:
        return Unanswered("refused", f"The server answered {said.status}: {_problem(said.body)}")
    if said.status != 200:
        return Unanswered("garbage", f"The server answered {said.status}")
    try:
        answer = json.loads(said.body)
        if answer["decision"] in ("compact", "wait"):
            return dict(answer)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass  # told below, as any other answer without a decision is
    return Unanswered("garbage", "The server's answer is no decision")


def _problem(body: bytes) -> str:
    """Return what a problem document says, shortened."""
    try:
        return str(json.loads(body)["detail"])[:_SHOWN].rstrip(".")
    except (ValueError, TypeError, KeyError, RecursionError):
        return "no problem document"


def _reason(answer: Mapping[str, Any]) -> str:
    reason = answer.get("reason")
    return str(reason.get("text", "")) if isinstance(reason, Mapping) else ""


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**12


def _amount(value: Any, assumed: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and 0 <= value <= 10**12 else assumed
