"""Every strategy on real Claude Code sessions, each text at its true length."""

import gzip
import json
import os
import re

import pytest

from strategies.conversation import SUMMARY_MARK
from strategies.registry import strategy
from strategies.situation import Situation
from tests.conftest import SHARED, needs_shared_data
from tests.provider.anthropic_messages import Messages
from tests.provider.real_sessions import messages_of

pytestmark = [pytest.mark.disable_socket, needs_shared_data]

FORCED = Situation(force=True)
EVERY = sorted(
    (SHARED / "data" / "logs").glob("*/claude-code/*.jsonl.gz"),
    key=lambda path: path.stat().st_size,
)
#: All of them take ten minutes: usually a sample from the smallest to the largest.
SESSIONS = EVERY if "SOAK_EXAMPLES" in os.environ else EVERY[:-40:40]
WORDS = "the parser reads each line and fails at some token of it; "


def expanded(line):
    """Put a text of N characters wherever the scrubbed log says that there was one."""

    def text(match):
        size = int(match.group(1))
        return (WORDS * (size // len(WORDS) + 1))[:size]

    return re.sub(r"<(\d+) chars>", text, line)


def lines_of(path):
    """Return a session's lines; one that is torn is an error of ours, so whoever reads drops it."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [expanded(line.rstrip("\n")) for line in file if line.startswith("{")]


def context_of(lines):
    """Return what is in the context, told apart from the code under test."""
    parsed = [json.loads(line) for line in lines]
    begins = max(
        (k for k, line in enumerate(parsed) if line.get("subtype") == "compact_boundary"), default=0
    )
    return [line for line in parsed[begins:] if line["type"] in ("user", "assistant")]


def ids(entries):
    calls, results = set(), set()
    for entry in entries:
        content = entry["message"]["content"]
        for block in content if isinstance(content, list) else ():
            if block["type"] == "tool_use":
                calls.add(block["id"])
            elif block["type"] == "tool_result":
                results.add(block["tool_use_id"])
    return calls, results


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name[:8])
def test_no_session_loses_a_result_or_a_byte(path, tmp_path):
    lines = lines_of(path)
    if not context_of(lines):
        pytest.skip("a session without messages")
    calls, results = ids(context_of(lines))
    for made in (
        strategy("none"),
        strategy("sliding_window", keep_last=20),
        strategy("token_budget", budget_tokens=10_000),
        strategy("micro"),
        strategy("tail_digest"),
        strategy("summarize", model=lambda request: "brief", keep_recent=20),
        strategy("summarize", model=lambda request: "brief", within_turn=True),
        strategy("auto", model=lambda request: "brief", transcripts=tmp_path),
        strategy("compact_tool", model=lambda request: "brief", transcripts=tmp_path),
    ):
        result = made.compact(lines, FORCED)
        after = context_of(list(result.messages))
        left_calls, left_results = ids(after)
        answered = calls & results
        assert left_calls & answered == left_results & answered, made
        assert all(lines[index] in result.messages for index in result.kept[-50:])
        assert len(result.messages) <= len(lines) + 1
        if result.changed:
            again = made.compact(result.messages, FORCED)
            assert not again.changed, (made, again.reason)


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.name[:8])
def test_a_provider_takes_what_is_left_of_every_session(path, tmp_path):
    """As Anthropic's messages: the server, which checks them, answers the request after."""
    messages = messages_of(path)
    if not messages:
        pytest.skip("a session without messages")
    account = Messages(lambda body: [{"type": "text", "text": "done"}])
    asked = {"model": "m", "max_tokens": 1}

    def server(told):
        return account.respond({**asked, **told}, told["betas"])

    calling = {"type": "tool_use", "id": "z", "name": "compact", "input": {"focus": "tests"}}
    answered = {"type": "tool_result", "tool_use_id": "z", "content": "compacted"}
    for made in (
        strategy("sliding_window", keep_last=20),
        strategy("token_budget", budget_tokens=10_000),
        strategy("micro"),
        strategy("tail_digest"),
        strategy("summarize", model=lambda request: "brief", within_turn=True),
        strategy("auto", model=lambda request: "brief", transcripts=tmp_path),
        strategy("compact_tool", model=lambda request: "brief", transcripts=tmp_path),
        strategy("server_side", send=server),
    ):
        by_tool = made.name == "compact_tool"
        given = [*messages, {"role": "assistant", "content": [calling]}] if by_tool else messages
        left = list(made.compact(given, FORCED).messages)
        if by_tool:
            assert str(left[0]["content"]).startswith(SUMMARY_MARK) or len(left) == len(given)
            left.append({"role": "user", "content": [answered]})
        response = account.respond({**asked, "messages": left})
        assert response["content"] == [{"type": "text", "text": "done"}], made.name
