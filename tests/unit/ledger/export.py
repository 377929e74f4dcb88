"""OpenCode exports written by hand: ids and numbers only."""

from dataclasses import dataclass, field

from tests.unit.ledger.rollout import START_MS


def tokens(uncached=100, read=700, output=60, reasoning=30):
    return {
        "input": uncached,
        "output": output,
        "reasoning": reasoning,
        "cache": {"read": read, "write": 0},
        "total": uncached + read + output + reasoning,
    }


@dataclass
class Export:
    """A session while it runs: every message a second after the one before."""

    session: str = "ses_1"
    messages: list = field(default_factory=list)
    seconds: int = 0
    info: dict = field(default_factory=dict)
    asked: str = ""

    def message(self, message_id, role, parts, **info):
        created = START_MS + self.seconds * 1000
        self.seconds += 1
        own = {"id": message_id, "sessionID": self.session, "role": role}
        time = {"created": created} | ({"completed": created + 500} if role == "assistant" else {})
        self.messages.append({"info": own | {"time": time} | info, "parts": list(parts)})
        return self

    def user(self, message_id, *parts, **info):
        self.asked = message_id
        said = parts or ({"type": "text", "text": "SECRET"},)
        return self.message(message_id, "user", said, **info)

    def answer(self, message_id, *calls, finish="", used=None, **info):
        """Add an answer that asks for the tools named ``callID:tool``."""
        parts = [self.tool(*call.split(":")) if isinstance(call, str) else call for call in calls]
        told = {
            "parentID": self.asked,
            "modelID": "m-1",
            "providerID": "p-1",
            "tokens": tokens() if used is None else used,
            "finish": ("tool-calls" if calls else "stop") if finish == "" else finish,
        }
        told |= info
        return self.message(message_id, "assistant", parts, **told)

    def tool(self, call_id, tool="bash", status="completed", **state):
        return {
            "type": "tool",
            "tool": tool,
            "callID": call_id,
            "state": {"status": status, "time": {"end": START_MS + self.seconds * 1000}, **state},
        }

    def compaction(self, message_id, *, auto=True, overflow=False, used=None, **info):
        """Add the message that asks for a compaction, and the summary it gets."""
        part = {"type": "compaction", "auto": auto, "overflow": overflow}
        self.user(message_id, part)
        told = {"summary": True, "agent": "compaction", "mode": "compaction"} | info
        return self.answer(f"{message_id}-summary", used=used or tokens(50, 150_000), **told)

    def go_on(self, message_id):
        return self.user(message_id, {"type": "text", "text": "SECRET", "synthetic": True})

    @property
    def document(self):
        own = {"id": self.session, "directory": "/home/x/shop", "agent": "build"}
        time = {"created": START_MS - 1000}
        return {"info": own | {"time": time} | self.info, "messages": self.messages}
