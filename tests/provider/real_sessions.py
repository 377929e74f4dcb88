"""Real Claude Code sessions as Anthropic's messages, each scrubbed text at its true length.

The logs say how long a text was, not what it said. So prose stands for what people and models
wrote, code for what was read, written or edited, a log for what commands printed, and paths for
what searches found: a tokenizer counts each of them differently, as it does real ones.
"""

import gzip
import json
import re

from tests.conftest import SHARED

SESSIONS = sorted(
    (SHARED / "data" / "logs").glob("*/claude-code/*.jsonl.gz"),
    key=lambda path: path.stat().st_size,
)
SCRUBBED = re.compile(r"<(\d+) chars>")
PROSE = (
    "The parser reads each line and fails at some token of it, because the table of operators was "
    "built before the configuration had been loaded. I will move the call, run the tests again and "
    "look at what remains: two of them depend on the order in which files are found. "
)
CODE = """    12\tdef parse(tokens: Sequence[Token], *, strict: bool = True) -> Node | None:
    13\t    node, stack = None, [Frame(0, len(tokens))]
    14\t    while stack and (frame := stack.pop()).end > frame.begin:
    15\t        if tokens[frame.begin].kind != "OPEN":
    16\t            raise ParseError(f"line {tokens[frame.begin].line}: unexpected {frame!r}")
    17\t        node = Node(kind=frame.kind, children=[*node.children, *frame.rest()])
    18\t    return node if strict else self._recovered.get(id(node))

"""
LOG = """2026-11-30T22:13:18.123Z INFO  build[4711]: cc -O2 -Wall -c src/parser/lexer.c -o lexer.o
tests/test_parser.py::test_nested[3-True] PASSED                                  [ 42%]
warning: unused variable `frame` (src/lib.rs:218:9); 3 passed, 1 failed in 0.82s
"""
PATHS = "src/parser/lexer_table.py:118:    def next_token(self):\ninternal/ast/walk_test.go:42:\n"
TEXTS = {"prose": PROSE, "code": CODE, "log": LOG, "paths": PATHS}
#: What a tool brings in, and what fields of its calls hold; everything else is prose.
BROUGHT = {
    **dict.fromkeys(("Read", "Edit", "Write"), "code"),
    **dict.fromkeys(("Grep", "Glob", "LS"), "paths"),
    "Bash": "log",
}
GIVEN = {
    **dict.fromkeys(("old_string", "new_string", "content"), "code"),
    **dict.fromkeys(("file_path", "path", "pattern", "glob"), "paths"),
    "command": "log",
}


def expanded(value, kind="prose", offset=0):
    """Return a JSON value with texts of a kind where the log says that there were some."""
    if isinstance(value, str):
        return SCRUBBED.sub(lambda match: _text(kind, int(match.group(1)), offset), value)
    if isinstance(value, dict):
        return {name: expanded(each, GIVEN.get(name, kind), offset) for name, each in value.items()}
    return [expanded(each, kind, offset) for each in value] if isinstance(value, list) else value


def _text(kind, size, offset):
    text = TEXTS[kind]
    begin = offset % len(text)
    return (text * (size // len(text) + 2))[begin : begin + size]


def messages_of(path):
    """Return what the last request of a session would have sent, from its last compaction on."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.startswith("{")]
    begins = max(
        (k for k, line in enumerate(lines) if line.get("subtype") == "compact_boundary"), default=0
    )
    said = [line for line in lines[begins:] if line["type"] in ("user", "assistant")]
    said = [line for line in said if line["message"].get("model") != "<synthetic>"]
    messages = _as_sent(_merged(said))
    while messages and messages[-1]["role"] != "user":
        messages.pop()
    return messages


def _merged(lines):
    """Put the lines of one response together, and what the user's side says in a row."""
    messages, last_id = [], None
    for number, line in enumerate(lines):
        inner = line["message"]
        blocks = _blocks(inner["content"], number)
        if line["type"] == "user" and messages and messages[-1]["role"] == "user":
            messages[-1]["content"] += blocks
        elif line["type"] == "assistant" and inner["id"] == last_id:
            # Results of parallel calls may stand between the lines of the response.
            response = next(m for m in reversed(messages) if m["role"] == "assistant")
            response["content"] += blocks
        else:
            messages.append({"role": line["type"], "content": blocks})
        last_id = inner["id"] if line["type"] == "assistant" else last_id
    return messages


def _blocks(content, number):
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{**block, "number": number} for block in blocks]


def _as_sent(messages):
    """Return messages without what a request may not hold, every text at its length."""
    calls, results = {}, set()
    for block in (block for message in messages for block in message["content"]):
        if block["type"] == "tool_use":
            calls[block["id"]] = block["name"]
        elif block["type"] == "tool_result":
            results.add(block["tool_use_id"])
    paired = calls.keys() & results
    sent = []
    for message in messages:
        found = (_sent(block, calls, paired) for block in message["content"])
        blocks = sorted(filter(None, found), key=lambda block: block["type"] != "tool_result")
        if sent and sent[-1]["role"] == message["role"]:
            sent[-1]["content"] += blocks
        elif blocks and (sent or message["role"] == "user"):
            sent.append({"role": message["role"], "content": blocks})
    return sent


def _sent(block, calls, paired):
    kind, offset = block["type"], 17 * block["number"]
    if kind == "text" and block["text"]:
        return {"type": "text", "text": expanded(block["text"], "prose", offset)}
    if kind == "tool_use" and block["id"] in paired:
        given = expanded(block["input"], "prose", offset)
        return {"type": "tool_use", "id": block["id"], "name": block["name"], "input": given}
    if kind == "tool_result" and block["tool_use_id"] in paired:
        brought = BROUGHT.get(calls[block["tool_use_id"]], "prose")
        content = expanded(block.get("content") or "", brought, offset)
        text = content if isinstance(content, str) else "\n".join(map(_shown, content))
        return {"type": "tool_result", "tool_use_id": block["tool_use_id"], "content": text}
    return None


def _shown(block):
    return block.get("text") or "[an image]"
