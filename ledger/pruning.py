"""Retention: old turns and all that hangs on them go, and what estimates see stays.

The histogram keeps counting every turn that was ever closed. After a pruning it can't be counted
again from the turns: it is all that is left of those that went.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    Table,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from ledger.among import among
from ledger.compaction_observations import NEAR_MS, latest_compactions, turns_after
from ledger.database import reading, writing
from ledger.retention import set_pruned_before
from ledger.schema import compactions, decisions, requests, tool_calls, turns
from ledger.versions import lock_version

__all__ = ["Kept", "Pruned", "prune"]

#: Turns, or rows without one, that go in one transaction: other writers wait for no more.
PART_TURNS = 500
PART_ROWS = 5000

_Place = tuple[int, str]
_PLACE = tuple_(turns.c.last_ms, turns.c.turn_id)
_OTHER = turns.alias("other")
_EARLIER = turns.alias("earlier_of_pruned")


@dataclass(frozen=True, slots=True)
class Kept:
    """What stays however old it is, because estimates and parameters are made from it.

    Parameters
    ----------
    turns : int
        Of each role, its latest closed turns; one at least.
    compactions : int
        Of all roles, the latest compactions, with the turns that went on after them.
    """

    turns: int
    compactions: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """Rows that went, or would."""

    turns: int = 0
    requests: int = 0
    tool_calls: int = 0
    compactions: int = 0
    decisions: int = 0

    def __add__(self, other: "Pruned") -> "Pruned":
        names = [one.name for one in fields(self)]
        return Pruned(*(getattr(self, name) + getattr(other, name) for name in names))


def prune(
    engine: Engine,
    before_ms: int,
    kept: Kept,
    *,
    dry_run: bool = False,
    progress: Callable[[Pruned], None] = lambda _: None,
) -> Pruned:
    """Delete what is older than a time, a part a transaction.

    Turns that closed before it go, with their requests, tool calls, compactions and decisions; so
    do compactions, summary calls and decisions from before it that belong to no turn. Open turns
    stay, and those of which no time is known, what ``kept`` names, and the first turn of every line
    of work that goes on: it tells that later ones open no session. No table, parameter or decision
    changes, and the ledger's version does not move.

    Parameters
    ----------
    engine : Engine
    before_ms : int
        Milliseconds since 1970.
    kept : Kept
    dry_run : bool
        Only count, without the summary calls beside compactions that would go.
    progress : callable
        Called with what each part came to.

    Returns
    -------
    Pruned
        If it breaks off, whole parts are gone and the next call goes on.

    Raises
    ------
    LedgerError
        If the database fails.
    """
    with reading(engine) as connection:
        roles = connection.scalars(select(turns.c.role).distinct().order_by(turns.c.role)).all()
        latest = latest_compactions(connection, kept.compactions)
        spared = turns_after(connection, latest) if latest else set()
    done = Pruned()
    for part in _parts(engine, _Pruning(before_ms, kept.turns, spared, dry_run), roles):
        progress(part)
        done += part
    loose = [row.compaction_id for row in latest]
    for part in _loose_parts(engine, before_ms, loose, dry_run=dry_run):
        progress(part)
        done += part
    return done


@dataclass(frozen=True, slots=True)
class _Pruning:
    """One call's terms; ``spared`` are turns that stay for the sake of compactions."""

    before_ms: int
    latest_turns: int
    spared: Collection[str]
    dry_run: bool


def _parts(engine: Engine, terms: _Pruning, roles: Sequence[str]) -> Iterator[Pruned]:
    opened = reading if terms.dry_run else writing
    for role in roles:
        since: _Place | None = None
        bound: _Place | None = None
        while True:
            with opened(engine) as connection:
                if not terms.dry_run:
                    lock_version(connection)
                bound = bound or _bound(connection, role, terms.latest_turns)
                found = _candidates(connection, terms, role, bound, since) if bound else []
                if not found or bound is None:
                    break
                since = found[-1]
                ids = _that_go(connection, terms, role, bound, [turn_id for _, turn_id in found])
                part = (
                    _counted(connection, ids) if terms.dry_run else _deleted(connection, ids, since)
                )
            if part.turns:
                yield part


def _bound(connection: Connection, role: str, latest_turns: int) -> _Place | None:
    """Return the oldest of a role's latest turns; None where it has no more than these."""
    wanted = (
        select(turns.c.last_ms, turns.c.turn_id)
        .where(turns.c.role == role, turns.c.status != "open", turns.c.last_ms.is_not(None))
        .order_by(turns.c.last_ms.desc(), turns.c.turn_id.desc())
        .offset(latest_turns - 1)
        .limit(1)
    )
    found = connection.execute(wanted).one_or_none()
    return None if found is None else (found[0], found[1])


