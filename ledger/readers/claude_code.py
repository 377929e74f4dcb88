"""Claude Code transcripts: lines of a session file → ledger events.

A transcript is read as a state machine, one :class:`~ledger.readers.thread.Thread` for the main
agent and one for each sub-agent.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

import orjson

from ledger.clock import milliseconds
from ledger.events import UNKNOWN_SUBAGENT, AgentTold, Event, thread_of
from ledger.readers.boundary import boundary_of, settle
from ledger.readers.fields import count, text, text_or_none
from ledger.readers.thread import FINISHED, OpenRequest, Thread
from ledger.readers.told import HARNESS, compaction_told, request_told, standing_told
from ledger.readers.user_text import interrupts, is_prompt, notification_in, trigger_of
from ledger.usage import anthropic_usage

__all__ = ["HARNESS", "SKIPPED_TYPES", "ClaudeCodeReader"]

#: What a message holds: a text, or blocks.
Content: TypeAlias = str | Sequence[Mapping[str, Any]] | None

MAIN = "main"
#: A sub-agent whose parent named no type runs as this one.
DEFAULT_SUBAGENT = "general-purpose"
AGENT_TOOLS = frozenset({"Task", "Agent"})

#: A sub-agent's lines in its parent's file stand elsewhere than those in its own file, if any.
EMBEDDED = "#embedded"

SKIPPED_TYPES = frozenset(
    [
        "agent-color",
        "agent-name",
        "agent-setting",
        "ai-title",
        "atis-latch",
        "attachment-snapshot",
        "bridge-session",
        "custom-title",
        "file-history-delta",
        "file-history-snapshot",
        "frame-link",
        "last-prompt",
        "mode",
        "permission-mode",
        "pr-link",
        "queue-operation",
        "relocated",
        "summary",
        "worktree-state",
    ]
)
#: How many message ids back a late line may still find its request.
REMEMBERED_MESSAGES = 16


class ClaudeCodeReader:
    """Feeds on parsed lines, and gathers ``events``.

    Parameters
    ----------
    session_id : str
        Session of lines that name none: the file's stem.
    saved : callable
        ``key -> state | None``: a thread as an earlier file or import left it, by the key that
        :meth:`flush` gave it.
    continued : bool
        Whether the lines go on from an earlier import of the same file; a file that begins in
        the middle of a conversation is recognised by its first line's parent.
    role_by_project : bool
        Prefix every role with the name of the folder the agent worked in.
    """

    def __init__(
        self,
        session_id: str,
        saved: Callable[[str], Mapping[str, Any] | None],
        *,
        continued: bool = False,
        role_by_project: bool = False,
    ) -> None:
        self.events: list[Event] = []
        self.threads: dict[str, Thread] = {}
        self.unknown_types: dict[str, int] = {}
        self._session_id = session_id
        self._saved = saved
        self._restored: set[str] = set()
        self._continued = continued
        self._linked = continued
        self._by_project = role_by_project

    def feed(self, line: Mapping[str, Any]) -> None:
        """Take one parsed line."""
        kind = line.get("type")
        if not self._linked and line.get("uuid"):
            # A whole file begins at a root; a slice of one begins with somebody's child.
            self._continued = bool(line.get("parentUuid") or line.get("logicalParentUuid"))
            self._linked = True
        if kind in ("assistant", "user"):
            thread = self._thread(line, line.get("agentId") if line.get("isSidechain") else None)
            self._message(thread, line, line, line)
        elif kind == "progress":
            self._progress(line)
        elif kind == "system":
            self._system(self._thread(line, line.get("agentId")), line)
        elif kind == "attachment":
            self._attachment(line)
        elif kind not in SKIPPED_TYPES:
            name = str(kind)[:40]
            self.unknown_types[name] = self.unknown_types.get(name, 0) + 1

    def flush(self) -> dict[str, dict[str, Any]]:
        """Tell how every thread touched stands now, and return their states by the key to save."""
        for thread in self.threads.values():
            self.events += request_told(thread)
            self.events += compaction_told(thread)
            self.events += standing_told(thread)
        # Through JSON, where they go anyway: dataclasses.asdict takes five times as long.
        return {
            key: orjson.loads(orjson.dumps(thread))
            for key, thread in self.threads.items()
            if not self._outdated(key, thread)
        }

    def _outdated(self, key: str, thread: Thread) -> bool:
        """Whether this log is a copy made before the thread came to where it is known to stand."""
        if key in self._restored:
            return False
        known = (self._saved(key) or {}).get("last_ms")
        return known is not None and thread.last_ms is not None and thread.last_ms < known

    def _thread(self, line: Mapping[str, Any], agent_id: str | None, told_in: str = "") -> Thread:
        session_id = line.get("sessionId") or self._session_id
        key = thread_of(session_id, agent_id) + told_in
        thread = self.threads.get(key)
        if thread is None:
            state = self._saved(key) if self._continued else None
            if state:
                self._restored.add(key)
            thread = Thread.restored(state) if state else _new_thread(session_id, agent_id)
            self.threads[key] = thread
        return thread

    def _role(self, line: Mapping[str, Any], role: str) -> str:
        if not self._by_project:
            return role
        folder = text_or_none(line.get("cwd"), "cwd") or "unknown-project"
        return f"{PurePath(folder).name}/{role}"

    def _message(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        body: Mapping[str, Any],
        outer: Mapping[str, Any],
    ) -> None:
        message = body["message"]
        at_ms = milliseconds(body.get("timestamp") or outer.get("timestamp"))
        if body["type"] == "assistant":
            self._assistant(thread, line, body, message, at_ms)
        else:
            self._user(thread, line, body, message.get("content"), at_ms)

    # Assistant lines: requests, and the turns they begin.

    def _assistant(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        body: Mapping[str, Any],
        message: Mapping[str, Any],
        at_ms: int | None,
    ) -> None:
        if message.get("model") == "<synthetic>" or body.get("isApiErrorMessage"):
            failed = body.get("isApiErrorMessage") or body.get("error")
            if failed and thread.turn_id and not thread.prompt_id:
                self._reach(thread, "api_error", at_ms)
            return
        message_id = message.get("id") or body.get("uuid") or ""
        request = thread.request
        if request is None or request.request_id != message_id:
            self.events += request_told(thread)
            request = self._open_request(thread, line, message_id, message, at_ms)
        usage = message.get("usage") or {}
        if usage != request.raw_usage:
            # Every line of a message repeats the usage, and the last one has the whole output.
            request.usage, request.raw_usage = anthropic_usage(usage), usage
        if settle(thread, request):
            # The turn that a fork goes on with is made by its first request.
            self.events += request_told(thread)
            self.events += compaction_told(thread)
            thread.boundary = None
        self._blocks(thread, request, message.get("content") or (), at_ms)

    def _open_request(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        message_id: str,
        message: Mapping[str, Any],
        at_ms: int | None,
    ) -> OpenRequest:
        left = thread.request
        if left is not None:
            thread.recent[left.request_id] = (left.position, left.turn_id, left.asks)
        model = text_or_none(message.get("model"), "message.model")
        known = thread.recent.get(message_id)
        if known is None:
            text(message_id, "message.id")
            if thread.compacting:
                thread.turn_id = None
            elif thread.prompt_id or thread.turn_id is None:
                self._begin(thread, line, model, at_ms)
            known = (thread.requests, thread.turn_id, False)
            thread.requests += 1
            thread.recent[message_id] = known
            if len(thread.recent) > REMEMBERED_MESSAGES:
                del thread.recent[next(iter(thread.recent))]
        position, turn_id, asked = known
        if turn_id == thread.turn_id:
            # Of a turn told twice, some messages are still known and others are not.
            thread.requests = max(thread.requests, position + 1)
        thread.request = OpenRequest(
            message_id, turn_id, position, at_ms, model, asked_before=asked
        )
        return thread.request

    def _begin(
        self, thread: Thread, line: Mapping[str, Any], model: str | None, at_ms: int | None
    ) -> None:
        if thread.turn_id:
            self.events += standing_told(thread)
        elif thread.prompt_id is None:
            self._adopt_prompt(thread, line.get("parentUuid"))
        seen = thread.prompt_id is not None
        turn_id = thread.prompt_id or f"{thread.thread_id}/from-{line.get('uuid')}"
        if thread.agent_id and not thread.turns_begun:
            # The id under which the parent's log knows it, too.
            turn_id = thread.thread_id
        text(turn_id, "uuid")
        role = MAIN if thread.agent_id is None else UNKNOWN_SUBAGENT
        thread.started = {
            "turn_id": turn_id,
            "role": self._role(line, role),
            "model": model,
            "at_ms": thread.prompt_ms if seen else at_ms,
            "trigger": thread.prompt_trigger if seen else "unknown",
            # A log that begins inside a turn does not tell how many calls came before.
            "entry_calls": 0 if seen else None,
            "entry_requests": 0 if seen else None,
        }
        thread.turn_id = turn_id
        thread.turns_begun += 1
        thread.prompt_id = thread.prompt_ms = None
        thread.calls = thread.requests = 0
        thread.last, thread.last_ms = "prompt", at_ms

    def _adopt_prompt(self, thread: Thread, prompt_id: str | None) -> None:
        """Take over the prompt this line answers, where the session got a new id in between."""
        for other in self.threads.values():
            if prompt_id and other.prompt_id == prompt_id:
                thread.prompt_id, thread.prompt_ms = other.prompt_id, other.prompt_ms
                thread.prompt_trigger = other.prompt_trigger
                other.prompt_id = other.prompt_ms = None
                return

    def _blocks(
        self,
        thread: Thread,
        request: OpenRequest,
        blocks: Sequence[Mapping[str, Any]],
        at_ms: int | None,
    ) -> None:
        current = request.turn_id == thread.turn_id
        latest = current and request.position == thread.requests - 1
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use":
                thread.calls += self._tool(thread, request, block) and current
            if latest and not thread.prompt_id and kind in ("tool_use", "text", "thinking"):
                self._reach(thread, "tool_use" if request.asks else kind, at_ms)

    def _tool(self, thread: Thread, request: OpenRequest, block: Mapping[str, Any]) -> bool:
        """Take a tool call, and say whether it is a new one."""
        tool_id = text(block["id"], "tool_use.id")
        name = text_or_none(block.get("name"), "tool_use.name") or "unknown"
        if name in AGENT_TOOLS:
            asked = (block.get("input") or {}).get("subagent_type")
            role = text_or_none(asked, "tool_use.input.subagent_type")
            thread.tasks[tool_id] = role or DEFAULT_SUBAGENT
        if any(tool_id == known for known, _ in request.tools):
            return False
        request.tools.append((tool_id, name))
        return True

    def _reach(self, thread: Thread, last: str, at_ms: int | None) -> None:
        if thread.is_past(at_ms):
            return
        thread.last = last
        thread.last_ms = at_ms if at_ms is not None else thread.last_ms

    # User lines: prompts, results, interruptions.

    def _user(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        body: Mapping[str, Any],
        content: Content,
        at_ms: int | None,
    ) -> None:
        if body.get("isCompactSummary") or thread.compacting:
            return
        if isinstance(content, str):
            texts, results = [content], []
        else:
            texts = [b.get("text") or "" for b in content or () if b.get("type") == "text"]
            results = [b for b in content or () if b.get("type") == "tool_result"]
        if any(interrupts(words) for words in texts):
            if not thread.prompt_id or thread.last not in FINISHED:
                self._reach(thread, "interrupted", at_ms)
            return
        if results:
            self._result(thread, line, body, results, at_ms)
            return
        self._prompt(thread, line, body, texts[0] if texts else "", at_ms)

    def _prompt(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        body: Mapping[str, Any],
        words: str,
        at_ms: int | None,
    ) -> None:
        if not is_prompt(words) or (body.get("isMeta") and not thread.scheduled):
            return
        trigger = trigger_of(words)
        if trigger == "task_notification":
            self._notification(thread, line, words, at_ms)
        elif thread.scheduled and trigger == "prompt":
            trigger = "scheduled"
        thread.scheduled = False
        if thread.turn_id and body.get("uuid") == thread.turn_id:
            thread.prompt_id = thread.prompt_ms = None  # the current turn's own, told again
            return
        thread.prompt_id = body.get("uuid") or f"{thread.thread_id}/at-{at_ms}"
        thread.prompt_ms = at_ms
        thread.prompt_trigger = trigger

    def _result(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        body: Mapping[str, Any],
        results: Sequence[Mapping[str, Any]],
        at_ms: int | None,
    ) -> None:
        if thread.turn_id and not thread.prompt_id:
            self._reach(thread, "ended" if body.get("toolEndsTurn") else "tool_result", at_ms)
        told = body.get("toolUseResult")
        if not isinstance(told, dict) or not told.get("agentId"):
            return
        asked = thread.tasks.get(str(results[0].get("tool_use_id")))
        role = told.get("agentType") or asked
        self._agent_told(
            thread,
            line,
            text(told["agentId"], "toolUseResult.agentId"),
            text_or_none(role, "toolUseResult.agentType"),
            status=told.get("status"),
            calls=count(told.get("totalToolUseCount"), "toolUseResult.totalToolUseCount"),
            model=text_or_none(told.get("resolvedModel"), "toolUseResult.resolvedModel"),
            at_ms=at_ms,
        )

    # Sub-agents, as their parents tell of them.

    def _progress(self, line: Mapping[str, Any]) -> None:
        data = line.get("data")
        if not isinstance(data, dict) or data.get("type") != "agent_progress":
            return
        nested = data.get("message")
        agent_id = data.get("agentId")
        if not agent_id or not isinstance(nested, dict):
            return
        text(agent_id, "data.agentId")
        if nested.get("type") not in ("assistant", "user"):
            return
        parent = self._thread(line, line.get("agentId") if line.get("isSidechain") else None)
        if agent_id not in parent.agents:
            parent.agents.append(agent_id)
            role = parent.tasks.get(str(line.get("parentToolUseID")))
            self._agent_told(parent, line, agent_id, role)
        thread = self._thread(line, agent_id, EMBEDDED)
        if nested["type"] == "assistant" and thread.turn_id is None and not thread.prompt_id:
            # Some versions leave the sub-agent's prompt out; its run has a beginning all the same.
            thread.prompt_id = thread.thread_id
            thread.prompt_ms = milliseconds(nested.get("timestamp") or line.get("timestamp"))
        self._message(thread, line, nested, line)

    def _notification(
        self, thread: Thread, line: Mapping[str, Any], words: str, at_ms: int | None
    ) -> None:
        told = notification_in(words)
        if told is not None and told.task_id in thread.agents:
            self._agent_told(
                thread,
                line,
                told.task_id,
                None,
                status=told.status,
                calls=told.tool_calls,
                at_ms=at_ms,
            )

    def _agent_told(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        agent_id: str,
        role: str | None,
        *,
        status: str | None = None,
        calls: int | None = None,
        model: str | None = None,
        at_ms: int | None = None,
    ) -> None:
        if agent_id not in thread.agents:
            thread.agents.append(agent_id)
        ended = {"completed": "ended", "async_launched": None, None: None}.get(status, "cut")
        self.events.append(
            AgentTold(
                session_id=thread.session_id,
                agent_id=agent_id,
                source=HARNESS,
                role=self._role(line, role) if role else None,
                parent_turn_id=thread.turn_id,
                at_ms=at_ms if ended else None,
                status=ended,
                tool_calls=calls if ended else None,
                model=model,
            )
        )

    # Everything else that matters: compactions, scheduled prompts, queued notifications.

    def _system(self, thread: Thread, line: Mapping[str, Any]) -> None:
        subtype = line.get("subtype")
        at_ms = milliseconds(line.get("timestamp"))
        if thread.is_past(at_ms):
            return
        if subtype == "scheduled_task_fire":
            thread.scheduled = True
        elif subtype in ("stop_hook_summary", "turn_duration"):
            # The agent finished without a last word; hooks that re-open the turn come later.
            if thread.standing[0] == "open" and not thread.prompt_id:
                thread.last = "stopped"
        elif subtype == "compact_boundary":
            self._compaction(thread, line, at_ms, "compactMetadata", "summary")
        elif subtype == "microcompact_boundary":
            self._compaction(thread, line, at_ms, "microcompactMetadata", "clear")

    def _compaction(
        self,
        thread: Thread,
        line: Mapping[str, Any],
        at_ms: int | None,
        metadata: str,
        strategy: str,
    ) -> None:
        self.events += request_told(thread)
        self.events += compaction_told(thread)
        thread.boundary = boundary_of(thread, line, at_ms, metadata, strategy)

    def _attachment(self, line: Mapping[str, Any]) -> None:
        attachment = line.get("attachment")
        if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
            return
        words = attachment.get("prompt")
        if attachment.get("commandMode") == "task-notification" and isinstance(words, str):
            thread = self._thread(line, line.get("agentId") if line.get("isSidechain") else None)
            self._notification(thread, line, words, milliseconds(line.get("timestamp")))


def _new_thread(session_id: object, agent_id: object) -> Thread:
    return Thread(text(session_id, "sessionId"), text_or_none(agent_id, "agentId"))
