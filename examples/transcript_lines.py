"""The shapes of the lines that Claude Code writes, without envelope, id and time.

Two versions are imitated: 2.1.39, which embeds a sub-agent's messages into its parent's file and
writes the output tokens only when a message is complete, and 2.1.224, which does neither.
"""

from dataclasses import dataclass

from examples.manifest import Tokens
from examples.transcript import Line

__all__ = [
    "NEW",
    "OLD",
    "Style",
    "agent_progress",
    "agent_result",
    "api_failure",
    "api_retry",
    "assistant",
    "command",
    "compact_boundary",
    "compact_summary",
    "file_snapshot",
    "hook_progress",
    "interruption",
    "prompt",
    "queued_command",
    "stop_hook_summary",
    "synthetic",
    "task_notification",
    "tool_result",
    "tool_use",
    "turn_duration",
    "unknown_lines",
    "usage",
]


@dataclass(frozen=True, slots=True)
class Style:
    """What differs between versions of the harness.

    Parameters
    ----------
    version : str
        The harness's version.
    model, agent_model : str
        Model of a session and of its sub-agents.
    agent_tool : str
        Name of the tool that starts a sub-agent.
    new : bool
        True from the version on that has attachments, stop reasons and true output tokens.
    """

    version: str
    model: str
    agent_model: str
    agent_tool: str
    new: bool


OLD = Style("2.1.39", "claude-opus-4-6", "claude-haiku-4-5-20251001", "Task", new=False)
NEW = Style("2.1.224", "claude-sonnet-5", "claude-haiku-4-5-20251001", "Agent", new=True)


def usage(tokens: Tokens, style: Style) -> Line:
    """Return the usage object of a request; everything is written to the five-minute cache."""
    counts: Line = {
        "input_tokens": tokens.uncached,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": tokens.output,
    }
    if not style.new:
        return {**counts, "service_tier": "standard", "inference_geo": "not_available"}
    tools = {"web_search_requests": 0, "web_fetch_requests": 0}
    return {
        **counts,
        "server_tool_use": tools,
        "service_tier": "standard",
        "iterations": [{**counts, "type": "message"}],
        "speed": "standard",
    }


def assistant(
    block: Line, counts: Line, ids: tuple[str, str], style: Style, model: str, *, asks_tools: bool
) -> Line:
    """Return the line of one content block; ``ids`` are those of message and request."""
    message: Line = {
        "model": model,
        "id": ids[0],
        "type": "message",
        "role": "assistant",
        "content": [block],
        "stop_reason": ("tool_use" if asks_tools else "end_turn") if style.new else None,
        "stop_sequence": None,
        "usage": counts,
    }
    return {"type": "assistant", "message": message, "requestId": ids[1]}


def tool_use(call_id: str, name: str, arguments: Line) -> Line:
    """Return the content block of a tool call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(call_id: str, source: str, body: str, *, error: bool = False) -> Line:
    """Return the user line that answers a tool call of line ``source``."""
    result = {"tool_use_id": call_id, "type": "tool_result", "content": body, "is_error": error}
    detail: object = {"stdout": body, "stderr": "", "interrupted": False, "isImage": False}
    return {
        "type": "user",
        "message": {"role": "user", "content": [result]},
        "toolUseResult": f"Error: {body}" if error else detail,
        "sourceToolAssistantUUID": source,
    }


def agent_result(call_id: str, source: str, body: str, detail: Line) -> Line:
    """Return the user line that answers a sub-agent's call, with what the harness notes of it."""
    content = [{"type": "text", "text": body}]
    result = {"tool_use_id": call_id, "type": "tool_result", "content": content}
    return {
        "type": "user",
        "message": {"role": "user", "content": [result]},
        "toolUseResult": {**detail, "content": content},
        "sourceToolAssistantUUID": source,
    }


def prompt(text: str, *, blocks: bool = False, meta: bool = False) -> Line:
    """Return a prompt, as a string or as a text block; ``meta`` marks one that nobody typed."""
    content: object = [{"type": "text", "text": text}] if blocks else text
    line: Line = {"type": "user", "message": {"role": "user", "content": content}}
    return {**line, "isMeta": True} if meta else line


def command(name: str, output: str) -> tuple[Line, Line, Line]:
    """Return the lines of a slash command that the harness runs itself."""
    return (
        prompt("<local-command-caveat>Caveat: run by the user.</local-command-caveat>", meta=True),
        prompt(f"<command-name>/{name}</command-name>\n<command-args></command-args>"),
        prompt(f"<local-command-stdout>{output}</local-command-stdout>"),
    )


def task_notification(agent_id: str, call_id: str, tool_calls: int) -> str:
    """Return the text that tells a session that its background agent finished."""
    return (
        f"<task-notification>\n<task-id>{agent_id}</task-id>\n<tool-use-id>{call_id}</tool-use-id>"
        "\n<status>completed</status>\n<usage><subagent_tokens>20000</subagent_tokens>"
        f"<tool_uses>{tool_calls}</tool_uses><duration_ms>60000</duration_ms></usage>\n"
        "<summary>Agent completed</summary>\n</task-notification>"
    )