def _candidates(
    connection: Connection, terms: _Pruning, role: str, bound: _Place, since: _Place | None
) -> list[_Place]:
    """Return a role's next closed turns that are old enough, oldest first."""
    wanted: Select[Any] = (
        select(turns.c.last_ms, turns.c.turn_id)
        .where(turns.c.role == role, turns.c.status != "open")
        .where(turns.c.last_ms < terms.before_ms, bound > _PLACE)
        .order_by(turns.c.last_ms, turns.c.turn_id)
        .limit(PART_TURNS)
    )
    if since is not None:
        wanted = wanted.where(since < _PLACE)
    return [(last_ms, turn_id) for last_ms, turn_id in connection.execute(wanted)]


def _that_go(
    connection: Connection, terms: _Pruning, role: str, bound: _Place, ids: Sequence[str]
) -> list[str]:
    """Leave out turns that compactions need, and first ones whose line of work goes on."""
    stays = or_(
        _OTHER.c.status == "open",
        _OTHER.c.last_ms.is_(None),
        _OTHER.c.last_ms >= terms.before_ms,
        tuple_(_OTHER.c.last_ms, _OTHER.c.turn_id) >= bound,
        among(connection, _OTHER.c.turn_id, terms.spared),
    )
    same = and_(_OTHER.c.thread_id == turns.c.thread_id, _OTHER.c.role == role)
    earlier = exists().where(
        _EARLIER.c.thread_id == turns.c.thread_id,
        _EARLIER.c.role == role,
        tuple_(_EARLIER.c.started_ms, _EARLIER.c.turn_id)
        < tuple_(turns.c.started_ms, turns.c.turn_id),
    )
    first = connection.scalars(
        select(turns.c.turn_id).where(
            among(connection, turns.c.turn_id, ids),
            turns.c.started_ms.is_not(None),
            ~earlier,
            exists().where(same, stays),
        )
    )
    staying = set(first).union(terms.spared)
    return [turn_id for turn_id in ids if turn_id not in staying]


_OF_TURNS: tuple[tuple[str, Table], ...] = (
    ("tool_calls", tool_calls),
    ("requests", requests),
    ("compactions", compactions),
    ("decisions", decisions),
    ("turns", turns),
)


def _deleted(connection: Connection, ids: Sequence[str], upto: _Place) -> Pruned:
    if not ids:
        return Pruned()
    # In the same transaction, so that no log which is read again brings them back.
    set_pruned_before(connection, upto[0] + 1)
    return Pruned(
        **{
            name: connection.execute(
                delete(table).where(among(connection, table.c.turn_id, ids))
            ).rowcount
            for name, table in _OF_TURNS
        }
    )


def _counted(connection: Connection, ids: Sequence[str]) -> Pruned:
    return Pruned(
        **{
            name: connection.scalar(
                select(func.count())
                .select_from(table)
                .where(among(connection, table.c.turn_id, ids))
            )
            or 0
            for name, table in _OF_TURNS
        }
    )


def _loose_parts(
    engine: Engine, before_ms: int, latest: Sequence[str], *, dry_run: bool
) -> Iterator[Pruned]:
    """Delete old rows that belong to no turn the ledger has."""
    for name, table, key, condition in (
        ("compactions", compactions, compactions.c.compaction_id, _loose_compactions),
        ("requests", requests, requests.c.request_id, _loose_summary_calls),
        ("decisions", decisions, decisions.c.decision_id, _loose_decisions),
    ):
        for _ in count():
            with (reading if dry_run else writing)(engine) as connection:
                where = condition(connection, before_ms, latest)
                wanted = select(key).where(where)
                if dry_run:
                    total = select(func.count()).select_from(wanted.subquery())
                    rows, more = connection.scalar(total) or 0, False
                else:
                    some = connection.scalars(wanted.limit(PART_ROWS)).all()
                    connection.execute(delete(table).where(among(connection, key, some)))
                    rows, more = len(some), len(some) == PART_ROWS
            if rows:
                yield Pruned(**{name: rows})
            if not more:
                break


def _no_turn(column: ColumnElement[Any]) -> ColumnElement[bool]:
    return ~exists().where(turns.c.turn_id == column)


def _loose_compactions(
    connection: Connection, before_ms: int, latest: Sequence[str]
) -> ColumnElement[bool]:
    return and_(
        compactions.c.at_ms < before_ms,
        _no_turn(compactions.c.turn_id),
        ~among(connection, compactions.c.compaction_id, latest),
    )


def _loose_summary_calls(
    _connection: Connection, before_ms: int, _latest: Sequence[str]
) -> ColumnElement[bool]:
    """Summary calls belong to no turn, but to the compaction beside them."""
    near = exists().where(
        compactions.c.session_id == requests.c.session_id,
        compactions.c.at_ms.between(requests.c.at_ms - NEAR_MS, requests.c.at_ms + NEAR_MS),
    )
    return and_(requests.c.kind == "compaction", requests.c.at_ms < before_ms, ~near)


def _loose_decisions(
    _connection: Connection, before_ms: int, _latest: Sequence[str]
) -> ColumnElement[bool]:
    return and_(decisions.c.at_ms < before_ms, _no_turn(decisions.c.turn_id))
