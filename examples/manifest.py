"""What is truly in a generated tree, counted while it is written and not by reading it back."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

__all__ = ["CompactionTruth", "Manifest", "SessionTruth", "Tokens", "TurnTruth"]

Trigger = Literal["prompt", "task_notification", "agent"]
Status = Literal["ended", "interrupted", "failed", "in_flight"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one or more requests, each request once however many lines repeat its usage.

    The context of a request is ``uncached + cache_read + cache_write``.
    """

    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            self.uncached + other.uncached,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
        )

    @property
    def context(self) -> int:
        """Input tokens of any kind."""
        return self.uncached + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class TurnTruth:
    """One turn of a session or of one of its sub-agents.

    Parameters
    ----------
    session_id : str
        The session; a sub-agent's turn carries its parent's.
    agent_id : str or None
        The sub-agent whose turn it is; None for the session's own.
    role : str
        ``main``, or the sub-agent's type.
    model : str
        The model of the turn's requests.
    trigger : {'prompt', 'task_notification', 'agent'}
        What began it.
    status : {'ended', 'interrupted', 'failed', 'in_flight'}
        Every status but ``ended`` is a cut turn.
    started_at : str
        ISO 8601 time of the line that began it.
    tool_calls : int
        Distinct tool calls issued, answered or not.
    requests : int
        Model calls; synthetic lines and summaries of compactions are none.
    tokens : Tokens
        Sums over those requests.
    compactions : int
        Compactions inside the turn.
    """

    session_id: str
    agent_id: str | None
    role: str
    model: str
    trigger: Trigger
    status: Status
    started_at: str
    tool_calls: int
    requests: int
    tokens: Tokens
    compactions: int

    @property
    def ended(self) -> bool:
        """False for a cut turn."""
        return self.status == "ended"


@dataclass(frozen=True, slots=True)
class CompactionTruth:
    """One compaction of a session's own context.

    Parameters
    ----------
    session_id : str
        The session.
    turn : int or None
        Position of its turn among the session's own, from 0; None between turns.
    trigger : {'auto', 'manual'}
        As the boundary line says.
    pre_tokens : int
        The boundary line's ``preTokens``: context of the last request and what came after it.
    context_before, context_after : int
        Context of the last request before and of the first one after, in tokens; ``context_after``
        is 0 where no request followed.
    tool_calls_before : int
        Tool calls of the turn so far; 0 between turns.
    summary : Tokens
        The summarising request, which only the ``agent-acompact-*`` file shows.
    """

    session_id: str
    turn: int | None
    trigger: Literal["auto", "manual"]
    pre_tokens: int
    context_before: int
    context_after: int
    tool_calls_before: int
    summary: Tokens


@dataclass(slots=True)
class SessionTruth:
    """One session's share of the manifest, filled while the session is written."""

    session_id: str
    turns: list[TurnTruth] = field(default_factory=list)
    compactions: list[CompactionTruth] = field(default_factory=list)
    files: int = 0
    lines: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that a reader of the whole tree should find.

    Parameters
    ----------
    sessions, files, lines, size_bytes : int
        Sessions, JSONL files, their lines and bytes.
    turns : tuple of TurnTruth
        Per session in order of start, each sub-agent's turn before the end of its parent's.
    compactions : tuple of CompactionTruth
        Per session in order.
    """

    sessions: int
    files: int
    lines: int
    size_bytes: int
    turns: tuple[TurnTruth, ...]
    compactions: tuple[CompactionTruth, ...]

    @classmethod
    def of(cls, sessions: Iterable[SessionTruth]) -> "Manifest":
        """Add up the sessions of a tree."""
        found = list(sessions)
        return cls(
            sessions=len(found),
            files=sum(session.files for session in found),
            lines=sum(session.lines for session in found),
            size_bytes=sum(session.size_bytes for session in found),
            turns=tuple(chain.from_iterable(session.turns for session in found)),
            compactions=tuple(chain.from_iterable(session.compactions for session in found)),
        )

    @property
    def tool_calls(self) -> int:
        """Tool calls of all turns, those of sub-agents included."""
        return sum(turn.tool_calls for turn in self.turns)

    @property
    def requests(self) -> int:
        """Requests of all turns; summaries of compactions are not among them."""
        return sum(turn.requests for turn in self.turns)

    @property
    def tokens(self) -> Tokens:
        """Tokens of all those requests."""
        return sum((turn.tokens for turn in self.turns), Tokens())
