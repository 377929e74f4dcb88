"""OpenAI's Responses and its compaction as a local server, with a cache that needs no breakpoints.

Sources: the reference of `POST /v1/responses` and `/v1/responses/compact`, and the types of the SDK
(openai 3.57). A compaction's output is all of the user's messages and one opaque item, which later
requests send back; items of that type stand for all before them but the user's messages.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from experiment.prefix_cache import Block, PrefixCache
from tests.provider.anthropic_messages import SUMMARY, RefusedError
from tests.provider.tokenizer import MESSAGE_TOKENS, block_tokens, count
from tests.unit.strategies.provider_rules import responses as broken_rules


@dataclass
class Responses:
    """One account: `answer` takes a request's body and returns output items."""

    answer: Any
    summary: str = SUMMARY
    log: list = field(default_factory=list)

    def __post_init__(self):
        self.cache = PrefixCache()

    def respond(self, body):
        """Return the response to a request for an answer."""
        output = self.answer(body)
        made = self._made(body, output, sum(map(item_tokens, output)))
        more = {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto"}
        return made | {"object": "response", "model": body["model"], "tools": []} | more

    def compact(self, body):
        """Return the response to a request for a compaction."""
        said = [each for each in _items(body) if each.get("role") == "user"]
        hidden = base64.b64encode(self.summary.encode()).decode()
        item = {"id": "cmp_1", "type": "compaction", "encrypted_content": hidden}
        output = [*map(_as_output, said), item]
        made = self._made(body, output, count(self.summary))
        return made | {"object": "response.compaction"}

    def _made(self, body, output, output_tokens):
        problems = broken_rules(_items(body))
        if problems or "model" not in body:
            raise RefusedError(f"input: {problems[0]}" if problems else "model: missing")
        usage = self.cache.billed(request_blocks(body), output_tokens)
        told = {
            "input_tokens": usage.context_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": 0},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.context_tokens + usage.output,
        }
        self.log.append((body, told))
        made = {"id": f"resp_{len(self.log)}", "created_at": 0, "output": output}
        return made | {"usage": told}


def request_blocks(body):
    """Return a request's blocks: tools, instructions, items."""
    tools = [json.dumps(tool, sort_keys=True) for tool in body.get("tools") or ()]
    texts = [*tools, *([body["instructions"]] if body.get("instructions") else [])]
    blocks = [Block(text.encode(), count(text)) for text in texts]
    items = _items(body)
    written = (json.dumps(item, sort_keys=True).encode() for item in items)
    return [*blocks, *map(Block, written, map(item_tokens, items))]


def item_tokens(item):
    """Return the tokens of an item; a compaction counts what it hides."""
    if item.get("type") == "compaction":
        return count(base64.b64decode(item["encrypted_content"]).decode())
    if item.get("type", "message") != "message":
        return block_tokens(item)
    content = item["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return MESSAGE_TOKENS + sum(map(block_tokens, blocks))


def _items(body):
    asked = body["input"]
    return [{"role": "user", "content": asked}] if isinstance(asked, str) else asked


def _as_output(item):
    content = item["content"]
    blocks = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return {"id": "msg_u", "type": "message", "role": "user", "status": "completed"} | {
        "content": blocks
    }
