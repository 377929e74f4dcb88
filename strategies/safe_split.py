"""Safe split: where a conversation may be cut, so that no call ever loses its result.

Every strategy that takes messages away goes through here. A cut before message k is clean where
nothing that belongs together lies on both sides of it: a call and its result, also where parallel
calls' results are spread over several messages; the entries of one response, thinking included;
and a block in which a provider keeps its own summary, which must travel on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from strategies.conversation import Conversation, Message

__all__ = ["Pairs", "clean_cuts", "clean_tail", "open_tail", "pair_up", "safe_cut"]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which calls and results belong together.

    Parameters
    ----------
    spans : tuple of (int, int)
        First and last message of what must not be parted.
    unanswered : tuple of int
        Messages with a call that has no result (yet).
    orphans : tuple of (int, str)
        Messages with a result whose call is nowhere, and the id that it names.
    """

    spans: tuple[tuple[int, int], ...]
    unanswered: tuple[int, ...]
    orphans: tuple[tuple[int, str], ...]


def pair_up(messages: Sequence[Message]) -> Pairs:
    """Return which messages hold together, in one pass.

    A log may hold a result's line before its call's, so that pairs are made in either order. An
    id that is used again belongs to its last call.
    """
    calls: dict[str, int] = {}
    waiting: dict[str, int] = {}
    early: dict[str, int] = {}
    groups: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        if message.group:
            spans.append((groups.setdefault(message.group, index), index))
        for part in message.parts:
            if part.kind == "tool_call":
                if part.id in early:
                    spans.append((early.pop(part.id), index))
                else:
                    waiting[part.id] = index
                calls[part.id] = index
            elif part.kind == "tool_result":
                if part.id in calls:
                    spans.append((calls[part.id], index))
                    waiting.pop(part.id, None)
                else:
                    early.setdefault(part.id, index)
            elif part.kind == "compaction":
                spans.append((index, len(messages)))
    orphans = tuple((index, name) for name, index in early.items())
    return Pairs(tuple(spans), tuple(sorted(set(waiting.values()))), orphans)


def clean_cuts(
    conversation: Conversation, *, within_turn: bool = False, past_compactions: bool = False
) -> list[int]:
    """Return the places k, ascending, before which the conversation may be cut.

    Parameters
    ----------
    conversation : Conversation
    within_turn : bool
        Whether the start of a response inside a turn counts, beside the prompts. Only for what
        puts a user message in front of the rest: providers refuse to begin with a response.
    past_compactions : bool
        Whether what lies before the cut may hold a provider's own summary. Only for what has the
        provider summarize it again.
    """
    messages = conversation.messages
    steps = [0] * (len(messages) + 2)
    for first, last in pair_up(messages).spans:
        if past_compactions and last == len(messages):
            continue
        # Cuts first < k ≤ last would part what belongs together.
        steps[first + 1] += 1
        steps[last + 1] -= 1
    head = conversation.head
    return [
        k
        for k, parted in enumerate(accumulate(steps[: len(messages)]))
        if k > head and not parted and _begins(messages, k, within_turn)
    ]


def _begins(messages: Sequence[Message], k: int, within_turn: bool) -> bool:
    if messages[k].is_prompt:
        # What an earlier compaction put there may stand in the middle of a turn.
        return not messages[k].is_synthetic
    if not within_turn or messages[k].role != "assistant":
        return False
    before = messages[k - 1]
    return before.role == "tool" or any(part.kind == "tool_result" for part in before.parts)


def safe_cut(
    conversation: Conversation,
    desired: int,
    *,
    within_turn: bool = False,
    past_compactions: bool = False,
) -> int:
    """Return the last clean cut at or before `desired`; 0 where there is none.

    The source of the rule walks back to a user message with text; this also makes sure of results
    that come later than the next prompt.
    """
    cuts = clean_cuts(conversation, within_turn=within_turn, past_compactions=past_compactions)
    return max((k for k in cuts if k <= desired), default=0)


def open_tail(conversation: Conversation) -> int:
    """Return where the response begins whose calls still wait for results; else the length.

    A call that a later prompt has overtaken will never be answered, and holds nothing back.
    """
    return _open_tail(conversation, pair_up(conversation.messages))


def clean_tail(conversation: Conversation) -> int | None:
    """Return `open_tail`; None where something that belongs together lies on both sides of it."""
    pairs = pair_up(conversation.messages)
    tail = _open_tail(conversation, pairs)
    return None if any(first < tail <= last for first, last in pairs.spans) else tail


def _open_tail(conversation: Conversation, pairs: Pairs) -> int:
    messages = conversation.messages
    last_prompt = conversation.last_where(lambda message: message.is_prompt)
    waiting = [index for index in pairs.unanswered if index > last_prompt]
    if not waiting:
        return len(messages)
    start = waiting[0]
    while start > 0 and messages[start - 1].role in ("assistant", "other"):
        start -= 1
    return start
