"""What the ledger saw of compactions: bounded reads, one record each."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, func, select

from ledger.among import among
from ledger.observations import (
    EARLIER,
    FALL,
    REQUEST_COLUMNS,
    SAME_WORK,
    WRITTEN,
    RequestSeen,
    by_turn,
)
from ledger.schema import compactions, requests, turns

__all__ = [
    "FOLLOWED_REQUESTS",
    "NEAR_MS",
    "CompactionRow",
    "CompactionSeen",
    "SummaryUsage",
    "compactions_seen",
    "latest_compactions",
    "summary_calls",
    "turns_after",
]

#: Requests after a compaction over which growth is looked at.
FOLLOWED_REQUESTS = 10
#: A summary call is looked for so near to its compaction, before and after.
NEAR_MS = 600_000
#: Fewer tokens, in all or as a share of what the next request read anew, are no summary: logs of
#: some versions tell of the output what had been written when the answer began to stream.
LEAST_SUMMARY_TOKENS = 200
LEAST_SUMMARY_SHARE = 0.02


class CompactionRow(NamedTuple):
    """A compaction as the ledger has it."""

    compaction_id: str
    session_id: str
    turn_id: str | None
    at_ms: int
    strategy: str
    context_before: int | None
    context_after: int | None
    requests_before: int


@dataclass(frozen=True, slots=True)
class SummaryUsage:
    """Tokens by class of the call that made a summary; no output where it is not believed."""

    read_tokens: int
    uncached_tokens: int
    written_5m_tokens: int
    written_1h_tokens: int
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class CompactionSeen:
    """What one compaction left behind.

    Parameters
    ----------
    turn_id, role, model : str
        The turn that went on after it, and of whom it is.
    strategy : str
        How the context was made smaller.
    opening_context : int or None
        Context tokens of the session's first request.
    context_before, context_after : int or None
        X and X′ in tokens; X′ is the context of the first request after it.
    cached_after : int or None
        p′, what that request read from the cache.
    uncached_after : int or None
        What it sent without the cache.
    followed_requests : int
        Further requests seen in the turn before the context fell again, ten at most.
    followed_tokens : int
        By how much they let the context grow.
    call : SummaryUsage or None
        What the call for the summary used, where the ledger has it.
    """

    turn_id: str
    role: str
    model: str
    strategy: str
    opening_context: int | None
    context_before: int | None
    context_after: int | None
    cached_after: int | None = None
    uncached_after: int | None = None
    followed_requests: int = 0
    followed_tokens: int = 0
    call: SummaryUsage | None = None


_FACTS = select(
    turns.c.turn_id,
    turns.c.role,
    turns.c.model,
    select(EARLIER.c.turn_id)
    .where(SAME_WORK, EARLIER.c.started_ms.is_not(None))
    .order_by(EARLIER.c.started_ms, EARLIER.c.turn_id)
    .limit(1)
    .scalar_subquery(),
)
_NEXT_TURN = select(
    compactions.c.compaction_id,
    select(turns.c.turn_id)
    .where(turns.c.thread_id == compactions.c.session_id)
    .where(turns.c.started_ms >= compactions.c.at_ms)
    .order_by(turns.c.started_ms, turns.c.turn_id)
    .limit(1)
    .scalar_subquery(),
)
_LATEST_COMPACTIONS = (
    select(*(compactions.c[name] for name in CompactionRow._fields))
    .where(compactions.c.at_ms.is_not(None))
    .order_by(compactions.c.at_ms.desc(), compactions.c.compaction_id.desc())
)
_SUMMARY_CALLS = select(func.count()).where(requests.c.kind == "compaction")


def latest_compactions(connection: Connection, limit: int) -> list[CompactionRow]:
    """Return the latest compactions, newest first; those without a time are never told.

    Parameters
    ----------
    limit : int
        How many at most.
    """
    # Whole rows at once: one by one, five hundred take three times as long.
    return [
        CompactionRow(*row) for row in connection.execute(_LATEST_COMPACTIONS.limit(limit)).all()
    ]


def summary_calls(connection: Connection) -> int:
    """Count the calls for summaries that the ledger has."""
    return int(connection.scalar(_SUMMARY_CALLS) or 0)


def compactions_seen(
    connection: Connection, rows: Collection[CompactionRow]
) -> dict[str, CompactionSeen]:
    """Read what followed on compactions, and what their own calls used.

    Returns
    -------
    dict of str to CompactionSeen
        By compaction; one after which nothing has happened yet is missing.
    """
    if not rows:
        return {}
    following, went_on = _followed_by(connection, rows)
    facts = _turn_facts(connection, set(went_on.values()))
    after = _requests_after(connection, went_on)
    openings = {opening for _, _, opening in facts.values() if opening}
    first = _opening_requests(connection, openings | set(following.values()))
    after |= {key: first[turn_id] for key, turn_id in following.items() if turn_id in first}
    calls = _summary_calls(connection, went_on)
    seen: dict[str, CompactionSeen] = {}
    for row in rows:
        key = row.compaction_id
        turn_id = went_on.get(key, "")
        if turn_id in facts:
            role, model, opening = facts[turn_id]
            made, call = after.get(key, []), calls.get(key)
            begun = first[opening][0].context if opening in first else None
            seen[key] = _compaction(row, (turn_id, role, model), begun, made, call)
    return seen


def turns_after(connection: Connection, rows: Collection[CompactionRow]) -> set[str]:
    """Return the turns that went on after compactions: what they left behind is read from these."""
    return set(_followed_by(connection, rows)[1].values())


def _followed_by(
    connection: Connection, rows: Collection[CompactionRow]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return by compaction the turn that followed on one between turns, and what went on at all."""
    between = [row.compaction_id for row in rows if row.turn_id is None]
    following = _next_turns(connection, between)
    went_on = {
        row.compaction_id: turn_id
        for row in rows
        if (turn_id := row.turn_id or following.get(row.compaction_id)) is not None
    }
    return following, went_on


