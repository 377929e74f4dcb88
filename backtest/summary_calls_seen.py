"""The calls that made summaries, as the ledger has them, each given to its compaction."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from backtest.context_lines import MadeRequest
from ledger.among import among
from ledger.compaction_observations import (
    LEAST_SUMMARY_SHARE,
    LEAST_SUMMARY_TOKENS,
    NEAR_MS,
)
from ledger.schema import CACHE_WRITE_COLUMNS, requests

__all__ = ["SummaryCallSeen", "call_seen", "nearest_calls", "summary_calls"]


@dataclass(frozen=True, slots=True)
class SummaryCallSeen:
    """What the call that made a summary used.

    Parameters
    ----------
    model : str or None
    uncached, cache_read, written_5m, written_1h : int
        Input tokens by class.
    output : int or None
        None where what the log tells is too small for a summary.
    """

    model: str | None
    uncached: int
    cache_read: int
    written_5m: int
    written_1h: int
    output: int | None


def summary_calls(connection: Connection, session_ids: Sequence[str]) -> dict[str, list[Row[Any]]]:
    """Return the calls that made summaries, by session."""
    within = among(connection, requests.c.session_id, session_ids)
    found: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in connection.execute(select(requests).where(requests.c.kind == "compaction", within)):
        found[row.session_id].append(row)
    return found


def nearest_calls(rows: Sequence[Row[Any]], calls: Sequence[Row[Any]]) -> dict[str, Row[Any]]:
    """Give each compaction the call nearest to it in time, each call to one of them."""
    pairs = sorted(
        (abs(call.at_ms - row.at_ms), call.request_id, row.compaction_id)
        for row in rows
        for call in calls
        if None not in (row.at_ms, call.at_ms)
    )
    by_id = {call.request_id: call for call in calls}
    found: dict[str, Row[Any]] = {}
    for apart, request_id, compaction_id in pairs:
        if apart <= NEAR_MS and request_id in by_id and compaction_id not in found:
            found[compaction_id] = by_id.pop(request_id)
    return found


def call_seen(call: Row[Any] | None, first: MadeRequest | None) -> SummaryCallSeen | None:
    """Return a call's usage; of an output too small for a summary, nothing is told."""
    if call is None:
        return None
    anew = first.context - first.cache_read if first else 0
    least = max(LEAST_SUMMARY_TOKENS, LEAST_SUMMARY_SHARE * anew)
    written = sum(getattr(call, name) for name in CACHE_WRITE_COLUMNS)
    written_1h = call.cache_write_1h + call.cache_write_12h
    return SummaryCallSeen(
        call.model,
        call.uncached,
        call.cache_read,
        written - written_1h,
        written_1h,
        call.output if call.output >= least else None,
    )
