"""What a reader or the service tells the ledger: five facts, each safe to tell twice."""

from dataclasses import dataclass, field

from ledger.usage import Usage

__all__ = [
    "UNKNOWN_SUBAGENT",
    "AgentTold",
    "CompactionMade",
    "Event",
    "RequestMade",
    "TurnReached",
    "TurnStarted",
    "thread_of",
]


#: Role of a sub-agent whose parent's log has not been seen; replaced once it has.
UNKNOWN_SUBAGENT = "unknown-subagent"


def thread_of(session_id: str, agent_id: str | None = None) -> str:
    """Return the id of an agent's line of work: the session, or the session and the sub-agent."""
    return f"{session_id}/agent-{agent_id}" if agent_id else session_id


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn began. The first telling of a ``turn_id`` stands; later ones fill what it left out.

    With ``on_request`` the turn is made only when a request comes with it that the ledger has not
    seen: the copied beginning of a forked session is no turn of its own.
    """

    turn_id: str
    session_id: str
    thread_id: str
    source: str
    role: str
    at_ms: int | None = None
    model: str | None = None
    provider: str | None = None
    parent_turn_id: str | None = None
    trigger: str | None = None
    entry_calls: int | None = 0
    entry_requests: int | None = 0
    on_request: bool = False


@dataclass(frozen=True, slots=True)
class RequestMade:
    """One model call and the tool calls its answer asked for.

    ``tool_calls`` are ``(id, name)`` pairs; ``unnamed_tool_calls`` counts calls that have no id.
    ``turn_id`` is None for the summarising call of a compaction.
    """

    request_id: str
    session_id: str
    turn_id: str | None
    position: int | None
    at_ms: int | None
    model: str | None
    usage: Usage
    tool_calls: tuple[tuple[str, str], ...] = ()
    unnamed_tool_calls: int = 0
    kind: str = "agent"


@dataclass(frozen=True, slots=True)
class TurnReached:
    """How a turn stands at ``at_ms``: open, ended or cut. The latest telling wins.

    ``tool_calls`` and ``requests`` are totals stated without rows of their own, where known.
    """

    turn_id: str
    session_id: str
    status: str
    reason: str | None
    at_ms: int | None
    tool_calls: int | None = None
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class AgentTold:
    """What a parent's log tells of a sub-agent: its role, and how it came to an end, if it did."""

    session_id: str
    agent_id: str
    source: str
    role: str | None
    parent_turn_id: str | None
    at_ms: int | None = None
    status: str | None = None
    tool_calls: int | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionMade:
    """A context was compacted; told again when the size after it has been seen."""

    compaction_id: str
    session_id: str
    turn_id: str | None
    at_ms: int | None
    trigger: str | None
    strategy: str = "summary"
    context_before: int | None = None
    context_after: int | None = None
    calls_before: int = field(default=0)
    requests_before: int = field(default=0)


Event = TurnStarted | RequestMade | TurnReached | AgentTold | CompactionMade