def _turn_facts(
    connection: Connection, turn_ids: Collection[str]
) -> dict[str, tuple[str, str, str]]:
    """Return of each turn its role, its model, and the turn that opened its session."""
    if not turn_ids:
        return {}
    found = connection.execute(_FACTS.where(among(connection, turns.c.turn_id, turn_ids)))
    return {turn_id: (role, model or "", first or "") for turn_id, role, model, first in found}


def _next_turns(connection: Connection, compaction_ids: Collection[str]) -> dict[str, str]:
    """Return the turns with which sessions went on after compactions between turns."""
    if not compaction_ids:
        return {}
    found = connection.execute(
        _NEXT_TURN.where(among(connection, compactions.c.compaction_id, compaction_ids))
    )
    return {compaction_id: turn_id for compaction_id, turn_id in found if turn_id}


def _requests_after(
    connection: Connection, compaction_ids: Collection[str]
) -> dict[str, list[RequestSeen]]:
    """Return the first requests after each compaction inside a turn, in order."""
    span = and_(
        requests.c.turn_id == compactions.c.turn_id,
        requests.c.position >= compactions.c.requests_before,
        requests.c.position <= compactions.c.requests_before + FOLLOWED_REQUESTS,
    )
    inside = connection.execute(
        select(compactions.c.compaction_id, *REQUEST_COLUMNS)
        .join(requests, span)
        .where(
            among(connection, compactions.c.compaction_id, compaction_ids),
            requests.c.kind == "agent",
        )
        .order_by(compactions.c.compaction_id, requests.c.position)
    )
    after: dict[str, list[RequestSeen]] = {}
    for compaction_id, *row in inside:
        after.setdefault(compaction_id, []).append(RequestSeen(*row))
    return after


def _opening_requests(
    connection: Connection, turn_ids: Collection[str]
) -> dict[str, list[RequestSeen]]:
    """Return the first requests of turns, in order."""
    found = connection.execute(
        select(*REQUEST_COLUMNS)
        .where(among(connection, requests.c.turn_id, turn_ids))
        .where(requests.c.position <= FOLLOWED_REQUESTS, requests.c.kind == "agent")
        .order_by(requests.c.turn_id, requests.c.position)
    )
    return {turn_id: list(rows) for turn_id, rows in by_turn(found)}


def _summary_calls(
    connection: Connection, compaction_ids: Collection[str]
) -> dict[str, Sequence[Any]]:
    """Return the usage of each compaction's own call: the one nearest to it in its session."""
    near = and_(
        requests.c.session_id == compactions.c.session_id,
        requests.c.kind == "compaction",
        requests.c.at_ms.between(compactions.c.at_ms - NEAR_MS, compactions.c.at_ms + NEAR_MS),
    )
    found = connection.execute(
        select(
            compactions.c.compaction_id,
            func.abs(requests.c.at_ms - compactions.c.at_ms).label("apart"),
            requests.c.cache_read,
            requests.c.uncached,
            WRITTEN - requests.c.cache_write_1h - requests.c.cache_write_12h,
            requests.c.cache_write_1h + requests.c.cache_write_12h,
            requests.c.output,
        )
        .join(requests, near)
        .where(among(connection, compactions.c.compaction_id, compaction_ids))
        .order_by("apart", requests.c.request_id)
    )
    nearest: dict[str, Sequence[Any]] = {}
    for compaction_id, _, *usage in found:
        nearest.setdefault(compaction_id, usage)
    return nearest


def _compaction(
    row: CompactionRow,
    turn: tuple[str, str, str],
    opening_context: int | None,
    after: Sequence[RequestSeen],
    usage: Sequence[Any] | None,
) -> CompactionSeen:
    turn_id, role, model = turn
    # A boundary may be followed by copies of messages from before it.
    after = [made for made in after if made.at_ms is None or made.at_ms >= row.at_ms]
    first = after[0] if after else None
    followed = 0
    for before, later in pairwise(after):
        if later.context < before.context * (1 - FALL) or later.model != before.model:
            break
        followed += 1
    anew = first.context - first.cache_read if first else 0
    return CompactionSeen(
        turn_id=turn_id,
        role=role,
        model=(first.model if first else None) or model,
        strategy=row.strategy,
        opening_context=opening_context,
        context_before=row.context_before,
        context_after=first.context if first else row.context_after,
        cached_after=first.cache_read if first else None,
        uncached_after=first.uncached if first else None,
        followed_requests=followed,
        followed_tokens=after[followed].context - after[0].context if after else 0,
        call=None if usage is None else _believed(usage, anew),
    )


def _believed(usage: Sequence[Any], anew: int) -> SummaryUsage:
    """Return a call's usage; of an output too small for a summary, nothing is told."""
    read, uncached, written_5m, written_1h, output = usage
    least = max(LEAST_SUMMARY_TOKENS, LEAST_SUMMARY_SHARE * anew)
    told = output if output >= least else None
    return SummaryUsage(read, uncached, written_5m, written_1h, told)
