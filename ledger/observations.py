"""What the ledger saw of turns: bounded reads, one record each."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, func, select

from ledger.among import among
from ledger.schema import CACHE_WRITE_COLUMNS, compactions, requests, turns

__all__ = [
    "EARLIER",
    "FALL",
    "MOST_REQUESTS",
    "REQUEST_COLUMNS",
    "SAME_WORK",
    "WRITTEN",
    "RequestSeen",
    "TurnSeen",
    "by_turn",
    "turns_seen",
]

#: Requests of a turn that are read: its latest. A turn that grows is read again at each refresh.
MOST_REQUESTS = 200
#: A context that falls by more than this share was compacted, told or untold: no growth.
FALL = 0.1
#: A request that reads less than this share of the context before it missed the cache.
HIT = 0.5


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """What one turn tells of contexts, caches and pauses.

    Parameters
    ----------
    session_id : str
        Its session, as the ledger has it.
    thread_id : str or None
        The line of work that the turn belongs to; None where nobody told a session, or where it
        is a run of its own.
    model : str
        Of the turn, or empty.
    started_ms, last_ms : int or None
        When it began and when it was last heard of.
    requests : int
        Made in the turn.
    opens_session : bool
        Whether its role's work in the session begins with it.
    first_context, last_context : int or None
        Context tokens of its first and its last request; None where they are not known.
    first_model, last_model : str
        Whose requests those were.
    growths : tuple of int
        Context tokens that each request brought over the one before it; compactions and changes
        of the model left out.
    cached_steps, misses : int
        Requests that should have found their prefix cached, and those that did not.
    """

    session_id: str
    thread_id: str | None
    model: str
    started_ms: int | None
    last_ms: int | None
    requests: int
    opens_session: bool
    first_context: int | None = None
    last_context: int | None = None
    first_model: str = ""
    last_model: str = ""
    growths: tuple[int, ...] = ()
    cached_steps: int = 0
    misses: int = 0


class RequestSeen(NamedTuple):
    """A request with its tokens by class, as `REQUEST_COLUMNS` reads it."""

    turn_id: str
    position: int
    at_ms: int | None
    model: str | None
    uncached: int
    cache_read: int
    written: int

    @property
    def context(self) -> int:
        """Context tokens."""
        return self.uncached + self.cache_read + self.written


WRITTEN = sum((requests.c[name] for name in CACHE_WRITE_COLUMNS[1:]), requests.c.cache_write_5m)
REQUEST_COLUMNS = (
    requests.c.turn_id,
    requests.c.position,
    requests.c.at_ms,
    requests.c.model,
    requests.c.uncached,
    requests.c.cache_read,
    WRITTEN,
)

# Built once: SQLAlchemy takes longer to build a statement than SQLite to run it.
EARLIER = turns.alias("earlier")
SAME_WORK = and_(EARLIER.c.thread_id == turns.c.thread_id, EARLIER.c.role == turns.c.role)
_HEADS = select(
    turns.c.turn_id,
    turns.c.session_id,
    turns.c.thread_id,
    turns.c.parent_turn_id,
    turns.c.model,
    turns.c.started_ms,
    turns.c.last_ms,
    turns.c.requests,
    select(EARLIER.c.turn_id)
    .where(SAME_WORK, EARLIER.c.started_ms < turns.c.started_ms)
    .limit(1)
    .scalar_subquery(),
)
_LATEST_REQUESTS = (
    select(*REQUEST_COLUMNS)
    .join(turns, turns.c.turn_id == requests.c.turn_id)
    .where(requests.c.kind == "agent")
    .where(requests.c.position >= func.coalesce(turns.c.requests, 0) - MOST_REQUESTS)
    .order_by(requests.c.turn_id, requests.c.position)
)
_PLACES = select(compactions.c.turn_id, compactions.c.requests_before)


def turns_seen(connection: Connection, turn_ids: Collection[str]) -> dict[str, TurnSeen]:
    """Read turns with their latest requests.

    Parameters
    ----------
    turn_ids : collection of str
        A few hundred at most.

    Returns
    -------
    dict of str to TurnSeen
        By turn. One that tells of no requests has no contexts.
    """
    if not turn_ids:
        return {}
    within = among(connection, turns.c.turn_id, turn_ids)
    heads = connection.execute(_HEADS.where(within)).all()
    made = connection.execute(_LATEST_REQUESTS.where(within)).all()
    placed = _PLACES.where(among(connection, compactions.c.turn_id, turn_ids))
    compacted = {(row[0], row[1]) for row in connection.execute(placed)}
    told = {turn_id: list(rows) for turn_id, rows in by_turn(made)}
    return {head[0]: _turn(head, told.get(head[0], ()), compacted) for head in heads}


def by_turn(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[str, Iterator[RequestSeen]]]:
    """Group rows of `REQUEST_COLUMNS`, ordered by turn, by their turn."""
    return groupby((RequestSeen(*row) for row in rows), itemgetter(0))


def _turn(
    head: Sequence[Any], made: Sequence[RequestSeen], compacted: Collection[tuple[str, int]]
) -> TurnSeen:
    turn_id, session_id, thread_id, parent, model, started_ms, last_ms, count, earlier = head
    # Without a session of its own, a turn does not tell whether anything follows it; and a
    # sub-agent's run that its caller books on the parent's session is a session of its own.
    known = session_id != turn_id and not (parent and thread_id == session_id)
    facts = (session_id, thread_id if known else None, model or "", started_ms, last_ms, count or 0)
    opens = earlier is None or (parent is not None and thread_id == session_id)
    if not made:
        return TurnSeen(*facts, opens)
    steps = [
        (before, after)
        for before, after in pairwise(made)
        if after.position == before.position + 1
        and after.model == before.model
        and (turn_id, after.position) not in compacted
        and after.context >= before.context * (1 - FALL)
    ]
    first, last = made[0], made[-1]
    hits = [_hit(before, after) for before, after in steps]
    return TurnSeen(
        *facts,
        opens,
        first.context if first.position == 0 else None,
        last.context,
        first.model or "",
        last.model or "",
        tuple(after.context - before.context for before, after in steps),
        sum(hit is not None for hit in hits),
        sum(hit is False for hit in hits),
    )


def _hit(before: RequestSeen, after: RequestSeen) -> bool | None:
    """Say whether a request found the one before it cached; None where nothing was, or nobody told.

    A tool that outlasts the cache makes a miss as well: within a turn nobody sees it coming.
    """
    if not before.cache_read + before.written:
        return None
    return after.cache_read >= HIT * before.context
