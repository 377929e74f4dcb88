"""Codex rollouts written by hand: ids and numbers only."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

START = datetime(2026, 7, 1, 12, tzinfo=UTC)
START_MS = 1_782_907_200_000
MODEL = "gpt-5.5"


def uuid7(at_ms, own=0):
    """A UUID of version 7 that begins with this time."""
    digits = f"{at_ms:012x}7{own:03x}8000{own:012x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


@dataclass
class Rollout:
    """A rollout while it is written: every line a second after the one before."""

    session: str = uuid7(START_MS - 1000)
    lines: list = field(default_factory=list)
    seconds: int = 0
    total: int = 0
    turn_id: str = ""

    def line(self, kind, payload):
        stamp = (START + timedelta(seconds=self.seconds)).isoformat(timespec="milliseconds")
        self.seconds += 1
        self.lines.append(
            {"timestamp": stamp.replace("+00:00", "Z"), "type": kind, "payload": payload}
        )
        return self

    def event(self, kind, /, **payload):
        return self.line("event_msg", {"type": kind, **payload})

    def item(self, kind, /, **payload):
        return self.line("response_item", {"type": kind, **payload})

    def meta(self, **payload):
        own = {"id": self.session, "timestamp": "2026-07-01T11:59:59.000Z", "cwd": "/home/x/shop"}
        return self.line("session_meta", own | {"model_provider": "openai"} | payload)

    def task(self, turn_id=None, *, prompt=True):
        """Begin a turn as Codex does."""
        self.turn_id = turn_id or uuid7(START_MS + self.seconds * 1000)
        self.event("task_started", turn_id=self.turn_id, model_context_window=258_400)
        self.line("turn_context", {"turn_id": self.turn_id, "model": MODEL})
        if prompt:
            self.event("user_message", message="SECRET")
        return self

    def calls(self, *call_ids, name="exec_command"):
        for call_id in call_ids:
            self.item("function_call", name=name, call_id=call_id)
        for call_id in call_ids:
            self.item("function_call_output", call_id=call_id)
        return self

    def usage(self, total=1_000, cached=700, output=90, reasoning=30):
        """Tell the usage of a request of ``total`` input tokens."""
        self.total += total + output
        return self.counted(
            {
                "input_tokens": total,
                "cached_input_tokens": cached,
                "output_tokens": output,
                "reasoning_output_tokens": reasoning,
                "total_tokens": total + output,
            }
        )

    def counted(self, last):
        info = {"last_token_usage": last, "total_token_usage": {"total_tokens": self.total}}
        return self.event("token_count", info=info, rate_limits={})

    def answer(self):
        return self.item("message", role="assistant", phase="final_answer")

    def done(self, **payload):
        return self.event("task_complete", turn_id=self.turn_id, **payload)

    def compacted(self, after=14_000, **payload):
        """Write what a compaction writes: an unchanged total, and an estimate of what is left."""
        self.line("compacted", {"message": "", "replacement_history": [], **payload})
        self.line("turn_context", {"turn_id": self.turn_id, "model": MODEL})
        zero = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens"), 0)
        self.counted(zero | {"total_tokens": after})
        return self.event("context_compacted")

    @property
    def text(self):
        return "".join(json.dumps(line) + "\n" for line in self.lines).encode()
