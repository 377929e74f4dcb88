"""Rows of the ledger as a batch of events leaves them; no database in sight."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.events import (
    UNKNOWN_SUBAGENT,
    AgentTold,
    CompactionMade,
    Event,
    RequestMade,
    TurnReached,
    TurnStarted,
    thread_of,
)
from ledger.schema import turns

__all__ = ["LARGEST", "Batch", "Row", "forked"]

Row = dict[str, Any]
_NO_TURN: Row = dict.fromkeys(column.name for column in turns.columns)
#: What of a request told twice is the larger of both. Of the times the earlier one stands, since
#: logs that embed another one tell later of the same; everything else is as it was told first.
LARGEST = ("output", "reasoning", "unnamed_tool_calls")


#: Reason of a sub-agent's end that only its parent's log tells of.
PARENT_TOLD = "parent_told"


def forked(turn_id: str | None, session_id: str) -> str:
    """Return the id of the turn by which a forked session goes on with another session's turn."""
    return f"{turn_id}@{session_id}"


def _before(at_ms: int | None, other_ms: int | None) -> bool:
    return at_ms is not None and other_ms is not None and at_ms < other_ms


def _earlier(at_ms: int | None, other_ms: int | None) -> int | None:
    return other_ms if at_ms is None or _before(other_ms, at_ms) else at_ms


