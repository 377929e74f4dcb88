"""Records of what happened, as the requests that tell the service. Every one may be sent twice."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from compactuary.errors import InputError
from compactuary.json_bytes import json_bytes

__all__ = [
    "MAKERS",
    "Record",
    "calls_in",
    "compaction_made",
    "new_id",
    "request_made",
    "turn_ended",
    "turn_started",
]


#: Usage and names are far smaller; a queue of whole answers would fill the memory.
_LARGEST_BYTES = 1 << 18


class Record(NamedTuple):
    """One write.

    Parameters
    ----------
    kind : {'turn', 'request', 'end', 'compaction'}
    method, path : str
    body : bytes
        JSON, made when it was recorded: what a caller changes later does not change it.
    turn_id : str or None
        Of the turn in the path; None where the path names none.
    """

    kind: str
    method: str
    path: str
    body: bytes
    turn_id: str | None = None


def new_id() -> str:
    """Return a name that nothing else has: the time in milliseconds, then 80 random bits."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


def turn_started(turn_id: str, role: str, session_id: str, **more: Any) -> Record:
    """Return the record of a turn that begins.

    Parameters
    ----------
    more
        ``model``, ``provider``, ``entry_calls``, ``parent_turn_id`` and ``started_at``; now unless
        given.
    """
    more["started_at"] = more.get("started_at") or _now()
    body = {"role": role, "session_id": session_id} | more
    return _record("turn", "PUT", _turn_path(turn_id), body, turn_id)


def request_made(
    turn_id: str, request_id: str, usage: Any, tool_calls: Any = (), **more: Any
) -> Record:
    """Return the record of a request.

    Parameters
    ----------
    usage : mapping or object
        The provider's usage object as it came, a mapping or an SDK's own class.
    tool_calls : int, or iterable of mappings or pairs
        How many, or each one's ``id`` and ``name``.
    more
        ``model``, ``kind``, ``convention`` and ``at``; now unless given.
    """
    more["at"] = more.get("at") or _now()
    told = {"request_id": request_id, "usage": usage, "tool_calls": calls_in(tool_calls)}
    return _record("request", "POST", f"{_turn_path(turn_id)}/requests", told | more, turn_id)


def turn_ended(turn_id: str, status: str = "ended", **more: Any) -> Record:
    """Return the record of a turn's end.

    Parameters
    ----------
    status : {'ended', 'cut'}
    more
        ``reason``, ``tool_calls`` in all, and ``at``; now unless given.
    """
    more["at"] = more.get("at") or _now()
    return _record("end", "POST", f"{_turn_path(turn_id)}/end", {"status": status} | more, turn_id)


def compaction_made(session_id: str, context_before: int, **more: Any) -> Record:
    """Return the record of a compaction.

    Parameters
    ----------
    context_before : int
        In tokens.
    more
        ``compaction_id`` (a new one unless given), ``context_after``, ``turn_id``, ``trigger``,
        ``strategy``, ``calls_before``, ``requests_before`` and ``at``; now unless given.
    """
    more["compaction_id"] = more.get("compaction_id") or new_id()
    more["at"] = more.get("at") or _now()
    body = {"session_id": session_id, "context_before": context_before} | more
    return _record("compaction", "POST", "/compactions", body)


#: What makes each kind of record.
MAKERS: dict[str, Callable[..., Record]] = {
    "turn": turn_started,
    "request": request_made,
    "end": turn_ended,
    "compaction": compaction_made,
}


def calls_in(tool_calls: Any) -> int | list[dict[str, Any]]:
    """Return tool calls as the service takes them: how many, or each one's id and name.

    Raises
    ------
    InputError
        They are neither a number nor a list of them.
    """
    if tool_calls is None:
        return []
    if isinstance(tool_calls, int) and not isinstance(tool_calls, bool):
        return tool_calls
    if isinstance(tool_calls, str | bytes | Mapping) or not isinstance(tool_calls, Iterable):
        remedy = "Give how many there are, or a list of {'id': …, 'name': …}"
        raise InputError("are no calls", where="tool_calls", value=tool_calls, remedy=remedy)
    return [_call(one) for one in tool_calls]


def _call(one: Any) -> dict[str, Any]:
    if isinstance(one, Mapping):
        return {"id": one.get("id"), "name": one.get("name")}
    if isinstance(one, tuple | list) and len(one) == 2:
        return {"id": one[0], "name": one[1]}
    return {"id": getattr(one, "id", None), "name": getattr(one, "name", None)}


def _record(
    kind: str, method: str, path: str, body: dict[str, Any], turn_id: str | None = None
) -> Record:
    told = json_bytes({name: value for name, value in body.items() if value is not None})
    if len(told) > _LARGEST_BYTES:
        remedy = "Give the usage object alone, not the whole answer"
        raise InputError("is too large", where=kind, value=f"{len(told)} bytes", remedy=remedy)
    return Record(kind, method, path, told, turn_id)


def _turn_path(turn_id: object) -> str:
    if not isinstance(turn_id, str) or not turn_id:
        remedy = "Give the id that the turn was started with"
        raise InputError("must be a name", where="turn_id", value=turn_id, remedy=remedy)
    return f"/turns/{quote(turn_id, safe='', errors='surrogatepass')}"


def _now() -> str:
    """Return the time in UTC, as ISO 8601 to the millisecond."""
    seconds, milliseconds = divmod(time.time_ns() // 1_000_000, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03d}Z"
