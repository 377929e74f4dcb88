"""OpenCode sessions as ``opencode export`` writes them: one document → ledger events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.events import UNKNOWN_SUBAGENT, AgentTold, Event, RequestMade, thread_of
from ledger.readers.epoch import epoch_ms
from ledger.readers.fields import text, text_or_none
from ledger.readers.thread import Boundary
from ledger.readers.turn import MAIN, Turn, boundary_in, compaction_made, project_role
from ledger.usage import Usage
from ledger.usage_conventions import CONVENTIONS

__all__ = ["HARNESS", "is_session", "opencode_events"]

HARNESS = "opencode"
#: How a message finishes after which the agent goes on.
_GOES_ON = (None, "unknown", "tool-calls")
_ABORTED = "MessageAbortedError"
Message = Mapping[str, Any]


def is_session(value: object) -> bool:
    """Say whether a JSON object is an exported session."""
    if not isinstance(value, dict):
        return False
    info = value.get("info")
    named = isinstance(info, dict) and str(info.get("id")).startswith("ses")
    return named and isinstance(value.get("messages"), list)


def opencode_events(
    documents: Iterable[Mapping[str, Any]], _log: Path, *, role_by_project: bool = False
) -> Iterator[Event]:
    """Yield the events of exported sessions.

    Parameters
    ----------
    documents : iterable of mapping
        Exported sessions.
    role_by_project : bool, default False
        Prefix every role with the name of the folder the agent worked in.

    Raises
    ------
    InputError
        Naming the field, if a value is not what it must be.
    """
    for document in documents:
        yield from _Session(document["info"], by_project=role_by_project).events(
            document["messages"]
        )


@dataclass(slots=True)
class _Session:
    """A session while its messages are gone through."""

    info: Mapping[str, Any]
    by_project: bool
    own_id: str = ""
    session_id: str = ""
    agent_id: str | None = None
    born_ms: int | None = None
    #: Turns by the user messages that belong to them.
    turns: dict[str, Turn] = field(default_factory=dict)
    current: Turn | None = None
    boundary: Boundary | None = None
    #: The message that asks for a compaction: whether by itself, and whether the window was full.
    asked: Mapping[str, Any] | None = None
    resuming: bool = False
    replayed: bool = False
    context_tokens: int | None = None

    def __post_init__(self) -> None:
        self.own_id = text(self.info["id"], "info.id")
        parent = text_or_none(self.info.get("parentID"), "info.parentID")
        self.session_id = parent or self.own_id
        self.agent_id = self.own_id if parent else None
        self.born_ms = _time(self.info, "created")

    def events(self, messages: Sequence[Message]) -> Iterator[Event]:
        for message in {message["info"]["id"]: message for message in messages}.values():
            info, parts = message["info"], message.get("parts") or ()
            created_ms = _time(info, "created")
            if self.born_ms is not None and created_ms is not None and created_ms < self.born_ms:
                continue  # a fork begins with the messages of the session it was forked from
            if info["role"] == "user":
                self._user(info, parts, created_ms)
            elif info.get("summary") is True or info.get("agent") == "compaction":
                yield from self._summary(info)
            else:
                yield from self._assistant(info, parts)
        if self.boundary is not None:
            yield compaction_made(self.boundary, self.session_id)
        for turn in {turn.turn_id: turn for turn in self.turns.values() if turn.told}.values():
            if turn is not self.current and turn.status == "open":
                turn.reach("cut", "superseded", None)
            yield turn.reached(tool_calls=turn.calls)

    def _user(self, info: Message, parts: Sequence[Mapping[str, Any]], at_ms: int | None) -> None:
        message_id = text(info["id"], "message.id")
        asked = next((part for part in parts if part.get("type") == "compaction"), None)
        if asked is not None:
            self.asked = {"id": message_id, "auto": bool(asked.get("auto")), "at_ms": at_ms}
            self.replayed = bool(asked.get("overflow"))
            return
        if self.resuming and self.current is not None and (self.replayed or _synthetic(parts)):
            # What the agent goes on with after a compaction is the turn's own.
            self.turns[message_id] = self.current
        else:
            self._begin(message_id, info, at_ms)
        self.resuming = False

    def _begin(
        self, turn_id: str, info: Message, at_ms: int | None, *, from_its_start: bool = True
    ) -> Turn:
        agent = text_or_none(self.info.get("agent") or info.get("agent"), "info.agent")
        turn = Turn(
            turn_id=turn_id,
            session_id=self.session_id,
            thread_id=thread_of(self.session_id, self.agent_id),
            source=HARNESS,
            role=self._role((agent or UNKNOWN_SUBAGENT) if self.agent_id else MAIN),
            at_ms=at_ms,
            trigger="prompt" if from_its_start else "unknown",
            from_its_start=from_its_start,
        )
        self.turns[turn_id] = self.current = turn
        return turn

    def _role(self, role: str) -> str:
        return project_role(role, self.info.get("directory"), by_project=self.by_project)

    def _summary(self, info: Message) -> Iterator[Event]:
        """Take the summarising call, and the compaction that it completes."""
        if info.get("finish") in _GOES_ON or info.get("error"):
            return
        usage = _usage(info)
        yield RequestMade(
            request_id=text(info["id"], "message.id"),
            session_id=self.session_id,
            turn_id=None,
            position=0,
            at_ms=_time(info, "created"),
            model=text_or_none(info.get("modelID"), "message.modelID"),
            usage=usage,
            kind="compaction",
        )
        if self.boundary is not None:
            yield compaction_made(self.boundary, self.session_id)
        asked = self.asked or {"id": info["id"], "auto": True, "at_ms": _time(info, "created")}
        inside = self.current is not None and asked["auto"]
        self.boundary = boundary_in(
            self.current if inside else None,
            asked["id"],
            asked["at_ms"],
            trigger="auto" if asked["auto"] else "manual",
            context_before=self.context_tokens or usage.context_tokens,
        )
        if inside and self.current is not None:
            self.turns[asked["id"]] = self.current
        self.asked, self.resuming = None, bool(inside)

    def _assistant(self, info: Message, parts: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        parent = text(info.get("parentID") or info["id"], "message.parentID")
        turn = self.turns.get(parent)
        if turn is None:
            turn = self._begin(parent, info, _time(info, "created"), from_its_start=False)
        self.resuming = False
        usage = _usage(info)
        tools = tuple(_tool(part) for part in parts if part.get("type") == "tool")
        if not turn.told:
            turn.model = text_or_none(info.get("modelID"), "message.modelID")
            turn.provider = text_or_none(info.get("providerID"), "message.providerID")
            yield turn.started()
        turn.calls += len(tools)
        if info.get("finish") is not None or usage != Usage():
            yield from self._answered(turn, info, usage, tools)
        else:
            turn.requests += 1  # its usage is not known, or not yet
        yield from self._agents(turn, parts)
        self._reach(turn, info)

    def _answered(
        self, turn: Turn, info: Message, usage: Usage, tools: tuple[tuple[str, str], ...]
    ) -> Iterator[Event]:
        turn.model = text_or_none(info.get("modelID"), "message.modelID") or turn.model
        request_id = text(info["id"], "message.id")
        yield turn.request(request_id, _time(info, "created"), usage, tools)
        self.context_tokens = usage.context_tokens + usage.output
        if self.boundary is not None:
            self.boundary.context_after = usage.context_tokens
            yield compaction_made(self.boundary, self.session_id)
            self.boundary = None

    def _reach(self, turn: Turn, info: Message) -> None:
        """Take how a message leaves its turn."""
        at_ms = _time(info, "completed") or _time(info, "created")
        error, finish = info.get("error"), info.get("finish")
        if error:
            aborted = error.get("name") == _ABORTED
            turn.reach("cut", "interrupted" if aborted else "api_error", at_ms)
        elif finish in _GOES_ON:
            turn.reach("open", "in_flight", at_ms)
        elif finish == "stop":
            turn.reach("ended", "final_text", at_ms)
        else:
            turn.reach("cut", text(finish, "message.finish"), at_ms)

    def _agents(self, turn: Turn, parts: Sequence[Mapping[str, Any]]) -> Iterator[Event]:
        """Tell of the sub-agents that tasks ran, each a session of its own."""
        for part in parts:
            if part.get("type") != "tool" or part.get("tool") != "task":
                continue
            state = part.get("state") or {}
            told = (state.get("metadata") or {}).get("sessionId")
            agent_id = text_or_none(told, "state.metadata.sessionId")
            if agent_id is None:
                continue
            asked = (state.get("input") or {}).get("subagent_type")
            role = text_or_none(asked, "state.input.subagent_type")
            ended = {"completed": "ended", "error": "cut"}.get(state.get("status") or "")
            yield AgentTold(
                session_id=self.own_id,
                agent_id=agent_id,
                source=HARNESS,
                role=self._role(role) if role else None,
                parent_turn_id=turn.turn_id,
                at_ms=_time(state, "end") if ended else None,
                status=ended,
            )


def _time(info: Mapping[str, Any], name: str) -> int | None:
    return epoch_ms((info.get("time") or {}).get(name), f"time.{name}")


def _usage(info: Message) -> Usage:
    return CONVENTIONS["opencode"](info.get("tokens") or {})


def _tool(part: Mapping[str, Any]) -> tuple[str, str]:
    name = text_or_none(part.get("tool"), "part.tool") or "unknown"
    return text(part.get("callID") or part.get("id"), "part.callID"), name


def _synthetic(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether nobody wrote a message: OpenCode did, to go on after a compaction."""
    texts = [part for part in parts if part.get("type") == "text"]
    return bool(texts) and all(part.get("synthetic") for part in texts)
