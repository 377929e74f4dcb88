"""Codex rollouts: what a log's lines leave in the context, as items of OpenAI Responses."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from strategies.raw_fields import size_of

__all__ = ["RolloutContext", "is_rollout", "rollout_context"]

_LINES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})


class RolloutContext(NamedTuple):
    """What a rollout's next request would send.

    Parameters
    ----------
    items : list
        OpenAI Responses items, each the very payload of its line.
    prefix_characters : int
        Of base instructions and tools, as the first header tells them.
    model : str or None
        Of the last turn; None where no line names one.
    """

    items: list[Any]
    prefix_characters: int
    model: str | None


def is_rollout(line: Any) -> bool:
    """Whether a parsed line is one of a rollout."""
    if not isinstance(line, Mapping) or not isinstance(line.get("payload"), Mapping):
        return False
    kind = line.get("type")
    return isinstance(kind, str) and kind in _LINES


def rollout_context(lines: Iterable[Any]) -> RolloutContext:
    """Return what is left in the context behind the last line.

    A compaction puts its replacement in the place of everything before it; turns that were rolled
    back are gone. Lines of other kinds are passed over.

    Parameters
    ----------
    lines : iterable
        Parsed lines, in the order of the file.
    """
    items: list[Any] = []
    # Where each turn begins among the items, which a roll-back goes back to.
    turns: list[int] = []
    prefix, model = 0, None
    for line in filter(is_rollout, lines):
        kind, payload = line["type"], line["payload"]
        if kind == "response_item":
            items.append(payload)
        elif kind == "compacted":
            told = payload.get("replacement_history")
            items = list(told) if isinstance(told, list) else []
            turns = [len(items)] * len(turns)
        elif kind == "turn_context":
            named = payload.get("model")
            model = named if isinstance(named, str) and named else model
        elif kind == "session_meta":
            prefix = prefix or _prefix_characters(payload)
        elif payload.get("type") == "task_started":
            turns.append(len(items))
        elif payload.get("type") == "thread_rolled_back":
            items, turns = _rolled_back(items, turns, payload.get("num_turns"))
    return RolloutContext(items, prefix, model)


def _rolled_back(items: list[Any], turns: list[int], told: object) -> tuple[list[Any], list[int]]:
    """Return what is left without the last turns; a count that nobody can read undoes none."""
    if not isinstance(told, int) or isinstance(told, bool) or told < 1 or not turns:
        return items, turns
    left = max(len(turns) - told, 0)
    return items[: turns[left]], turns[:left]


def _prefix_characters(header: Mapping[str, Any]) -> int:
    instructions = header.get("base_instructions")
    told = instructions.get("text") if isinstance(instructions, Mapping) else instructions
    return size_of(told) + size_of(header.get("dynamic_tools"))
