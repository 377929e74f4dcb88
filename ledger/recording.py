"""Events → rows: one transaction that leaves totals and histogram right, however often told."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from sqlalchemy import Connection, func, select

from ledger.among import among
from ledger.batch import LARGEST, Batch, Row, forked
from ledger.events import AgentTold, CompactionMade, Event, RequestMade, TurnStarted, thread_of
from ledger.histogram import apply_changes
from ledger.recount import recount_new, recount_stored
from ledger.retention import without_pruned
from ledger.schema import compactions, requests, threads, tool_calls, turns
from ledger.upsert import upsert
from ledger.versions import lock_version, set_version

__all__ = ["Recorded", "record", "record_each"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a batch of events added to the ledger."""

    turns: int = 0
    requests: int = 0
    compactions: int = 0
    changed_turns: int = 0
    #: Requests of turns nobody told of: copies that another session has been credited with.
    unplaced: int = 0
    #: Turns from before the time up to which the ledger was pruned.
    left_out: int = 0

    def __add__(self, other: "Recorded") -> "Recorded":
        return Recorded(
            self.turns + other.turns,
            self.requests + other.requests,
            self.compactions + other.compactions,
            self.changed_turns + other.changed_turns,
            self.unplaced + other.unplaced,
            self.left_out + other.left_out,
        )


def record(connection: Connection, events: Sequence[Event]) -> Recorded:
    """Write events in one transaction; telling them again changes nothing.

    Parameters
    ----------
    connection : Connection
        Inside a transaction that writes (:func:`ledger.database.writing`).
    events : sequence of Event
        In the order they happened; a few thousand at most.
    """
    return record_each(connection, [events])[0]


def record_each(connection: Connection, tellings: Sequence[Sequence[Event]]) -> list[Recorded]:
    """Write several tellings at once, as if :func:`record` were called with one after the other.

    Parameters
    ----------
    connection : Connection
        Inside a transaction that writes.
    tellings : sequence of sequence of Event
        The events of several files, say; a few thousand in all.

    Returns
    -------
    list of Recorded
        What each telling added. A turn that several changed counts for the last of them.
    """
    if not any(tellings):
        return [Recorded() for _ in tellings]
    version = lock_version(connection) + 1
    batch = _loaded(connection, list(chain.from_iterable(tellings)))
    tellings, left_out = without_pruned(connection, batch, tellings)
    known_requests = set(batch.turn_of_request)
    added = []
    for events in tellings:
        before = _tally(batch)
        batch.take(events)
        added.append(_difference(_tally(batch), before))
    recount_new(batch)
    news = _compactions_moved(connection, batch, known_requests)
    _write(connection, batch)
    stored = batch.touched.keys() & batch.before.keys()
    recount_stored(connection, {key: batch.turns[key] for key in stored})
    changed = batch.changed()
    if changed:
        known = {key: batch.before[key] for key in changed if key in batch.before}
        upsert(connection, turns, [changed[key] for key in known], replace=_TURN_FACTS)
        moved = apply_changes(connection, known, changed, version)
        opened = any(row["status"] == "open" for row in (*known.values(), *changed.values()))
        news = news or moved or opened
    if news:
        set_version(connection, version)
    changes = Counter(batch.touched[key] for key in changed)
    return [
        replace(told, changed_turns=changes[number], left_out=left_out[number])
        for number, told in enumerate(added)
    ]


def _tally(batch: Batch) -> Recorded:
    return Recorded(
        turns=batch.new_turns,
        requests=batch.new_requests,
        compactions=batch.new_compactions,
        unplaced=batch.unplaced,
    )


def _difference(now: Recorded, before: Recorded) -> Recorded:
    return Recorded(
        turns=now.turns - before.turns,
        requests=now.requests - before.requests,
        compactions=now.compactions - before.compactions,
        unplaced=now.unplaced - before.unplaced,
    )


@dataclass(slots=True)
class _Told:
    """Ids that events tell of."""

    turns: set[str]
    threads: set[str]
    requests: set[str]
    compactions: set[str]
    sessions: set[tuple[str, str]]
    #: Turns whose requests come without a position.
    unplaced_in: set[str]


def _told(events: Iterable[Event]) -> _Told:
    told = _Told(set(), set(), set(), set(), set(), set())
    for event in events:
        if isinstance(event, AgentTold):
            told.threads.add(thread_of(event.session_id, event.agent_id))
            told.turns.add(event.parent_turn_id or "")
            if event.parent_turn_id:
                told.sessions.add((event.parent_turn_id, event.session_id))
            continue
        told.sessions.add((event.turn_id or "", event.session_id))
        if isinstance(event, RequestMade):
            told.requests.add(event.request_id)
            if event.position is None:
                told.unplaced_in.add(event.turn_id or "")
        elif isinstance(event, TurnStarted):
            # Only sub-agents are told of by others; a session's own turns need not be read again.
            if event.thread_id != event.session_id:
                told.threads.add(event.thread_id)
        elif isinstance(event, CompactionMade):
            told.compactions.add(event.compaction_id)
    told.turns.update(turn_id for turn_id, _ in told.sessions)
    return told