@dataclass(slots=True)
class Batch:
    """Rows as the events leave them, and what the ledger had before.

    The caller fills in what the ledger has of the rows that the events can touch, and lets the
    batch take the events one telling (a file) after the other.

    Parameters
    ----------
    turns, before : dict
        Turns by id as they stand now, and as the ledger has them.
    threads : dict
        Agents' lines of work by id: what their parents told.
    turn_of_request : dict
        The turn of each request the ledger has.
    next_position : dict
        By turn, the place of its next request.
    stored_calls : dict
        By forked turn, its stored requests: ``request_id -> (position, tool calls)``.
    known_compactions : set
        Ids the ledger has.
    """

    turns: dict[str, Row] = field(default_factory=dict)
    before: dict[str, Row] = field(default_factory=dict)
    threads: dict[str, Row] = field(default_factory=dict)
    turn_of_request: dict[str, str | None] = field(default_factory=dict)
    next_position: dict[str, int] = field(default_factory=dict)
    stored_calls: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    known_compactions: set[str] = field(default_factory=set)

    #: What the events add: requests by id, tool calls by request and id, compactions by id.
    requests: dict[str, Row] = field(default_factory=dict)
    tool_calls: dict[tuple[str, str], Row] = field(default_factory=dict)
    compactions: dict[str, Row] = field(default_factory=dict)
    #: Threads whose facts changed, and turns with the telling that touched them last.
    told_threads: set[str] = field(default_factory=set)
    touched: dict[str, int] = field(default_factory=dict)
    #: Requests of turns nobody told of: copies that another session has been credited with.
    unplaced: int = 0
    new_requests: int = 0
    new_turns: int = 0
    new_compactions: int = 0

    _telling: int = -1
    _waiting: dict[str, TurnStarted] = field(default_factory=dict)
    _of_thread: dict[str, dict[str, Row]] = field(default_factory=dict)
    _unsettled: set[str] = field(default_factory=set)

    def have(self, row: Row) -> None:
        """Take a turn that the ledger has."""
        if row["turn_id"] not in self.turns:
            self.before[row["turn_id"]] = dict(row)
            self._put(row)

    def take(self, events: Sequence[Event]) -> None:
        """Take the events of one telling, in the order they happened."""
        self._telling += 1
        self._waiting.clear()
        for event in events:
            if isinstance(event, RequestMade):
                self._request(event)
            elif isinstance(event, TurnStarted):
                self._turn(event)
            elif isinstance(event, TurnReached):
                self._reached(event)
            elif isinstance(event, AgentTold):
                self._agent(event)
            else:
                self._compaction(event)
        for thread_id in self._unsettled:
            self._settle(thread_id)
        self._unsettled.clear()

    def changed(self) -> dict[str, Row]:
        """Return the turns that are new or differ from what the ledger had."""
        return {key: self.turns[key] for key in self.touched if self._differs(key)}

    def _differs(self, turn_id: str) -> bool:
        return self.before.get(turn_id) != self.turns[turn_id]

    def _put(self, row: Row) -> None:
        self.turns[row["turn_id"]] = row
        self._of_thread.setdefault(row["thread_id"], {})[row["turn_id"]] = row

    def _touch(self, row: Row) -> None:
        self.touched[row["turn_id"]] = self._telling
        if row["thread_id"] != row["session_id"]:
            self._unsettled.add(row["thread_id"])

    def _own(self, turn_id: str | None, session_id: str) -> Row | None:
        """Return the session's row of a turn: the turn's own, or a fork's continuation of it."""
        row = self.turns.get(turn_id or "")
        if row is not None and row["session_id"] != session_id:
            return self.turns.get(forked(turn_id, session_id))
        return row

    # Turns.

    def _turn(self, event: TurnStarted) -> None:
        row = self.turns.get(event.turn_id)
        if row is None:
            if event.on_request:
                self._waiting[event.turn_id] = event
            else:
                self._create(event)
        elif row["session_id"] == event.session_id:
            for name in ("model", "provider", "parent_turn_id", "trigger"):
                row[name] = row[name] or getattr(event, name)
            if row["started_ms"] is None:
                row["started_ms"] = event.at_ms
            self._touch(row)

    def _create(self, event: TurnStarted, *, last_ms: int | None = None) -> Row:
        thread = self.threads.get(event.thread_id, {})
        role = event.role
        if role.endswith(UNKNOWN_SUBAGENT) and thread.get("role"):
            role = thread["role"]
        row: Row = _NO_TURN | {
            "turn_id": event.turn_id,
            "session_id": event.session_id,
            "thread_id": event.thread_id,
            "source": event.source,
            "role": role,
            "model": event.model,
            "provider": event.provider,
            "parent_turn_id": event.parent_turn_id or thread.get("parent_turn_id"),
            "trigger": event.trigger,
            "started_ms": event.at_ms,
            "last_ms": event.at_ms if last_ms is None else last_ms,
            "status": "open",
            "entry_calls": event.entry_calls,
            "entry_requests": event.entry_requests,
            "tool_calls": 0,
            "asked_for_tools": False,
        }
        self._put(row)
        self._touch(row)
        self.new_turns += 1
        return row

    def _reached(self, event: TurnReached) -> None:
        row = self._own(event.turn_id, event.session_id)
        if row is None:
            return
        self._touch(row)
        if event.tool_calls is not None:
            row["declared_tool_calls"] = event.tool_calls
        if event.requests is not None:
            row["declared_requests"] = event.requests
        # A parent hears of the end a moment later; what the agent's own log tells stands above it.
        told_by_itself = row["reason"] != PARENT_TOLD
        if told_by_itself and _before(event.at_ms, row["last_ms"]):
            return  # an older copy of the log
        row["status"], row["reason"] = event.status, event.reason
        row["last_ms"] = event.at_ms if event.at_ms is not None else row["last_ms"]

    # Requests, and the turns they call for.

    def _request(self, event: RequestMade) -> None:
        known = event.request_id in self.turn_of_request
        if known:
            turn_id = self.turn_of_request[event.request_id]
            ours = turn_id in (event.turn_id, forked(event.turn_id, event.session_id))
        elif event.turn_id is None:
            turn_id, ours = None, True
        else:
            row = self._own(event.turn_id, event.session_id) or self._row_for(event)
            if row is None:
                self.unplaced += 1
                return
            turn_id, ours = row["turn_id"], True
        self.new_requests += not known
        self.turn_of_request[event.request_id] = turn_id
        self._add_request(event, turn_id, self._position(event, turn_id, known), ours=ours)
        if turn_id in self.turns:
            self._touch(self.turns[turn_id])

    def _position(self, event: RequestMade, turn_id: str | None, known: bool) -> int:
        key = turn_id or ""
        following = self.next_position.get(key, 0)
        position = following if event.position is None else event.position
        if not known:
            self.next_position[key] = max(following, position + 1)
        return position

    def _row_for(self, event: RequestMade) -> Row | None:
        """Make the row a new request calls for: its turn, or its session's fork of the turn."""
        turn_id = event.turn_id or ""
        origin = self.turns.get(turn_id)
        if origin is None:
            started = self._waiting.pop(turn_id, None)
            # Unknown turns are copies whose calls another session has already been credited with.
            return self._create(started) if started else None
        made = event.position or 0
        return self._create(
            TurnStarted(
                turn_id=forked(turn_id, event.session_id),
                session_id=event.session_id,
                thread_id=event.session_id,
                source=origin["source"],
                role=origin["role"],
                at_ms=event.at_ms,
                model=event.model,
                provider=origin["provider"],
                trigger="fork",
                entry_calls=self._calls_before(turn_id, made),
                entry_requests=made,
            )
        )

    def _calls_before(self, turn_id: str, position: int) -> int:
        """Count the tool calls of a turn's requests before a position, stored and just told."""
        counted = dict(self.stored_calls.get(turn_id, {}))
        named: dict[str, int] = {}
        for request_id, _ in self.tool_calls:
            named[request_id] = named.get(request_id, 0) + 1
        for request_id, row in self.requests.items():
            if row["turn_id"] == turn_id:
                stored = counted.get(request_id, (row["position"], 0))
                told = named.get(request_id, 0) + row["unnamed_tool_calls"]
                counted[request_id] = (stored[0], max(stored[1], told))
        return sum(calls for place, calls in counted.values() if place < position)

    def _add_request(
        self, event: RequestMade, turn_id: str | None, position: int, *, ours: bool
    ) -> None:
        usage = event.usage
        row: Row = {
            "request_id": event.request_id,
            "session_id": event.session_id,
            "turn_id": turn_id,
            "position": position,
            "at_ms": event.at_ms,
            "kind": event.kind,
            "model": event.model,
            "uncached": usage.uncached,
            "cache_read": usage.cache_read,
            "cache_write_5m": usage.cache_write_5m,
            "cache_write_30m": usage.cache_write_30m,
            "cache_write_1h": usage.cache_write_1h,
            "cache_write_12h": usage.cache_write_12h,
            "cache_write_other": usage.cache_write_other,
            "output": usage.output,
            "reasoning": usage.reasoning,
            "unnamed_tool_calls": event.unnamed_tool_calls if ours else 0,
        }
        told = self.requests.setdefault(event.request_id, row)
        if told is not row:
            for name in LARGEST:
                told[name] = max(told[name], row[name])
            told["at_ms"] = _earlier(told["at_ms"], event.at_ms)
        if turn_id is not None and ours:
            for tool_call_id, name in event.tool_calls:
                call: Row = {
                    "request_id": event.request_id,
                    "tool_call_id": tool_call_id,
                    "turn_id": turn_id,
                    "name": name,
                    "at_ms": event.at_ms,
                }
                known = self.tool_calls.setdefault((event.request_id, tool_call_id), call)
                if known is not call:
                    known["at_ms"] = _earlier(known["at_ms"], event.at_ms)

    # Sub-agents, as their parents tell of them.

    def _agent(self, event: AgentTold) -> None:
        parent_id = event.parent_turn_id
        if parent_id in self.turns and self._own(parent_id, event.session_id) is None:
            return  # the copied beginning of a fork tells of the original's agents
        thread_id = thread_of(event.session_id, event.agent_id)
        thread = self.threads.setdefault(
            thread_id, {"thread_id": thread_id, "session_id": event.session_id}
        )
        self.told_threads.add(thread_id)
        self._unsettled.add(thread_id)
        thread["role"] = thread.get("role") or event.role
        thread["parent_turn_id"] = thread.get("parent_turn_id") or event.parent_turn_id
        if event.status:
            thread["done_status"], thread["done_ms"] = event.status, event.at_ms
        own = list(self._of_thread.get(thread_id, {}).values())
        if event.tool_calls is not None and len(own) <= 1:
            row = own[0] if own else self._stated(event, thread_id)
            row["declared_tool_calls"] = event.tool_calls
            self._touch(row)

    def _stated(self, event: AgentTold, thread_id: str) -> Row:
        """Make the row of a sub-agent that only its parent's log tells of."""
        started = TurnStarted(
            turn_id=thread_id,
            session_id=event.session_id,
            thread_id=thread_id,
            source=event.source,
            role=event.role or UNKNOWN_SUBAGENT,
            model=event.model,
            trigger="prompt",
        )
        return self._create(started, last_ms=event.at_ms)

    def _settle(self, thread_id: str) -> None:
        """Give a sub-agent's turns the role and the end that its parent told of."""
        thread = self.threads.get(thread_id)
        if thread is None:
            return
        for row in self._of_thread.get(thread_id, {}).values():
            self.touched[row["turn_id"]] = self._telling
            if row["role"].endswith(UNKNOWN_SUBAGENT) and thread.get("role"):
                row["role"] = thread["role"]
            row["parent_turn_id"] = row["parent_turn_id"] or thread.get("parent_turn_id")
            done_status, done_ms = thread.get("done_status"), thread.get("done_ms")
            if row["status"] == "open" and done_status and not _before(done_ms, row["last_ms"]):
                row["status"], row["reason"] = done_status, PARENT_TOLD
                row["last_ms"] = done_ms or row["last_ms"]

    # Compactions.

    def _compaction(self, event: CompactionMade) -> None:
        row = self._own(event.turn_id, event.session_id)
        turn_id = row["turn_id"] if row else event.turn_id
        told = self.compactions.get(event.compaction_id)
        if told is not None:
            if told["session_id"] == event.session_id:
                told["turn_id"] = turn_id
                told["calls_before"] = event.calls_before
                told["requests_before"] = event.requests_before
                if told["context_after"] is None:
                    told["context_after"] = event.context_after
            return
        self.new_compactions += event.compaction_id not in self.known_compactions
        self.compactions[event.compaction_id] = {
            "compaction_id": event.compaction_id,
            "session_id": event.session_id,
            "turn_id": turn_id,
            "at_ms": event.at_ms,
            "trigger": event.trigger,
            "strategy": event.strategy,
            "context_before": event.context_before,
            "context_after": event.context_after,
            "calls_before": event.calls_before,
            "requests_before": event.requests_before,
        }
