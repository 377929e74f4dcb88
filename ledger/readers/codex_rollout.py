"""Where the reader of a Codex rollout stands: plain data, stored where the file ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.readers.thread import Boundary
from ledger.readers.turn import MAIN, Turn

__all__ = ["Rollout", "uuid7_ms"]


@dataclass(slots=True)
class Rollout:
    """Where the reader stands in a rollout.

    ``total`` is the running total of tokens, ``context_tokens`` what the last request left behind,
    ``asked_ms`` and ``tools`` belong to the request whose usage has not come yet.
    """

    session_id: str
    agent_id: str | None = None
    role: str = MAIN
    identified: bool = False
    born_ms: int | None = None
    folder: str | None = None
    provider: str | None = None
    model: str | None = None
    turn: Turn | None = None
    #: Inside the copied history of another rollout.
    copied: bool = False
    #: Whether turns are marked by tasks, as all but old versions do.
    tasked: bool = False
    prompted: bool = False
    failed: bool = False
    total: int | None = None
    context_tokens: int | None = None
    asked_ms: int | None = None
    asking: bool = False
    tools: list[tuple[str, str]] = field(default_factory=list)
    unnamed_tools: int = 0
    boundary: Boundary | None = None
    #: A compaction at the very beginning of a task: the task may be nothing else.
    undecided: bool = False

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Rollout":
        """Rebuild a rollout from what the reader's ``flush`` made of it."""
        rollout = cls(**state)
        rollout.turn = Turn.restored(state["turn"])
        rollout.tools = [(tool_id, name) for tool_id, name in state["tools"]]
        rollout.boundary = Boundary(**state["boundary"]) if state["boundary"] else None
        return rollout


def uuid7_ms(told: str) -> int | None:
    """Return the time that a UUID of version 7 begins with, or None for any other id."""
    digits = told.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return int(digits[:12], 16)
    except ValueError:
        return None