def _loaded(connection: Connection, events: Iterable[Event]) -> Batch:
    """Read every row the events can touch."""
    told = _told(events)
    batch = Batch()
    _load_turns(connection, batch, among(connection, turns.c.turn_id, told.turns))
    _load_turns(connection, batch, among(connection, turns.c.thread_id, told.threads))
    forks = [
        pair
        for pair in told.sessions
        if batch.turns.get(pair[0], {}).get("session_id", pair[1]) != pair[1]
    ]
    if forks:
        _load_turns(
            connection, batch, among(connection, turns.c.turn_id, [forked(*pair) for pair in forks])
        )
        _load_stored_calls(connection, batch, {turn_id for turn_id, _ in forks})
    thread_ids = told.threads | {row["thread_id"] for row in batch.turns.values()}
    facts = select(*(threads.c[name] for name in _THREAD_FACTS))
    for row in connection.execute(facts.where(among(connection, threads.c.thread_id, thread_ids))):
        batch.threads[row.thread_id] = row._asdict()
    seen = select(requests.c.request_id, requests.c.turn_id)
    for request_id, turn_id in connection.execute(
        seen.where(among(connection, requests.c.request_id, told.requests))
    ):
        batch.turn_of_request[request_id] = turn_id
    _load_positions(connection, batch, told.unplaced_in)
    if told.compactions:
        kept = select(compactions.c.compaction_id)
        kept = kept.where(among(connection, compactions.c.compaction_id, told.compactions))
        batch.known_compactions.update(connection.scalars(kept))
    return batch


def _load_turns(connection: Connection, batch: Batch, where: Any) -> None:
    for found in connection.execute(select(turns).where(where)):
        batch.have(found._asdict())


def _load_positions(connection: Connection, batch: Batch, turn_ids: Collection[str]) -> None:
    """Read where the next request of each turn goes, of a turn's forks too."""
    if not turn_ids:
        return
    ids = set(turn_ids) | set(batch.turns)
    following = select(requests.c.turn_id, func.max(requests.c.position) + 1)
    following = following.where(among(connection, requests.c.turn_id, ids)).group_by(
        requests.c.turn_id
    )
    for turn_id, position in connection.execute(following):
        batch.next_position[turn_id] = position


def _load_stored_calls(connection: Connection, batch: Batch, turn_ids: Collection[str]) -> None:
    """Read the tool calls of each request of forked turns."""
    named = (
        select(func.count())
        .where(tool_calls.c.request_id == requests.c.request_id)
        .scalar_subquery()
    )
    found = connection.execute(
        select(
            requests.c.turn_id,
            requests.c.request_id,
            requests.c.position,
            named + requests.c.unnamed_tool_calls,
        ).where(among(connection, requests.c.turn_id, turn_ids))
    )
    for turn_id, request_id, position, made in found:
        batch.stored_calls.setdefault(turn_id, {})[request_id] = (position, made)


def _compactions_moved(
    connection: Connection, batch: Batch, known_requests: Collection[str]
) -> bool:
    """Say whether writing will tell something new of compactions, or of their own calls."""
    if batch.new_compactions:
        return True
    if any(
        row["kind"] == "compaction" and key not in known_requests
        for key, row in batch.requests.items()
    ):
        return True
    if not batch.compactions:
        return False
    stored = select(compactions).where(
        among(connection, compactions.c.compaction_id, batch.compactions)
    )
    return any(
        _tells_more(batch.compactions[row["compaction_id"]], row)
        for row in map(dict, connection.execute(stored).mappings())
    )


def _tells_more(told: Row, stored: Mapping[str, Any]) -> bool:
    if told["session_id"] != stored["session_id"]:
        return False
    filled = stored["context_after"] is None and told["context_after"] is not None
    return filled or any(told[name] != stored[name] for name in _REPLACED)


_REPLACED = ("turn_id", "calls_before", "requests_before")
_TURN_FACTS = [column.name for column in turns.columns if not column.primary_key]
_THREAD_FACTS = ("thread_id", "session_id", "role", "parent_turn_id", "done_status", "done_ms")


def _write(connection: Connection, batch: Batch) -> None:
    """Insert what is new, in the order the references between tables ask for."""
    upsert(connection, turns, [row for key, row in batch.turns.items() if key not in batch.before])
    told: list[Row] = [
        {name: batch.threads[key].get(name) for name in _THREAD_FACTS} for key in batch.told_threads
    ]
    upsert(connection, threads, told, replace=_THREAD_FACTS[2:])
    upsert(
        connection, requests, list(batch.requests.values()), largest=LARGEST, smallest=("at_ms",)
    )
    upsert(connection, tool_calls, list(batch.tool_calls.values()), smallest=("at_ms",))
    upsert(
        connection,
        compactions,
        list(batch.compactions.values()),
        replace=_REPLACED,
        fill=("context_after",),
        same="session_id",
    )
