"""Pi and Oh My Pi sessions: lines of a session file → ledger events.

Entries form a tree, but are written as they happen, so that the order of lines is that of the
work. An entry is known by its short id and its time, which a fork copies both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import orjson

from ledger.clock import milliseconds
from ledger.events import Event
from ledger.readers.fields import count, text, text_or_none
from ledger.readers.thread import Boundary
from ledger.readers.turn import MAIN, Turn, boundary_in, compaction_made, project_role
from ledger.usage import Usage
from ledger.usage_conventions import CONVENTIONS

__all__ = ["HARNESS", "SKIPPED_TYPES", "PiReader", "is_entry"]

HARNESS = "pi"
SKIPPED_TYPES = frozenset(
    [
        "branch_summary",
        "credential_pin",
        "custom",
        "custom_message",
        "label",
        "session_info",
        "thinking_level_change",
        "title",
        "title_change",
        "ttsr_injection",
    ]
)
_READ_TYPES = frozenset(["compaction", "message", "model_change", "session", "session_init"])
#: The tool by which a sub-agent of Oh My Pi hands its result back, instead of a last word.
_YIELD = "yield"
REMEMBERED_ENTRIES = 8


def is_entry(value: Mapping[str, Any]) -> bool:
    """Say whether a JSON object is a line of a session file."""
    kind = value.get("type")
    if kind == "message":
        return isinstance(value.get("message"), dict) and "role" in value["message"]
    if kind == "title":
        return "updatedAt" in value
    return isinstance(kind, str) and kind in _READ_TYPES and "id" in value


@dataclass(slots=True)
class Session:
    """Where the reader stands in a session file.

    A prompt waits in ``prompt_*`` until its first request.
    """

    session_id: str
    role: str = MAIN
    folder: str | None = None
    #: The first line of Oh My Pi's files is written anew when the title changes.
    titled: bool = False
    subagent: bool = False
    turn: Turn | None = None
    prompt_id: str | None = None
    prompt_ms: int | None = None
    boundary: Boundary | None = None
    #: The prompt that waited when the compaction came.
    compacted_before: str | None = None
    #: The last entries, so that a line written twice counts once.
    recent: list[str] = field(default_factory=list)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "Session":
        """Rebuild a session from what the reader's ``flush`` made of it."""
        session = cls(**state)
        session.turn = Turn.restored(state["turn"])
        session.boundary = Boundary(**state["boundary"]) if state["boundary"] else None
        return session


