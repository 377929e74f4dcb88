"""The ledger as plain rows, in columns that ``import`` takes back."""

from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from ledger.clock import iso
from ledger.schema import CACHE_WRITE_COLUMNS, compactions, requests, tool_calls, turns

__all__ = ["export_columns", "export_rows"]

_CHUNK = 2000


def _turns() -> Select[Any]:
    return select(turns).order_by(turns.c.started_ms, turns.c.turn_id)


def _turn(row: Row[Any]) -> dict[str, Any]:
    return {
        "source": row.source,
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "role": row.role,
        "model": row.model,
        "started_at": iso(row.started_ms),
        "ended_at": iso(row.last_ms),
        "status": row.status,
        "tool_calls": row.tool_calls,
        "requests": row.requests,
        "reason": row.reason,
        "trigger": row.trigger,
        "provider": row.provider,
        "thread_id": row.thread_id,
        "parent_turn_id": row.parent_turn_id,
        "entry_calls": row.entry_calls,
        "entry_requests": row.entry_requests,
    }


def _requests() -> Select[Any]:
    named = (
        select(func.count())
        .where(tool_calls.c.request_id == requests.c.request_id)
        .scalar_subquery()
    )
    return select(requests, (named + requests.c.unnamed_tool_calls).label("tool_calls")).order_by(
        requests.c.session_id, requests.c.at_ms, requests.c.turn_id, requests.c.position
    )


def _request(row: Row[Any]) -> dict[str, Any]:
    writes = {name: getattr(row, name) for name in CACHE_WRITE_COLUMNS}
    return {
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "index": row.position,
        "at": iso(row.at_ms),
        "uncached": row.uncached,
        "cache_read": row.cache_read,
        "cache_write": sum(writes.values()),
        "output": row.output,
        "reasoning": row.reasoning,
        "request_id": row.request_id,
        "kind": row.kind,
        "model": row.model,
        "tool_calls": row.tool_calls,
        **writes,
    }


def _compactions() -> Select[Any]:
    return (
        select(compactions, turns.c.tool_calls, turns.c.requests, turns.c.status)
        .join_from(compactions, turns, compactions.c.turn_id == turns.c.turn_id, isouter=True)
        .order_by(compactions.c.at_ms, compactions.c.compaction_id)
    )


def _compaction(row: Row[Any]) -> dict[str, Any]:
    inside = row.tool_calls is not None
    return {
        "compaction_id": row.compaction_id,
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "at": iso(row.at_ms),
        "trigger": row.trigger,
        "strategy": row.strategy,
        "context_before": row.context_before,
        "context_after": row.context_after,
        "calls_before": row.calls_before,
        "calls_after": row.tool_calls - row.calls_before if inside else None,
        "requests_before": row.requests_before,
        "requests_after": row.requests - row.requests_before if inside and row.requests else None,
        "turn_status": row.status,
    }


_TURN_COLUMNS = (
    "source session_id turn_id role model started_at ended_at status tool_calls requests reason "
    "trigger provider thread_id parent_turn_id entry_calls entry_requests"
)
_REQUEST_COLUMNS = (
    "session_id turn_id index at uncached cache_read cache_write output reasoning request_id kind "
    "model tool_calls " + " ".join(CACHE_WRITE_COLUMNS)
)
_COMPACTION_COLUMNS = (
    "compaction_id session_id turn_id at trigger strategy context_before context_after "
    "calls_before calls_after requests_before requests_after turn_status"
)
_COLUMNS = {
    "turns": _TURN_COLUMNS.split(),
    "requests": _REQUEST_COLUMNS.split(),
    "compactions": _COMPACTION_COLUMNS.split(),
}

_EXPORTS: dict[str, tuple[Callable[[], Select[Any]], Callable[[Row[Any]], dict[str, Any]]]] = {
    "turns": (_turns, _turn),
    "requests": (_requests, _request),
    "compactions": (_compactions, _compaction),
}


def export_columns(kind: str) -> list[str]:
    """Return the columns of ``turns``, ``requests`` or ``compactions``, in order."""
    return _COLUMNS[kind]


def export_rows(connection: Connection, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``turns``, ``requests`` or ``compactions``, in a stable order.

    Rows are read in chunks: a ledger of any size takes the same memory.
    """
    statement, shape = _EXPORTS[kind]
    streamed = connection.execution_options(yield_per=_CHUNK).execute(statement())
    for row in streamed:
        yield shape(row)