def interruption(message_id: str, style: Style, *, tool: bool) -> Line:
    """Return the line that a user's interruption leaves."""
    text = f"[Request interrupted by user{' for tool use' if tool else ''}]"
    line = prompt(text, blocks=True)
    return {**line, "interruptedMessageId": message_id} if style.new else line


def api_retry(attempt: int) -> Line:
    """Return the line of an API error after which the harness tries again."""
    return {
        "type": "system",
        "subtype": "api_error",
        "level": "error",
        "error": {"status": 529},
        "retryInMs": 534.7428297914272 * attempt,
        "retryAttempt": attempt,
        "maxRetries": 10,
    }


def synthetic(message_id: str, text: str) -> Line:
    """Return an assistant line that no model wrote."""
    tokens = {"input_tokens": 0, "output_tokens": 0}
    cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message: Line = {
        "id": message_id,
        "model": "<synthetic>",
        "role": "assistant",
        "type": "message",
        "stop_reason": "stop_sequence",
        "stop_sequence": "",
        "usage": {**tokens, **cache, "service_tier": None},
        "content": [{"type": "text", "text": text}],
    }
    return {"type": "assistant", "message": message, "isApiErrorMessage": False}


def api_failure(message_id: str) -> Line:
    """Return the synthetic line of an API error that stops the turn."""
    line = synthetic(message_id, "API Error: Rate limit reached")
    return {**line, "isApiErrorMessage": True, "error": "rate_limit", "apiErrorStatus": 429}


def compact_boundary(last: str | None, trigger: str, pre: int, post: int, style: Style) -> Line:
    """Return the line that begins the context after a compaction; sizes in tokens."""
    metadata: Line = {"trigger": trigger, "preTokens": pre}
    if style.new:
        metadata |= {"postTokens": post, "cumulativeDroppedTokens": pre - post, "durationMs": 81234}
    return {
        "logicalParentUuid": last,
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": False,
        "level": "info",
        "compactMetadata": metadata,
    }


def compact_summary(text: str) -> Line:
    """Return the summary, which looks like a prompt and is none."""
    opening = (
        "This session is being continued from a previous conversation that ran out of context."
    )
    return {
        **prompt(f"{opening} {text}"),
        "isVisibleInTranscriptOnly": True,
        "isCompactSummary": True,
    }


def hook_progress(event: str, tool: str, call_id: str) -> Line:
    """Return the line of a hook at work."""
    hook = {"hookEvent": event, "hookName": f"{event}:{tool}", "command": "./hooks/check"}
    return {
        "type": "progress",
        "data": {"type": "hook_progress", **hook},
        "parentToolUseID": call_id,
        "toolUseID": call_id,
    }


def agent_progress(line: Line, call_id: str, agent_id: str) -> Line:
    """Return the copy of a sub-agent's line that 2.1.39 embeds into the parent's file."""
    kept = ("type", "message", "uuid", "timestamp", "requestId")
    message = {key: line[key] for key in kept if key in line}
    data = {"message": message, "normalizedMessages": [], "type": "agent_progress"}
    return {
        "type": "progress",
        "data": {**data, "prompt": "look around", "agentId": agent_id},
        "toolUseID": f"agent_{call_id}",
        "parentToolUseID": call_id,
    }


def queued_command(text: str, mode: str) -> Line:
    """Return the attachment by which input typed in mid-turn reaches the model."""
    return {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": text, "commandMode": mode},
    }


def stop_hook_summary() -> Line:
    """Return the line after the hooks of a turn's end."""
    return {
        "type": "system",
        "subtype": "stop_hook_summary",
        "hookCount": 1,
        "hookInfos": [{"command": "./hooks/stop"}],
        "hookErrors": [],
        "preventedContinuation": False,
        "stopReason": "",
        "hasOutput": False,
        "level": "suggestion",
    }


def turn_duration(milliseconds: int) -> Line:
    """Return the line that closes a turn."""
    return {
        "type": "system",
        "subtype": "turn_duration",
        "durationMs": milliseconds,
        "isMeta": False,
    }


def file_snapshot(message_id: str, timestamp: str) -> Line:
    """Return the loose line about backed-up files that comes with each prompt."""
    snapshot = {"messageId": message_id, "trackedFileBackups": {}, "timestamp": timestamp}
    return {
        "type": "file-history-snapshot",
        "messageId": message_id,
        "snapshot": snapshot,
        "isSnapshotUpdate": False,
    }


def unknown_lines(session_id: str) -> tuple[Line, ...]:
    """Return loose lines without id or time, the last of a type that no version has."""
    return (
        {"type": "mode", "mode": "normal", "sessionId": session_id},
        {"type": "permission-mode", "permissionMode": "default", "sessionId": session_id},
        {"type": "ai-title", "aiTitle": "Fix the cart", "sessionId": session_id},
        {"type": "not-yet-invented", "usage": {"input_tokens": 999999}, "sessionId": session_id},
    )