class PiReader:
    """Feeds on parsed lines, and gathers ``events``.

    Parameters
    ----------
    log : str
        The file's path, under which the state is kept; its stem names a session without a header.
    saved : callable
        ``key -> state | None``: where an earlier import of the file left off.
    continued : bool
        Whether the lines go on from an earlier import.
    role_by_project : bool
        Prefix every role with the name of the folder the agent worked in.
    """

    def __init__(
        self,
        log: str,
        saved: Callable[[str], Mapping[str, Any] | None],
        *,
        continued: bool = False,
        role_by_project: bool = False,
    ) -> None:
        self.events: list[Event] = []
        self.unknown_types: dict[str, int] = {}
        self._log = log
        self._by_project = role_by_project
        state = saved(log) if continued else None
        # Files are named <time>_<session>.jsonl.
        stem = PurePath(log).name.split(".")[0].rpartition("_")[2]
        self._at = Session.restored(state) if state else Session(stem)

    @property
    def head_changes(self) -> bool:
        """Whether the beginning of the file may change without the file being another one."""
        return self._at.titled

    def feed(self, line: Mapping[str, Any]) -> None:
        """Take one parsed line."""
        kind = line.get("type")
        at = self._at
        if kind == "message":
            self._message(line, line["message"])
        elif kind == "session":
            at.session_id = text(line["id"], "session.id")
            at.folder = text_or_none(line.get("cwd"), "session.cwd")
        elif kind == "session_init":
            at.role = text_or_none(line.get("agent"), "session_init.agent") or at.role
            at.subagent = True
        elif kind == "compaction":
            self._compaction(line)
        elif kind == "title":
            at.titled = True
        elif kind != "model_change" and kind not in SKIPPED_TYPES:
            name = str(kind)[:40]
            self.unknown_types[name] = self.unknown_types.get(name, 0) + 1

    def flush(self) -> dict[str, dict[str, Any]]:
        """Tell how the turn stands now, and return the state by the key to save."""
        if self._at.boundary is not None:
            self.events.append(compaction_made(self._at.boundary, self._at.session_id))
        self._tell_standing()
        return {self._log: orjson.loads(orjson.dumps(self._at))}

    def _message(self, line: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        role = message.get("role")
        at_ms = milliseconds(line.get("timestamp"))
        if role in ("user", "assistant"):
            recent = self._at.recent
            if _key(line) in recent:
                return
            self._at.recent = [*recent[1 - REMEMBERED_ENTRIES :], _key(line)]
        if role == "user":
            self._user(line, message, at_ms)
        elif role == "assistant":
            self._assistant(line, message, at_ms)
        elif role == "toolResult":
            turn = self._at.turn
            if turn is not None and turn.status == "open":
                turn.reach("open", "in_flight", at_ms)

    def _user(self, line: Mapping[str, Any], message: Mapping[str, Any], at_ms: int | None) -> None:
        at = self._at
        running = at.turn is not None and at.turn.status == "open" and at.prompt_id is None
        if message.get("steering") and running:
            return  # a word while the agent works is no turn
        at.prompt_id, at.prompt_ms = _key(line), at_ms

    def _assistant(
        self, line: Mapping[str, Any], message: Mapping[str, Any], at_ms: int | None
    ) -> None:
        at = self._at
        usage = CONVENTIONS["pi"](message.get("usage") or {})
        stop = text_or_none(message.get("stopReason"), "message.stopReason")
        tools = {
            text(block["id"], "toolCall.id"): text(block["name"], "toolCall.name")
            for block in message.get("content") or ()
            if block.get("type") == "toolCall"
        }
        if stop in ("error", "aborted") and usage == Usage():
            # It came to nothing: it is tried again, or leaves the turn where it stands.
            if at.turn is not None and at.prompt_id is None:
                at.turn.calls += len(tools)
                at.turn.reach("cut", _reason(stop), at_ms)
            return
        turn = self._turn(line, message, at_ms)
        turn.model = text_or_none(message.get("model"), "message.model") or turn.model
        turn.calls += len(tools)
        self._settle(turn, usage)
        self.events.append(turn.request(_key(line), at_ms, usage, tuple(tools.items())))
        if at.subagent and _YIELD in tools.values():
            turn.reach("ended", "tool_ended_turn", at_ms)
        else:
            turn.reach(*_standing(stop, asks=bool(tools)), at_ms)

    def _turn(self, line: Mapping[str, Any], message: Mapping[str, Any], at_ms: int | None) -> Turn:
        """Return the turn of a request: the current one, or that of the waiting prompt."""
        at = self._at
        if at.turn is not None and at.prompt_id is None:
            return at.turn
        self._tell_standing()
        seen = at.prompt_id is not None
        turn = Turn(
            turn_id=at.prompt_id or f"from-{_key(line)}",
            session_id=at.session_id,
            thread_id=at.session_id,
            source=HARNESS,
            role=project_role(at.role, at.folder, by_project=self._by_project),
            at_ms=at.prompt_ms if seen else at_ms,
            model=text_or_none(message.get("model"), "message.model"),
            provider=text_or_none(message.get("provider"), "message.provider"),
            trigger="prompt" if seen else "unknown",
            from_its_start=seen,
        )
        if at.boundary is not None and at.compacted_before == turn.turn_id:
            at.boundary.turn_id = turn.turn_id
        at.turn, at.prompt_id, at.prompt_ms = turn, None, None
        # Forks begin with copies of another session's requests, which make no turn.
        self.events.append(turn.started(on_request=True))
        return turn

    def _compaction(self, line: Mapping[str, Any]) -> None:
        at = self._at
        if at.boundary is not None:
            self.events.append(compaction_made(at.boundary, at.session_id))
        turn = at.turn if at.turn is not None and at.prompt_id is None else None
        if turn is not None and turn.status != "open" and turn.reason != "api_error":
            turn = None
        at.compacted_before = at.prompt_id
        at.boundary = boundary_in(
            turn,
            _key(line),
            milliseconds(line.get("timestamp")),
            # Only in mid-turn it is certain that nobody asked for it.
            trigger="auto" if turn is not None or at.prompt_id is not None else None,
            context_before=count(line.get("tokensBefore"), "compaction.tokensBefore"),
        )

    def _settle(self, turn: Turn, usage: Usage) -> None:
        """Give the waiting compaction the size of the first request after it."""
        boundary = self._at.boundary
        if boundary is not None:
            boundary.context_after = usage.context_tokens
            self.events.append(compaction_made(boundary, turn.session_id))
            self._at.boundary = None

    def _tell_standing(self) -> None:
        at = self._at
        if at.turn is None:
            return
        standing = at.turn.reached(tool_calls=at.turn.calls)
        if at.turn.status == "open" and at.prompt_id is not None:
            standing = replace(standing, status="cut", reason="superseded")
        self.events.append(standing)


def _key(line: Mapping[str, Any]) -> str:
    """Return what an entry is known by in every file it is copied to."""
    entry = text(line["id"], "id")
    return f"{entry}-{milliseconds(line.get('timestamp')) or 0}"


def _reason(stop: str) -> str:
    return "interrupted" if stop == "aborted" else "api_error"


def _standing(stop: str | None, *, asks: bool) -> tuple[str, str]:
    """Return status and reason of a turn whose latest request stopped like this."""
    if stop in ("error", "aborted"):
        return "cut", _reason(stop)
    if stop == "toolUse" or asks:
        return "open", "in_flight"
    if stop == "stop":
        return "ended", "final_text"
    return ("open", "in_flight") if stop is None else ("cut", stop)
