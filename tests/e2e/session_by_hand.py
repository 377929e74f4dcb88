"""Claude Code sessions written out: one turn each, requests half a minute apart."""

import json
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 15, 12, tzinfo=UTC)
MODEL = "claude-opus-4-5"
SECRET = "the secret launch code"


def write_session(folder, name, contexts, *, day, cwd="/home/dev/shop", sub_agents=()):
    """Write a session that asks once, and whose requests have these contexts in tokens."""
    file = folder / "projects" / cwd.replace("/", "-") / f"{name}.jsonl"
    _write(file, name, contexts, day, cwd, {})
    for number, own in enumerate(sub_agents):
        agent = {"isSidechain": True, "agentId": f"a{number}{name}"}
        inner = file.with_suffix("") / "subagents" / f"agent-a{number}{name}.jsonl"
        _write(inner, name, own, day, cwd, agent)


def _write(file, name, contexts, day, cwd, more):
    at = START + timedelta(days=day)
    tag = f"{name}{more.get('agentId', '')}"
    lines = []

    def line(kind, **told):
        stamp = (at + timedelta(seconds=15 * len(lines))).isoformat(timespec="milliseconds")
        common = {"type": kind, "uuid": f"{tag}-{len(lines)}", "sessionId": name, "cwd": cwd}
        lines.append({**common, "timestamp": stamp.replace("+00:00", "Z"), **more, **told})

    line("user", message={"role": "user", "content": SECRET})
    before = 0
    for number, context in enumerate(contexts, start=1):
        last = number == len(contexts)
        tool = {"type": "tool_use", "id": f"toolu_{tag}_{number}", "name": "Bash", "input": {}}
        read = min(before, context)
        usage = {
            "input_tokens": 0,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": context - read,
            "output_tokens": 300,
        }
        message = {
            "id": f"msg_{tag}_{number}",
            "model": MODEL,
            "role": "assistant",
            "content": [{"type": "text", "text": SECRET} if last else tool],
            "stop_reason": "end_turn" if last else "tool_use",
            "usage": usage,
        }
        line("assistant", message=message)
        if not last:
            result = {"type": "tool_result", "tool_use_id": tool["id"], "content": SECRET}
            line("user", message={"role": "user", "content": [result]})
        before = context
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
