"""The one interface of all strategies."""

from collections.abc import Sequence
from typing import Any, Protocol

from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.cost_quote import Quote
from strategies.formats.recognise import see
from strategies.result import Result, unchanged
from strategies.safe_split import pair_up
from strategies.situation import Situation

__all__ = ["DEFAULT", "Messages", "Strategy", "refusal", "seen"]

#: Messages as the caller holds them, or their view where it is at hand.
Messages = Sequence[Any] | Conversation
DEFAULT = Situation()


class Strategy(Protocol):
    """A way to make a conversation smaller.

    Both methods raise InputError where messages are malformed or of an unknown role, and
    MissingExtraError where secrets would have to be masked and the detectors are not installed;
    nothing else. The messages that come in are never changed in place.
    """

    @property
    def name(self) -> str:
        """The name in the registry."""
        ...

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Return the conversation after, and what became of its messages."""
        ...

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return C, X′ and p′ of doing it now, without doing it."""
        ...


def refusal(conversation: Conversation) -> Result | None:
    """Return why a conversation is left alone by every strategy; None where nothing is wrong.

    A log may have lost its beginning, so that results without a call are no fault there.
    """
    if not conversation.messages:
        return unchanged(conversation, "the conversation is empty")
    if conversation.wire_format.name == "claude_code":
        return None
    orphans = pair_up(conversation.messages).orphans
    if not orphans:
        return None
    index, call_id = orphans[0]
    return unchanged(
        conversation,
        f"messages[{index}]: a result names the call {call_id!r}, which is not in the "
        "conversation; providers refuse it as it is. Put the call back, or drop the result",
    )


def seen(messages: Messages, situation: Situation) -> Conversation:
    """Return the view of messages in their situation."""
    return see(messages, situation.wire_format)
