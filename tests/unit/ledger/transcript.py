"""Lines of Claude Code transcripts written by hand, and what a reader tells of them."""

import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ledger.events import AgentTold, CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.readers.claude_code import ClaudeCodeReader

START = datetime(2026, 7, 1, 12, tzinfo=UTC)
START_MS = 1_782_907_200_000
OPUS = "claude-opus-4-6"


def tokens(uncached=1, read=100, write=10, output=5):
    """Anthropic's usage object; the write is of the 5-minute class."""
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "cache_creation": {"ephemeral_5m_input_tokens": write, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
    }


def use(tool_id, name="Bash", **given):
    return {"type": "tool_use", "id": tool_id, "name": name, "input": given}


def said(text="Done."):
    return {"type": "text", "text": text}


def notification(task_id, status="completed", tool_uses=None):
    usage = f"<usage><tool_uses>{tool_uses}</tool_uses></usage>" if tool_uses is not None else ""
    return (
        f"<task-notification>\n<task-id>{task_id}</task-id>\n<status>{status}</status>\n"
        f"{usage}</task-notification>"
    )


@dataclass
class Transcript:
    """A session file while it is written: every line a second after the one before."""

    session: str = "s1"
    agent: str | None = None
    lines: list = field(default_factory=list)
    seconds: float = 0
    _numbers: object = field(default_factory=itertools.count)

    def line(self, kind, *, uuid=None, **fields):
        """Add a chained line and return it."""
        own = uuid or f"{self.agent or self.session}-u{next(self._numbers)}"
        chained = [line for line in self.lines if "uuid" in line]
        stamp = (START + timedelta(seconds=self.seconds)).isoformat(timespec="milliseconds")
        line = {
            "parentUuid": chained[-1]["uuid"] if chained else None,
            "sessionId": self.session,
            "isSidechain": self.agent is not None,
            "type": kind,
            "uuid": own,
            "timestamp": stamp.replace("+00:00", "Z"),
        }
        if self.agent is not None:
            line["agentId"] = self.agent
        line |= fields
        self.seconds += 1
        self.lines.append(line)
        return line

    def loose(self, kind, **fields):
        """Add a line outside the chain."""
        self.lines.append({"type": kind, **fields})

    def user(self, content, **fields):
        return self.line("user", message={"role": "user", "content": content}, **fields)

    def answer(self, message_id, *blocks, usage=None, model=OPUS, **fields):
        """Add one line of a message; a message may have several."""
        message = {
            "id": message_id,
            "role": "assistant",
            "model": model,
            "content": list(blocks),
            "usage": tokens() if usage is None else usage,
        }
        return self.line("assistant", message=message, **fields)

    def result(self, *tool_ids, **fields):
        blocks = [{"type": "tool_result", "tool_use_id": t, "content": "ok"} for t in tool_ids]
        return self.user(blocks, **fields)

    def system(self, subtype, **fields):
        return self.line("system", subtype=subtype, **fields)

    def compacted(self, *, trigger="auto", before=167_000, **fields):
        """Add a boundary and the summary behind it."""
        last = self.lines[-1].get("uuid") if self.lines else None
        boundary = self.system(
            "compact_boundary",
            compactMetadata={"trigger": trigger, "preTokens": before},
            **fields,
        )
        boundary |= {"parentUuid": None, "logicalParentUuid": last}
        self.user("This session is being continued from …", isCompactSummary=True)
        return boundary

    def queued(self, text, mode):
        attachment = {"type": "queued_command", "prompt": text, "commandMode": mode}
        return self.line("attachment", attachment=attachment)

    def progress(self, call_id, agent_id, message):
        """Embed a sub-agent's line, as versions up to 2.1.42 do."""
        kept = {key: message[key] for key in ("type", "message", "uuid", "timestamp")}
        data = {"type": "agent_progress", "agentId": agent_id, "message": kept}
        return self.line("progress", data=data, parentToolUseID=call_id)

    def copied(self, session):
        """Return a fork's beginning: the same lines under another session id."""
        copy = Transcript(session, seconds=self.seconds)
        copy.lines = [
            line | {"sessionId": session} if "sessionId" in line else line for line in self.lines
        ]
        copy._numbers = itertools.count(len(copy.lines))
        return copy

    @property
    def text(self):
        return "".join(json.dumps(line) + "\n" for line in self.lines).encode()

    def write(self, folder, name=None):
        path = folder / f"{name or self.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.text)
        return path


@dataclass
class Told:
    """The last word on everything that a reader told of."""

    events: list
    reader: ClaudeCodeReader
    states: dict

    def _last(self, kind, key):
        return {getattr(event, key): event for event in self.events if isinstance(event, kind)}

    @property
    def started(self):
        return self._last(TurnStarted, "turn_id")

    @property
    def reached(self):
        return self._last(TurnReached, "turn_id")

    @property
    def requests(self):
        return self._last(RequestMade, "request_id")

    @property
    def compactions(self):
        return self._last(CompactionMade, "compaction_id")

    @property
    def agents(self):
        return [event for event in self.events if isinstance(event, AgentTold)]

    @property
    def turns(self):
        """``turn_id: (role, trigger, status, reason, requests, tool calls)``."""
        found = {}
        for turn_id, started in self.started.items():
            requests = [r for r in self.events if isinstance(r, RequestMade)]
            own = [request for request in requests if request.turn_id == turn_id]
            reached = self.reached[turn_id]
            found[turn_id] = (
                started.role,
                started.trigger,
                reached.status,
                reached.reason,
                len({request.request_id for request in own}),
                len({tool for request in own for tool, _ in request.tool_calls}),
            )
        return found

    @property
    def only_turn(self):
        (turn,) = self.turns.values()
        return turn


def read(*transcripts, saved=None, continued=False, role_by_project=False):
    """Feed lines to one reader and gather what it tells."""
    states = saved or {}
    reader = ClaudeCodeReader(
        "stem", states.get, continued=continued, role_by_project=role_by_project
    )
    for transcript in transcripts:
        lines = transcript.lines if isinstance(transcript, Transcript) else transcript
        for line in lines:
            reader.feed(json.loads(json.dumps(line)))
    return Told(reader.events, reader, states | reader.flush())
