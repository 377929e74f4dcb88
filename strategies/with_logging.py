"""Decorator `with_logging`: any strategy, with before and after written down where it acted."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.cost_quote import Quote
from strategies.formats.recognise import see
from strategies.masking import check_masking, masked, masked_value
from strategies.raw_fields import plain
from strategies.result import Result
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, Strategy, seen
from strategies.transcript import Now, utc_now

__all__ = ["WithLogging", "with_logging"]


@dataclass(frozen=True, slots=True)
class WithLogging:
    """Writes one JSON line for each compaction that changed something, secrets masked.

    Parameters
    ----------
    inner : Strategy
        Who does the work; its results pass through.
    path : Path or str
        The file that lines are appended to. Where that fails, the compaction still stands, and
        its reason says that it was not logged.
    now : callable
        Tells the time of an entry.
    """

    inner: Strategy
    path: Path | str
    now: Now = utc_now

    @property
    def name(self) -> str:
        """The name of the strategy within."""
        return self.inner.name

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Let the strategy work, and write down what it changed."""
        check_masking()
        conversation = seen(messages, situation)
        result = self.inner.compact(conversation, situation)
        if not result.changed:
            return result
        line = json.dumps(self._entry(conversation, result), ensure_ascii=False)
        try:
            # Half a character, which UTF-8 can't hold, becomes the escape that JSON has for it.
            path = Path(self.path)
            with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"{line}\n")
        except OSError as error:
            told = f"{result.reason}; not logged: {self.path}: {error.strerror or error}"
            return replace(result, reason=told)
        return result

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the quote of the strategy within."""
        return self.inner.quote(messages, prices, situation)

    def _entry(self, conversation: Conversation, result: Result) -> dict[str, Any]:
        after = see(result.messages, conversation.wire_format.name)
        return {
            "at": self.now().isoformat(),
            "strategy": self.inner.name,
            "reason": masked(result.reason),
            "dropped": result.dropped,
            "summarised": result.summarised,
            "rewritten": result.rewritten,
            "usage": None if result.usage is None else asdict(result.usage),
            "before": _side(conversation),
            "after": _side(after),
        }


def _side(conversation: Conversation) -> dict[str, Any]:
    raws = [message.raw for message in conversation.messages]
    values = [json.loads(raw) if isinstance(raw, str) else plain(raw) for raw in raws]
    return {"tokens": conversation.tokens(), "messages": [masked_value(value) for value in values]}


def with_logging(inner: Strategy, path: Path | str, now: Now = utc_now) -> WithLogging:
    """Return a strategy that logs its compactions to a file."""
    return WithLogging(inner, path, now)
