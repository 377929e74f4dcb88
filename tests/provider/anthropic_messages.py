"""Anthropic's Messages as a local server: its rules, its cache with breakpoints, its compactions.

Sources: the reference of `POST /v1/messages` and the types of the SDK (anthropic 2.14). At most
four blocks carry `cache_control`; a prefix is stored at each and looked for there and up to 20
blocks before. `compaction` (beta compact-2026-09-04) answers with a signed block alone, its usage
in `iterations` and 0 at the top; `context_management` (beta compact-2026-01-12) compacts within a
usual request past its trigger, with that usage in `iterations` and not in the sums at the top. What
stands before a compaction block is not read.
"""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from experiment.prefix_cache import Block, PrefixCache
from tests.provider.tokenizer import MESSAGE_TOKENS, block_tokens, count
from tests.unit.strategies.provider_rules import anthropic as broken_rules

MOST_BREAKPOINTS = 4
ON_DEMAND, BY_THRESHOLD = "compact-2026-09-04", "compact-2026-01-12"
LEAST_TRIGGER = 50_000
SUMMARY = "The parser was read. Decided: keep it. Pending: its tests. " * 20


class RefusedError(Exception):
    """The request is refused, with a status and a message."""

    def __init__(self, message, status=400, kind="invalid_request_error"):
        super().__init__(message)
        self.status, self.kind = status, kind


@dataclass
class Messages:
    """One account: what it answers, what its cache holds, and what it was asked.

    `answer` takes a request's body and returns content blocks; `log` holds body, usage and the
    tokens of system prompt and tools of each request, `summary` what its compactions say.
    """

    answer: Any
    summary: str = SUMMARY
    least_tokens: int = 0
    log: list = field(default_factory=list)

    def __post_init__(self):
        self.cache = PrefixCache(self.least_tokens)

    def respond(self, body, betas=()):
        """Return the response to a request's body."""
        _check(body, betas)
        edit = _threshold(body)
        blocks, marks, prefix = request_blocks(body)
        if "compaction" in body:
            usage = self.cache.billed(blocks, count(self.summary), marks)
            content = [_signed(self.summary)]
            told = _usage(None) | {"iterations": [_usage(usage) | {"type": "compaction"}]}
            return self._made(body, content, told, "compaction", prefix)
        if edit and sum(block.tokens for block in blocks) >= edit["trigger"]["value"]:
            return self._compacted(body, edit, (blocks, marks, prefix))
        content = self.answer(body)
        usage = self.cache.billed(blocks, sum(map(block_tokens, content)), marks)
        return self._made(body, content, _usage(usage), _stop(content), prefix)

    def _compacted(self, body, edit, asked):
        blocks, marks, prefix = asked
        first = self.cache.billed(blocks, count(self.summary), marks)
        iterations = [_usage(first) | {"type": "compaction"}]
        content = [{"type": "compaction", "content": self.summary}]
        told = _usage(None)
        stop = "compaction"
        if not edit.get("pause_after_compaction"):
            short = body | {"messages": [{"role": "assistant", "content": content}]}
            answered = self.answer(body)
            blocks, marks, _ = request_blocks(short)
            usage = self.cache.billed(blocks, sum(map(block_tokens, answered)), marks)
            told = _usage(usage)
            iterations.append(told | {"type": "message"})
            content, stop = [*content, *answered], _stop(answered)
        return self._made(body, content, told | {"iterations": iterations}, stop, prefix)

    def _made(self, body, content, usage, stop, prefix):
        self.log.append((body, usage, prefix))
        return {
            "id": f"msg_{len(self.log)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }


def request_blocks(body):
    """Return a request's blocks, its breakpoints, and the tokens of its system prompt and tools."""
    system = body.get("system") or []
    system = [{"type": "text", "text": system}] if isinstance(system, str) else system
    parts = [("tools", each) for each in body.get("tools") or ()]
    parts += [("system", each) for each in system]
    fixed = len(parts)
    for message in _read(body["messages"]):
        parts += [(message["role"], each) for each in _content(message)]
    blocks, marks, before = [], [], "system"
    for place, (role, part) in enumerate(parts):
        bare = {name: value for name, value in part.items() if name != "cache_control"}
        framed = MESSAGE_TOKENS if place >= fixed and role != before else 0
        before = role
        blocks.append(
            Block(json.dumps([role, bare], sort_keys=True).encode(), block_tokens(bare) + framed)
        )
        if part.get("cache_control"):
            marks.append(place + 1)
    return blocks, marks, sum(block.tokens for block in blocks[:fixed])


def _content(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _read(messages):
    """Return the messages from the last compaction block on."""
    for place in range(len(messages) - 1, -1, -1):
        content = _content(messages[place])
        for number in range(len(content) - 1, -1, -1):
            if content[number]["type"] == "compaction" and content[number].get("content"):
                cut = {**messages[place], "content": content[number:]}
                return [cut, *messages[place + 1 :]]
    return messages


def _check(body, betas):
    for name in ("model", "max_tokens", "messages"):
        if name not in body:
            raise RefusedError(f"{name}: Field required")
    messages = body["messages"]
    if not messages:
        raise RefusedError("messages: at least one message is required")
    _check_compactions(body, betas)
    problems = broken_rules(messages)
    problems += ["the last calls have no results"] if _waits(messages) else []
    if problems:
        raise RefusedError(f"messages: {problems[0]}")
    if len(request_blocks(body)[1]) > MOST_BREAKPOINTS:
        raise RefusedError(
            f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided"
        )


def _check_compactions(body, betas):
    for name, beta in (("compaction", ON_DEMAND), ("context_management", BY_THRESHOLD)):
        if name in body and beta not in betas:
            raise RefusedError(f"{name}: Extra inputs are not permitted")
    for message in body["messages"]:
        for block in _content(message):
            signed = block["type"] == "compaction" and block.get("signature")
            if signed and block != _signed(block["content"]) | _extra(block):
                raise RefusedError("messages: Invalid `signature` in `compaction` block")


def _extra(block):
    return {"cache_control": block["cache_control"]} if "cache_control" in block else {}


def _waits(messages):
    """Whether the conversation ends with calls some of which have no result."""
    calls, results = set(), set()
    for message in messages:
        for block in _content(message):
            if block["type"] == "tool_use":
                calls.add(block["id"])
            elif block["type"] == "tool_result":
                results.add(block["tool_use_id"])
    return calls - results


def _threshold(body):
    edits = (body.get("context_management") or {}).get("edits", ())
    for edit in edits:
        if edit["type"] != "compact_20260112":
            raise RefusedError(f"context_management: unknown edit {edit['type']}")
        if edit.get("trigger", {"value": LEAST_TRIGGER})["value"] < LEAST_TRIGGER:
            raise RefusedError(f"context_management: trigger must be at least {LEAST_TRIGGER}")
        return edit
    return None


def _signed(text):
    signature = hashlib.blake2b(text.encode(), key=b"the server's", digest_size=8).hexdigest()
    return {"type": "compaction", "content": text, "signature": signature}


def _stop(content):
    return "tool_use" if any(each["type"] == "tool_use" for each in content) else "end_turn"


def _usage(usage):
    """Return a usage as Anthropic writes it; None uses nothing."""
    written = usage.cache_write_5m if usage else 0
    return {
        "input_tokens": usage.uncached if usage else 0,
        "cache_read_input_tokens": usage.cache_read if usage else 0,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output if usage else 0,
    }
