"""Lines of work around compactions: requests that share one growing context, turn after turn."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from ledger.among import among
from ledger.schema import CACHE_WRITE_COLUMNS, requests, turns

__all__ = ["ContextLine", "LineTurn", "MadeRequest", "Place", "read_lines"]

_CHUNK = 5_000
_HOURS = ("cache_write_1h", "cache_write_12h")


class MadeRequest(NamedTuple):
    """A request as its usage tells it.

    Parameters
    ----------
    position : int
        Its place among its turn's requests, from 0.
    at_ms : int or None
        When it was made.
    model : str or None
    uncached, cache_read, written_5m, written_1h : int
        Input tokens by class; writes that live for an hour or more are in the last one.
    """

    position: int
    at_ms: int | None
    model: str | None
    uncached: int
    cache_read: int
    written_5m: int
    written_1h: int

    @property
    def context(self) -> int:
        """All of its input tokens."""
        return self.uncached + self.cached

    @property
    def cached(self) -> int:
        """Tokens that the cache holds once it is answered; 0 where the log does not tell."""
        return self.cache_read + self.written_5m + self.written_1h


@dataclass(frozen=True, slots=True)
class LineTurn:
    """A turn within its line of work.

    Parameters
    ----------
    turn_id, role, status : str
    model, provider : str or None
    started_ms, last_ms : int or None
        When it began and when it was last heard of.
    entry_calls, entry_requests : int
        Made before its observation began; 0 where nobody knows.
    calls, requests : int
        Tool calls and requests observed; those stated where the log has no request.
    made : tuple of MadeRequest
        Its requests in order; empty where only their number is known.
    """

    turn_id: str
    role: str
    status: str
    model: str | None
    provider: str | None
    started_ms: int | None
    last_ms: int | None
    entry_calls: int
    entry_requests: int
    calls: int
    requests: int
    made: tuple[MadeRequest, ...]


class Place(NamedTuple):
    """A point of a line: which turn, and how many calls and requests the line made before it."""

    turn: int
    calls: int
    requests: int


@dataclass(frozen=True, slots=True)
class ContextLine:
    """Turns in the order they began, whose requests share one context.

    Parameters
    ----------
    session_id : str
    single : bool
        Whether it is over with its one turn, as a sub-agent's run is.
    turns : tuple of LineTurn
    begins : tuple of Place, one more than there are turns
        Where each turn begins; the last one is the end of the line.
    """

    session_id: str
    single: bool
    turns: tuple[LineTurn, ...]
    begins: tuple[Place, ...]

    @classmethod
    def of(cls, session_id: str, turns_made: Iterable[LineTurn], *, single: bool) -> "ContextLine":
        """Return a line of turns given in any order."""
        ordered = sorted(turns_made, key=lambda turn: (turn.started_ms or 0, turn.turn_id))
        begins, calls, made = [Place(0, 0, 0)], 0, 0
        for number, turn in enumerate(ordered, start=1):
            calls, made = calls + turn.calls, made + turn.requests
            begins.append(Place(number, calls, made))
        return cls(session_id, single, tuple(ordered), tuple(begins))

    def request(self, number: int) -> MadeRequest | None:
        """Return a request by its number in the line, from 0; None where it is not known."""
        if not 0 <= number < self.begins[-1].requests:
            return None
        turn = self.turn_of(number)
        made = self.turns[turn].made
        return made[number - self.begins[turn].requests] if made else None

    def turn_of(self, number: int) -> int:
        """Return the turn that a request of the line belongs to."""
        return bisect_right(self.begins, number, key=attrgetter("requests")) - 1

    def within(self, turn: int, *, at_ms: int | None, calls: int, made: int) -> Place:
        """Return the place in a turn behind a number of its calls and requests.

        Parameters
        ----------
        turn : int
        at_ms : int, optional
            The first request is looked for that is not older: copies of messages from before a
            compaction may stand behind it.
        calls, made : int
            Counted as the turn counts, those before its observation included.
        """
        told, start = self.turns[turn], self.begins[turn]
        before = min(max(made - told.entry_requests, 0), told.requests)
        if told.made:
            before = next(
                (
                    number
                    for number, request in enumerate(told.made)
                    if request.position >= made and not _older(request, at_ms)
                ),
                len(told.made),
            )
        calls_before = min(max(calls - told.entry_calls, 0), told.calls)
        return Place(turn, start.calls + calls_before, start.requests + before)

    def from_time(self, at_ms: int) -> Place | None:
        """Return where the first turn begins that did not begin before a time, if one does."""
        for begin, turn in zip(self.begins, self.turns, strict=False):
            if turn.started_ms is not None and turn.started_ms >= at_ms:
                return begin
        return None


def read_lines(connection: Connection, session_ids: Collection[str]) -> dict[str, ContextLine]:
    """Read every line of work of some sessions.

    Returns
    -------
    dict of str to ContextLine
        By turn, each turn's line; and by session, the line of its main agent.
    """
    heads = connection.execute(
        select(turns).where(among(connection, turns.c.session_id, session_ids))
    ).all()
    made = _requests(connection, [head.turn_id for head in heads])
    grouped: dict[str, list[Row[Any]]] = defaultdict(list)
    for head in heads:
        # A sub-agent's run that its caller books on the parent's session is a line of its own.
        own = head.parent_turn_id is not None or head.thread_id is None
        booked = own and head.thread_id in (None, head.session_id)
        grouped[head.turn_id if booked else head.thread_id].append(head)
    found: dict[str, ContextLine] = {}
    for name, own_heads in grouped.items():
        session_id = own_heads[0].session_id
        line = ContextLine.of(
            session_id,
            [_turn(head, made.get(head.turn_id, ())) for head in own_heads],
            single=name != session_id,
        )
        found |= dict.fromkeys((turn.turn_id for turn in line.turns), line)
        if name == session_id:
            found[session_id] = line
    return found


def _older(request: MadeRequest, at_ms: int | None) -> bool:
    return at_ms is not None and request.at_ms is not None and request.at_ms < at_ms


def _turn(head: Row[Any], made: Sequence[MadeRequest]) -> LineTurn:
    entry_calls, entry_requests = head.entry_calls or 0, head.entry_requests or 0
    stated = max((head.requests or 0) - entry_requests, 0)
    return LineTurn(
        turn_id=head.turn_id,
        role=head.role,
        status=head.status,
        model=head.model,
        provider=head.provider,
        started_ms=head.started_ms,
        last_ms=head.last_ms,
        entry_calls=entry_calls,
        entry_requests=entry_requests,
        calls=max(head.tool_calls - entry_calls, 0),
        requests=len(made) or stated,
        made=tuple(made),
    )


def _requests(connection: Connection, turn_ids: Collection[str]) -> dict[str, list[MadeRequest]]:
    hours = requests.c.cache_write_1h + requests.c.cache_write_12h
    shorter = [requests.c[name] for name in CACHE_WRITE_COLUMNS if name not in _HOURS]
    wanted = (
        select(
            requests.c.turn_id,
            requests.c.position,
            requests.c.at_ms,
            requests.c.model,
            requests.c.uncached,
            requests.c.cache_read,
            sum(shorter[1:], shorter[0]),
            hours,
        )
        .where(among(connection, requests.c.turn_id, turn_ids), requests.c.kind == "agent")
        .order_by(requests.c.turn_id, requests.c.position)
    )
    found: dict[str, list[MadeRequest]] = defaultdict(list)
    for turn_id, *told in connection.execute(wanted.execution_options(yield_per=_CHUNK)):
        found[turn_id].append(MadeRequest(*told))
    return found
