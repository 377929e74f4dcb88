"""Lines → ledger: some thousands in one transaction, each held against those before it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import Connection, Engine, select

from api.events import (
    RequestFacts,
    Row,
    compaction_event,
    end_event,
    finished_events,
    no_such_turn,
    refuse_other,
    refuse_other_compaction,
    refuse_other_owner,
    refuse_pruned,
    request_events,
    request_facts,
    turn_event,
)
from api.lines import (
    CompactionLine,
    EndLine,
    FinishedTurnLine,
    Line,
    RequestLine,
    TurnLine,
    line_of,
)
from compactuary.errors import InputError
from ledger.among import among
from ledger.collector import collector_paused
from ledger.database import writing
from ledger.events import Event, TurnReached, TurnStarted
from ledger.recording import record
from ledger.retention import pruned_before
from ledger.schema import compactions, requests, turns

__all__ = ["Outcome", "record_lines"]

#: What became of a line: taken, there already, or what is wrong with it.
Outcome = Literal["recorded", "known"] | InputError


def record_lines(engine: Engine, portion: Sequence[tuple[int, bytes]]) -> list[Outcome]:
    """Record lines in one transaction; one that is wrong is left out alone.

    Parameters
    ----------
    engine : Engine
    portion : sequence of (int, bytes)
        Numbered lines, some thousands at most.

    Returns
    -------
    list of Outcome
        ``recorded``, ``known`` for what the ledger had already, or what is wrong, by line.

    Raises
    ------
    LedgerError
        If the ledger can't be used: then nothing of the portion is recorded.
    """
    with collector_paused():
        read = [_read(raw) for _, raw in portion]
    with writing(engine) as connection, collector_paused():
        lines = _Lines(connection)
        lines.load([one for one in read if not isinstance(one, InputError)])
        outcomes = [one if isinstance(one, InputError) else lines.take(one) for one in read]
        lines.flush()
    return outcomes


#: A line; of a request also what can be worked out before the ledger is held.
_Read = tuple[RequestLine, RequestFacts] | tuple[Line, None]


def _read(raw: bytes) -> _Read | InputError:
    try:
        line = line_of(raw)
        return (line, request_facts(line)) if isinstance(line, RequestLine) else (line, None)
    except InputError as error:
        return error


_FACTS = (
    turns.c.turn_id,
    turns.c.session_id,
    turns.c.role,
    turns.c.model,
    turns.c.status,
    turns.c.last_ms,
    turns.c.tool_calls,
    turns.c.requests,
    turns.c.declared_tool_calls,
)


@dataclass(slots=True)
class _Lines:
    """Lines inside one transaction: held against what is known, and recorded together.

    ``turns``, ``owners`` and ``compactions`` are the ledger's as far as the lines touch it, and as
    the lines before leave them. Of turns in ``stale`` only recording will tell the totals, of those
    in ``unsettled`` also which of their ends stands.
    """

    connection: Connection
    turns: dict[str, dict[str, Any]] = field(default_factory=dict)
    owners: dict[str, str | None] = field(default_factory=dict)
    compactions: dict[str, Row] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    stale: set[str] = field(default_factory=set)
    unsettled: set[str] = field(default_factory=set)
    pruned_before_ms: int | None = None

    def load(self, read: Sequence[_Read]) -> None:
        """Read what the ledger has of all that the lines name."""
        lines = [line for line, _ in read]
        self.pruned_before_ms = pruned_before(self.connection)
        self._load_turns({line.turn_id for line in lines if line.turn_id})
        named = {line.request_id for line in lines if isinstance(line, RequestLine)}
        owned = select(requests.c.request_id, requests.c.turn_id)
        for request_id, owner in self.connection.execute(
            owned.where(among(self.connection, requests.c.request_id, named))
        ):
            self.owners[request_id] = owner
        named = {line.compaction_id for line in lines if isinstance(line, CompactionLine)}
        if named:
            told = select(compactions)
            for row in self.connection.execute(
                told.where(among(self.connection, compactions.c.compaction_id, named))
            ).mappings():
                self.compactions[row["compaction_id"]] = dict(row)

    def _load_turns(self, turn_ids: set[str]) -> None:
        found = select(*_FACTS).where(among(self.connection, turns.c.turn_id, turn_ids))
        for row in self.connection.execute(found).mappings():
            self.turns[row["turn_id"]] = dict(row)

    def flush(self) -> None:
        """Record the events that wait."""
        record(self.connection, self.events)
        self.events = []

    def take(self, read: _Read) -> Outcome:
        """Take the next line, or return what is wrong with it."""
        line, facts = read
        try:
            if isinstance(line, RequestLine):
                return self._request(line, facts or request_facts(line))
            if isinstance(line, TurnLine):
                return self._turn(line)
            if isinstance(line, EndLine):
                return self._end(line)
            if isinstance(line, FinishedTurnLine):
                return self._finished(line)
            return self._compaction(line)
        except InputError as error:
            return error

    def _fresh(self, turn_id: str) -> dict[str, Any]:
        """Return a turn as the lines before leave it, totals included."""
        if turn_id in self.stale:
            self.flush()
            for key in self.stale:
                self.turns.pop(key, None)
            self._load_turns(self.stale)
            self.stale.clear()
            self.unsettled.clear()
        return self._needed(turn_id)

    def _needed(self, turn_id: str) -> dict[str, Any]:
        known = self._fresh(turn_id) if turn_id in self.unsettled else self.turns.get(turn_id)
        if known is None:
            raise no_such_turn(turn_id)
        return known

    def _turn(self, line: TurnLine) -> Outcome:
        event = turn_event(line.turn_id, line)
        known = self.turns.get(line.turn_id)
        if known is not None:
            refuse_other(known, "session_id", line.session_id)
            refuse_other(known, "role", line.role)
            known["model"] = known["model"] or line.model
        else:
            refuse_pruned(self.pruned_before_ms, ("started_at", event.at_ms))
            self._begun(event)
        self.events.append(event)
        return "recorded" if known is None else "known"

    def _begun(self, event: TurnStarted) -> None:
        self.turns[event.turn_id] = {
            "session_id": event.session_id,
            "role": event.role,
            "model": event.model,
            "status": "open",
            "last_ms": event.at_ms,
            "declared_tool_calls": None,
        }
        self.stale.add(event.turn_id)

    def _request(self, line: RequestLine, facts: RequestFacts) -> Outcome:
        turn_id, owners = line.turn_id, self.owners
        known = self._needed(turn_id)
        new = line.request_id not in owners
        if not new:
            refuse_other_owner(owners[line.request_id], turn_id, line)
        made = request_events(turn_id, line, facts, known)
        owners[line.request_id] = made[-1].turn_id
        self.events += made
        self.stale.add(turn_id)
        return "recorded" if new else "known"

    def _end(self, line: EndLine) -> Outcome:
        known = self._needed(line.turn_id)
        event = end_event(line.turn_id, line, known)
        if event is None:
            return "known"
        again = known["status"] == line.status
        self._reached(known, event)
        return "known" if again else "recorded"

    def _reached(self, known: dict[str, Any], event: TurnReached) -> None:
        known["status"], known["last_ms"] = event.status, event.at_ms
        if event.tool_calls is not None:
            known["declared_tool_calls"] = event.tool_calls
        self.events.append(event)
        self.stale.add(event.turn_id)

    def _finished(self, line: FinishedTurnLine) -> Outcome:
        known = self._fresh(line.turn_id) if line.turn_id in self.turns else None
        if known is not None:
            refuse_other(known, "role", line.role)
            if line.session_id is not None:
                refuse_other(known, "session_id", line.session_id)
        session_id = known["session_id"] if known else line.session_id or line.turn_id
        started, reached = finished_events(line, session_id)
        told = known is not None and (known["status"], known["declared_tool_calls"]) == (
            line.status,
            line.tool_calls,
        )
        if known is None:
            times = ("started_at", started.at_ms), ("ended_at", reached.at_ms)
            refuse_pruned(self.pruned_before_ms, *times)
            self._begun(started)
        self.events += [started, reached]
        self.stale.add(line.turn_id)
        self.unsettled.add(line.turn_id)
        return "known" if told else "recorded"

    def _compaction(self, line: CompactionLine) -> Outcome:
        turn = self._fresh(line.turn_id) if line.turn_id else None
        told = self.compactions.get(line.compaction_id)
        refuse_other_compaction(line, turn, told)
        event = compaction_event(line, told or turn)
        self.events.append(event)
        if told is None:
            self.compactions[line.compaction_id] = {
                "session_id": event.session_id,
                "calls_before": event.calls_before,
                "requests_before": event.requests_before,
            }
        return "recorded" if told is None else "known"
