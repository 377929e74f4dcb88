"""Pi and Oh My Pi sessions written by hand: ids and numbers only."""

import json
from dataclasses import dataclass, field
from datetime import timedelta

from tests.unit.ledger.rollout import START


def used(uncached=100, read=700, written=200, output=90, reasoning=30):
    return {
        "input": uncached,
        "cacheRead": read,
        "cacheWrite": written,
        "output": output,
        "reasoning": reasoning,
        "totalTokens": uncached + read + written + output,
        "cost": {"total": 0.01},
    }


NOTHING = used(0, 0, 0, 0, 0)


@dataclass
class PiSession:
    """A session file while it is written: every line a second after the one before."""

    session: str = "s1"
    lines: list = field(default_factory=list)
    seconds: int = 0

    def line(self, kind, /, **fields):
        stamp = (START + timedelta(seconds=self.seconds)).isoformat(timespec="milliseconds")
        self.seconds += 1
        own = {"type": kind, "id": f"e{len(self.lines)}", "parentId": None}
        self.lines.append(own | {"timestamp": stamp.replace("+00:00", "Z")} | fields)
        return self

    def header(self):
        return self.line("session", version=3, id=self.session, cwd="/home/x/shop")

    def message(self, role, entry=None, /, **fields):
        own = {"id": entry} if entry else {}
        return self.line("message", message={"role": role, **fields}, **own)

    def user(self, entry=None, **fields):
        return self.message("user", entry, content=[{"type": "text", "text": "SECRET"}], **fields)

    def answer(self, *calls, stop=None, usage=None, entry=None, name="bash", **fields):
        blocks = [{"type": "toolCall", "id": call, "name": name, "arguments": {}} for call in calls]
        told = {
            "content": [{"type": "thinking", "thinking": "SECRET"}, *blocks],
            "provider": "p-1",
            "model": "m-1",
            "usage": used() if usage is None else usage,
            "stopReason": stop or ("toolUse" if calls else "stop"),
        }
        return self.message("assistant", entry, **(told | fields))

    def result(self, *calls):
        for call in calls:
            self.message("toolResult", toolCallId=call, toolName="bash")
        return self

    def failed(self, stop="error", *calls):
        return self.answer(*calls, stop=stop, usage=NOTHING)

    def compacted(self, before=150_000, entry=None):
        own = {"id": entry} if entry else {}
        return self.line("compaction", summary="SECRET", tokensBefore=before, **own)

    def copied(self, session):
        """Return a fork: a header of its own, and the same entries."""
        fork = PiSession(session, seconds=self.seconds)
        fork.header()
        fork.lines += self.lines[1:]
        return fork

    @property
    def text(self):
        return "".join(json.dumps(line) + "\n" for line in self.lines).encode()
