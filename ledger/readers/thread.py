"""Where a reader stands in an agent's line of work.

A thread is plain data, so that it can be stored when a file ends in the middle of a turn, or of a
message, and taken up where the next bytes begin.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.events import thread_of
from ledger.usage import Usage

__all__ = ["FINISHED", "Boundary", "OpenRequest", "Thread"]

#: The file of the summarising call of a compaction is named like a sub-agent's, and is none.
COMPACTION_AGENT = "acompact"
#: What a turn did last that shows it finished, and the reason told for it.
FINISHED = {"text": "final_text", "ended": "tool_ended_turn", "stopped": "stopped"}


@dataclass(slots=True)
class OpenRequest:
    """The request whose lines are still coming in."""

    request_id: str
    turn_id: str | None
    position: int
    at_ms: int | None
    model: str | None
    usage: Usage = field(default_factory=Usage)
    raw_usage: Mapping[str, Any] | None = None
    tools: list[tuple[str, str]] = field(default_factory=list)
    #: Whether lines read before others came in between asked for tools.
    asked_before: bool = False

    @property
    def asks(self) -> bool:
        """Whether the answer asks for tools, so that another request must follow."""
        return self.asked_before or bool(self.tools)


@dataclass(slots=True)
class Boundary:
    """A compaction whose size after it has not been seen yet."""

    compaction_id: str
    turn_id: str | None
    at_ms: int | None
    trigger: str | None
    strategy: str
    context_before: int | None
    calls_before: int
    requests_before: int
    prompt_id: str | None
    settled: bool = False
    context_after: int | None = None


@dataclass(slots=True)
class Thread:
    """Where the reader stands in one agent's line of work.

    ``last`` names what the turn did last: ``prompt thinking text tool_use tool_result ended
    stopped interrupted api_error``. A prompt waits in ``prompt_*`` until its first request:
    prompts that cause none (built-in commands) are no turns.
    """

    session_id: str
    agent_id: str | None = None
    turn_id: str | None = None
    turns_begun: int = 0
    last: str = ""
    last_ms: int | None = None
    prompt_id: str | None = None
    prompt_ms: int | None = None
    prompt_trigger: str = "prompt"
    scheduled: bool = False
    calls: int = 0
    requests: int = 0
    request: OpenRequest | None = None
    #: Position, turn and whether tools were asked for, of the last messages by id.
    recent: dict[str, tuple[int, str | None, bool]] = field(default_factory=dict)
    boundary: Boundary | None = None
    started: dict[str, Any] | None = None
    tasks: dict[str, str] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Thread":
        """Rebuild a thread from what the reader's ``flush`` made of it."""
        thread = cls(**state)
        if state["request"]:
            request = OpenRequest(**state["request"])
            request.usage = Usage(**state["request"]["usage"])
            request.tools = [(tool_id, name) for tool_id, name in request.tools]
            thread.request = request
        if state["boundary"]:
            thread.boundary = Boundary(**state["boundary"])
        thread.recent = {key: tuple(value) for key, value in state["recent"].items()}
        return thread

    @property
    def thread_id(self) -> str:
        """The ledger's id of this thread."""
        return thread_of(self.session_id, self.agent_id)

    @property
    def compacting(self) -> bool:
        """Whether this is the summarising call of a compaction."""
        return bool(self.agent_id) and str(self.agent_id).startswith(COMPACTION_AGENT)

    @property
    def standing(self) -> tuple[str, str]:
        """Status of the current turn and the reason for it."""
        if self.last in FINISHED:
            return "ended", FINISHED[self.last]
        if self.last in ("interrupted", "api_error"):
            return "cut", self.last
        return ("cut", "superseded") if self.prompt_id else ("open", "in_flight")

    def is_past(self, at_ms: int | None) -> bool:
        """Whether a line of this time was written late, or by an older copy of the log."""
        return at_ms is not None and self.last_ms is not None and at_ms < self.last_ms
