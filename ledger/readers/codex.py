"""Codex rollouts: lines of a session file → ledger events.

A request is what stands between two ``token_count`` events whose running total differs. It is
known by its turn and the total before it, which a fork copies with the history.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import orjson

from compactuary.errors import InputError
from ledger.clock import milliseconds
from ledger.events import AgentTold, Event, thread_of
from ledger.readers.codex_rollout import Rollout, uuid7_ms
from ledger.readers.epoch import epoch_ms
from ledger.readers.fields import text, text_or_none
from ledger.readers.turn import Turn, boundary_in, compaction_made, project_role
from ledger.usage import usage_from
from ledger.usage_fields import tokens

__all__ = ["HARNESS", "LINE_TYPES", "CodexReader"]

HARNESS = "codex"
#: A sub-agent that was spawned without a role runs as this one.
DEFAULT_SUBAGENT = "default"
LINE_TYPES = frozenset(
    [
        "compacted",
        "event_msg",
        "inter_agent_communication_metadata",
        "response_item",
        "session_meta",
        "turn_context",
        "world_state",
    ]
)
_CALLS = {
    "custom_tool_call": "custom",
    "function_call": "function",
    "image_generation_call": "image_generation",
    "local_shell_call": "local_shell",
    "tool_search_call": "tool_search",
    "web_search_call": "web_search",
}


class CodexReader:
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
        stem = PurePath(log).name.split(".")[0]
        self._at = Rollout.restored(state) if state else Rollout(stem)

    def feed(self, line: Mapping[str, Any]) -> None:
        """Take one parsed line."""
        kind = line.get("type")
        if kind not in LINE_TYPES:
            name = str(kind)[:40]
            self.unknown_types[name] = self.unknown_types.get(name, 0) + 1
            return
        payload = line.get("payload") or {}
        at_ms = milliseconds(line.get("timestamp"))
        if kind == "response_item":
            self._item(payload, at_ms)
        elif kind == "event_msg":
            self._event(payload, at_ms)
        elif kind == "session_meta":
            self._meta(payload)
        elif kind == "turn_context":
            self._context(payload)
        elif kind == "compacted":
            self._compacted(payload, line.get("timestamp"), at_ms)

    def flush(self) -> dict[str, dict[str, Any]]:
        """Tell how the turn stands now, and return the state by the key to save."""
        if not self._at.undecided:
            self._tell_boundary()
        self._tell_standing()
        return {self._log: orjson.loads(orjson.dumps(self._at))}

    # Who runs: the session, its role and model.

    def _meta(self, payload: Mapping[str, Any]) -> None:
        at = self._at
        own = text(payload["id"], "session_meta.id")
        if at.identified:
            # A resumption, or the header of the rollout whose history is copied here.
            at.copied = at.copied or own not in (at.agent_id, at.session_id)
            return
        at.identified = True
        at.born_ms = uuid7_ms(own) or milliseconds(payload.get("timestamp"))
        at.folder = text_or_none(payload.get("cwd"), "session_meta.cwd")
        at.provider = text_or_none(payload.get("model_provider"), "session_meta.model_provider")
        source = payload.get("source")
        spawned = source.get("subagent") if isinstance(source, Mapping) else None
        if not spawned:
            at.session_id = own
            return
        spawn = spawned.get("thread_spawn") if isinstance(spawned, Mapping) else None
        parents = (
            payload.get("session_id"),
            payload.get("parent_thread_id"),
            (spawn or {}).get("parent_thread_id"),
        )
        parent = next((parent for parent in parents if parent and parent != own), own)
        at.session_id = text(parent, "session_meta.session_id")
        at.agent_id = own
        at.role = text(_subagent_role(spawned, spawn), "session_meta.source.subagent")

    def _context(self, payload: Mapping[str, Any]) -> None:
        at = self._at
        at.model = text_or_none(payload.get("model"), "turn_context.model") or at.model
        if at.turn is not None and not at.turn.requests:
            at.turn.model = at.model

    # Events: tasks, prompts and usage.

    def _event(self, payload: Mapping[str, Any], at_ms: int | None) -> None:
        kind = payload.get("type")
        if kind == "token_count":
            self._token_count(payload, at_ms)
        elif kind == "task_started":
            self._task_started(payload, at_ms)
        elif kind in ("task_complete", "turn_aborted"):
            self._task_over(payload, at_ms)
        elif kind == "user_message":
            self._prompt(at_ms)
        elif kind == "error":
            self._at.failed = True
        elif kind in ("collab_agent_spawn_end", "sub_agent_activity"):
            self._agent(payload)

    def _task_started(self, payload: Mapping[str, Any], at_ms: int | None) -> None:
        at = self._at
        told = text(payload["turn_id"], "task_started.turn_id")
        # Small numbers, as some front ends count their turns, are unique in a session only.
        turn_id = told if uuid7_ms(told) else f"{at.session_id}/{told}"
        if at.turn is not None and at.turn.turn_id == turn_id:
            return
        self._close("superseded")
        at.tasked = True
        begun_ms = uuid7_ms(told)
        if begun_ms is None:
            whole_ms = epoch_ms(payload.get("started_at"), "task_started.started_at", per_second=1)
            begun_ms = None if whole_ms is None else whole_ms + 999
        at.copied = begun_ms is not None and at.born_ms is not None and begun_ms < at.born_ms
        at.prompted = at.failed = False
        at.turn = None if at.copied else self._new_turn(turn_id, at_ms)

    def _new_turn(self, turn_id: str, at_ms: int | None, *, from_its_start: bool = True) -> Turn:
        at = self._at
        return Turn(
            turn_id=turn_id,
            session_id=at.session_id,
            thread_id=thread_of(at.session_id, at.agent_id),
            source=HARNESS,
            role=self._role(at.role),
            at_ms=at_ms,
            model=at.model,
            provider=at.provider,
            trigger="prompt" if from_its_start else "unknown",
            from_its_start=from_its_start,
        )

    def _role(self, role: str) -> str:
        return project_role(role, self._at.folder, by_project=self._by_project)

    def _prompt(self, at_ms: int | None) -> None:
        """Take a user's message: it begins a turn only where no task does."""
        at = self._at
        at.prompted = True
        if not at.tasked and not at.copied:
            self._close("superseded")
            turn_id = f"{thread_of(at.session_id, at.agent_id)}/at-{at_ms}"
            at.turn = self._new_turn(text(turn_id, "session_meta.id"), at_ms)

    def _task_over(self, payload: Mapping[str, Any], at_ms: int | None) -> None:
        at = self._at
        if at.turn is None:
            return
        self._decide()
        if payload.get("type") == "turn_aborted":
            reason = text_or_none(payload.get("reason"), "turn_aborted.reason") or "interrupted"
            at.turn.reach("cut", reason, at_ms)
        elif at.failed and not payload.get("last_agent_message"):
            at.turn.reach("cut", "api_error", at_ms)
        else:
            at.turn.reach("ended", "task_complete", at_ms)
        self._tell_standing()
        self._forget_request()

    def _close(self, reason: str) -> None:
        """Leave the turn that was current when another one begins."""
        at = self._at
        self._decide()
        if at.turn is not None and at.turn.status == "open":
            at.turn.reach("cut", reason, None)
        self._tell_standing()
        self._forget_request()
        at.turn = None

    def _decide(self) -> None:
        """Take a compaction at the beginning of a task that is over by now for all there was."""
        at = self._at
        if at.undecided and at.boundary is not None:
            at.boundary.trigger, at.boundary.turn_id = "manual", None
        at.undecided = False

    def _forget_request(self) -> None:
        at = self._at
        at.asked_ms, at.asking, at.tools, at.unnamed_tools = None, False, [], 0

    # Response items: what requests answer.

    def _item(self, payload: Mapping[str, Any], at_ms: int | None) -> None:
        at = self._at
        kind = payload.get("type")
        if at.copied:
            return
        answer = kind in _CALLS or kind == "reasoning"
        if not answer and not (kind == "message" and payload.get("role") == "assistant"):
            return
        if at.turn is None:
            self._begin_inside(payload, at_ms)
        turn = at.turn
        if turn is None:
            return
        if not turn.told:
            self.events.append(turn.started())
        at.failed = False
        if not at.asking:
            at.asking, at.asked_ms = True, at_ms
        if kind in _CALLS:
            self._call(turn, str(kind), payload)
        finished = kind == "message" and not at.tasked and payload.get("phase") != "commentary"
        status, reason = ("ended", "final_text") if finished else ("open", "in_flight")
        turn.reach(status, reason, at_ms)

    def _begin_inside(self, payload: Mapping[str, Any], at_ms: int | None) -> None:
        """Begin a turn whose beginning is not in the log."""
        at = self._at
        told = payload.get("internal_chat_message_metadata_passthrough") or {}
        thread_id = thread_of(at.session_id, at.agent_id)
        named = text_or_none(told.get("turn_id"), "response_item.turn_id")
        born_ms = uuid7_ms(named or "")
        if born_ms is not None and at.born_ms is not None and born_ms < at.born_ms:
            return
        turn_id = named if named and born_ms else f"{thread_id}/{named or f'from-{at_ms}'}"
        at.turn = self._new_turn(text(turn_id, "session_meta.id"), at_ms, from_its_start=False)

    def _call(self, turn: Turn, kind: str, payload: Mapping[str, Any]) -> None:
        at = self._at
        turn.calls += 1
        name = text_or_none(payload.get("name"), f"{kind}.name") or _CALLS[kind]
        told = payload.get("call_id") or payload.get("id")
        call_id = text_or_none(told, f"{kind}.call_id")
        if call_id is None:
            at.unnamed_tools += 1
        elif any(call_id == known for known, _ in at.tools):
            turn.calls -= 1
        else:
            at.tools.append((call_id, name))

    def _token_count(self, payload: Mapping[str, Any], at_ms: int | None) -> None:
        at = self._at
        info = payload.get("info")
        if not info:
            return
        total = _total_of(info.get("total_token_usage") or {})
        before, at.total = at.total, total
        if total == before:
            return  # rate limits told again, or the estimate behind a compaction
        usage = usage_from(info.get("last_token_usage") or {}, "codex")
        at.context_tokens = usage.context_tokens + usage.output
        turn = at.turn
        if at.copied or turn is None:
            return
        if not turn.told:
            self.events.append(turn.started())
        self._settle(usage.context_tokens)
        asked_ms = at_ms if at.asked_ms is None else at.asked_ms
        request_id = f"{turn.turn_id}#{before or 0}"
        self.events.append(
            turn.request(request_id, asked_ms, usage, tuple(at.tools), at.unnamed_tools)
        )
        if turn.status == "open":
            turn.reach("open", "in_flight", at_ms)
        self._forget_request()

    # Compactions and sub-agents.

    def _compacted(self, payload: Mapping[str, Any], stamp: object, at_ms: int | None) -> None:
        at = self._at
        if at.copied:
            return
        self._tell_boundary()
        turn = at.turn if at.turn is not None and at.turn.status == "open" else None
        at.undecided = turn is not None and not turn.told and not at.prompted
        named = text_or_none(payload.get("window_id"), "compacted.window_id")
        at.boundary = boundary_in(
            turn,
            named or f"{thread_of(at.session_id, at.agent_id)}/compacted-{stamp}",
            at_ms,
            trigger="auto" if turn else "manual",
            context_before=at.context_tokens,
        )

    def _settle(self, context_tokens: int) -> None:
        """Give the waiting compaction the size of the first request after it."""
        boundary = self._at.boundary
        if boundary is not None:
            boundary.context_after = context_tokens
            self._at.undecided = False
            self._tell_boundary()

    def _tell_boundary(self) -> None:
        at = self._at
        if at.boundary is None:
            return
        self.events.append(compaction_made(at.boundary, at.session_id))
        if at.boundary.context_after is not None:
            at.boundary = None

    def _tell_standing(self) -> None:
        turn = self._at.turn
        if turn is not None and turn.told:
            self.events.append(turn.reached(tool_calls=turn.calls))

    def _agent(self, payload: Mapping[str, Any]) -> None:
        at = self._at
        if at.copied or at.turn is None or payload.get("kind") not in (None, "started"):
            return
        told = payload.get("new_thread_id") or payload.get("agent_thread_id")
        agent_id = text_or_none(told, "agent_thread_id")
        if agent_id is not None:
            role = text_or_none(payload.get("new_agent_role"), "new_agent_role")
            self.events.append(
                AgentTold(
                    session_id=at.session_id,
                    agent_id=agent_id,
                    source=HARNESS,
                    role=self._role(role) if role else None,
                    parent_turn_id=at.turn.turn_id,
                )
            )


def _subagent_role(spawned: object, spawn: Mapping[str, Any] | None) -> object:
    """Return the role of a sub-agent, which the header tells in three shapes."""
    if not isinstance(spawned, Mapping):
        return spawned
    if spawn is not None:
        return spawn.get("agent_role") or DEFAULT_SUBAGENT
    return spawned.get("other") or next(iter(spawned))


def _total_of(usage: Mapping[str, Any]) -> int:
    """Return the session's running total, which may be larger than any request's."""
    told = usage.get("total_tokens")
    if told is None:
        told = tokens(usage, "input_tokens") + tokens(usage, "output_tokens")
    if type(told) is not int or told < 0:
        raise InputError(
            "not a count of tokens",
            where="total_token_usage.total_tokens",
            value=told,
            remedy="Write a non-negative integer.",
        )
    return told
