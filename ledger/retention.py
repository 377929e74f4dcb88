"""What pruning has taken out of the ledger is not let in again by the logs that tell of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, or_, select, union_all, update

from ledger.batch import Batch
from ledger.events import (
    AgentTold,
    Event,
    RequestMade,
    TurnReached,
    TurnStarted,
    thread_of,
)
from ledger.schema import ledger_version, sources
from ledger.upsert import upsert

__all__ = ["pruned_before", "set_pruned_before", "without_pruned"]

#: The row of ``sources`` where workers of the version before look for the time, and tell it. It is
#: read and written beside the column until no such worker can be left.
_PLACE = "pruned:"


def pruned_before(connection: Connection) -> int | None:
    """Return the time before which turns were pruned, or None where none ever were."""
    told = union_all(
        select(ledger_version.c.pruned_before_ms.label("before_ms")),
        select(sources.c.offset).where(sources.c.path == _PLACE),
    ).subquery()
    before_ms: int | None = connection.scalar(select(func.max(told.c.before_ms)))
    return before_ms


def set_pruned_before(connection: Connection, before_ms: int) -> None:
    """Remember that turns from before a time are gone; an earlier time than known says nothing."""
    known = ledger_version.c.pruned_before_ms
    connection.execute(
        update(ledger_version)
        .where(or_(known.is_(None), known < before_ms))
        .values(pruned_before_ms=before_ms)
    )
    row = {"path": _PLACE, "size": 0, "mtime_ns": 0, "lines": 0, "fingerprint": ""}
    upsert(connection, sources, [{**row, "offset": before_ms}], largest=("offset",))


def without_pruned(
    connection: Connection, batch: Batch, tellings: Sequence[Sequence[Event]]
) -> tuple[Sequence[Sequence[Event]], list[int]]:
    """Leave out what was pruned, or would have been: it is counted already, and would be twice.

    Parameters
    ----------
    connection : Connection
    batch : Batch
        What the ledger has of all that the events name.
    tellings : sequence of sequence of Event

    Returns
    -------
    tellings : sequence of sequence of Event
        What is left of each.
    left_out : list of int
        Turns that were left out of each.
    """
    none = [0] * len(tellings)
    if not any(_may_be_gone(event, batch) for events in tellings for event in events):
        return tellings, none
    before_ms = pruned_before(connection)
    if before_ms is None:
        return tellings, none
    gone = _Gone.among(tellings, batch, before_ms)
    kept = [[event for event in events if not gone.holds(event)] for events in tellings]
    return kept, [len(_begun([events]) & gone.turns) for events in tellings]


def _may_be_gone(event: Event, batch: Batch) -> bool:
    """Say whether the ledger does not have what the event tells of, and it has a time."""
    if event.at_ms is None:
        return False
    if isinstance(event, AgentTold):
        return event.parent_turn_id not in batch.turns
    return event.turn_id not in batch.turns


def _begun(tellings: Sequence[Sequence[Event]]) -> set[str]:
    return {one.turn_id for events in tellings for one in events if isinstance(one, TurnStarted)}


def _times(tellings: Sequence[Sequence[Event]]) -> Iterator[tuple[str, int]]:
    for events in tellings:
        for event in events:
            if isinstance(event, TurnStarted | TurnReached) and event.at_ms is not None:
                yield event.turn_id, event.at_ms


@dataclass(frozen=True, slots=True)
class _Gone:
    """What is gone: turns that the ledger does not have and that began before it was pruned.

    ``turns`` are those that events name, ``known`` all others; ``threads`` are of known ones.
    """

    before_ms: int
    turns: set[str]
    known: set[str]
    threads: set[str]
    batch: Batch

    @classmethod
    def among(cls, tellings: Sequence[Sequence[Event]], batch: Batch, before_ms: int) -> "_Gone":
        gone = {
            turn_id
            for turn_id, at_ms in _times(tellings)
            if at_ms < before_ms and turn_id not in batch.turns
        }
        known = _begun(tellings) - gone | batch.turns.keys()
        threads = {row["thread_id"] for row in batch.turns.values()}
        return cls(before_ms, gone, known, threads, batch)

    def holds(self, event: Event) -> bool:
        """Say whether an event is of a turn that is gone, or is old and of no turn there is."""
        old = event.at_ms is not None and event.at_ms < self.before_ms
        if isinstance(event, AgentTold):
            if thread_of(event.session_id, event.agent_id) in self.threads:
                return False
            return self._turn_is_gone(event.parent_turn_id, old=old)
        if isinstance(event, TurnStarted | TurnReached):
            return event.turn_id in self.turns
        if isinstance(event, RequestMade):
            known = event.request_id in self.batch.turn_of_request
        else:
            known = event.compaction_id in self.batch.known_compactions
        return self._turn_is_gone(event.turn_id, old=old and not known)

    def _turn_is_gone(self, turn_id: str | None, *, old: bool) -> bool:
        return turn_id in self.turns or (old and turn_id not in self.known)
