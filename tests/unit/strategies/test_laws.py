"""Laws that hold for every strategy on every conversation of every format."""

import copy
import itertools
import os
import shutil
import tempfile
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies.formats.recognise import see
from strategies.registry import strategy
from strategies.result import Result
from strategies.situation import Situation
from strategies.summary import Summarizer
from tests.unit.strategies.conversations import FORMATS, LangChainLike, plans, written
from tests.unit.strategies.provider_rules import problems

pytestmark = pytest.mark.disable_socket

#: Conversations for each strategy and format: 2,200 make more than 100,000.
EXAMPLES = int(os.environ.get("LAW_EXAMPLES", "40"))
FORCED = Situation(force=True)
FOLDER = tempfile.mkdtemp()
TIME = datetime(2026, 11, 30, tzinfo=UTC)
MOMENTS = itertools.count()


@pytest.fixture(autouse=True, scope="module")
def transcripts_are_left_nowhere():
    yield
    shutil.rmtree(FOLDER)


def now():
    """Tell another moment each time: it names a transcript."""
    return TIME + timedelta(microseconds=next(MOMENTS))


def short(request):
    assert request.transcript or request.messages
    return "brief"


def anthropic_server(asked):
    return {"content": [{"type": "compaction", "content": "brief", "signature": "s"}]}


def openai_server(asked):
    """Return the user's messages and one item, as the reference says of the output."""
    said = [copy.deepcopy(item) for item in asked["input"] if item.get("role") == "user"]
    return {"output": [*said, {"id": "k", "type": "compaction", "encrypted_content": "e"}]}


MAKERS = {
    "none": lambda n: strategy("none"),
    "sliding_window": lambda n: strategy("sliding_window", keep_last=n + 1),
    "summarize": lambda n: strategy("summarize", model=short, keep_recent=n + 1),
    "summarize_within": lambda n: strategy(
        "summarize", model=short, keep_recent=n + 1, within_turn=True
    ),
    "token_budget": lambda n: strategy("token_budget", budget_tokens=1 + 8 * n),
    "micro": lambda n: strategy("micro", keep=n),
    "auto": lambda n: strategy("auto", model=short, transcripts=FOLDER, now=now),
    "auto_behind_prefix": lambda n: strategy(
        "auto", model=Summarizer(short, behind_prefix=True), transcripts=FOLDER, now=now
    ),
    "compact_tool": lambda n: strategy("compact_tool", model=short, transcripts=FOLDER, now=now),
    "tail_digest": lambda n: strategy(
        "tail_digest", keep_recent=n, bulky_tokens=5, prefix_messages=n % 3
    ),
    "anthropic_server": lambda n: strategy("server_side", send=anthropic_server),
    "openai_server": lambda n: strategy("server_side", way="openai", send=openai_server),
}
#: The server's own ways take the messages of one provider.
ONLY = {"anthropic_server": "anthropic", "openai_server": "openai_responses"}
CASES = [(name, made) for made in MAKERS for name in FORMATS if ONLY.get(made, name) == name]


def frozen(messages):
    return [copy.deepcopy(vars(m) if isinstance(m, LangChainLike) else m) for m in messages]


def last_said(name, messages):
    """Return the last message in which the user speaks, told apart from the code under test."""
    for raw in reversed(messages):
        if name == "langchain":
            role, content = raw.type, raw.content
        else:
            inner = raw.get("message", raw)
            role, content = inner.get("role"), inner.get("content")
        if role not in ("user", "human"):
            continue
        kinds = {"text"} if isinstance(content, str) else {block["type"] for block in content}
        if "tool_result" not in kinds:
            return raw
    return None


@pytest.mark.parametrize(("name", "made"), CASES)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), keep=st.integers(0, 6))
def test_laws(name, made, plan, keep):
    messages = written(plan, name, asks=made == "compact_tool")
    assert problems(name, messages) == []
    before, copies = list(messages), frozen(messages)
    chosen = MAKERS[made](keep)
    result = chosen.compact(messages, FORCED)

    assert messages == before, "the list that came in was changed"
    assert frozen(messages) == copies, "a message that came in was changed"
    assert problems(name, result.messages) == []
    check_bookkeeping(messages, result)
    said = last_said(name, messages)
    assert any(raw is said for raw in result.messages)
    head = see(messages).head
    assert all(a is b for a, b in zip(messages[:head], result.messages, strict=False))
    assert see(messages).tokens() >= see(result.messages, name).tokens()

    again = chosen.compact(result.messages, FORCED)
    assert not again.changed, again.reason
    assert again.messages is result.messages


def check_bookkeeping(messages, result: Result):
    parts = [result.dropped, result.kept, result.summarised, result.rewritten]
    assert sorted(index for part in parts for index in part) == list(range(len(messages)))
    if not result.changed:
        assert result.messages is messages
        return
    identities = [id(raw) for raw in result.messages]
    places = [identities.index(id(messages[index])) for index in result.kept]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    untouched = {id(messages[index]) for index in result.kept}
    gone = {id(raw) for raw in messages} - untouched
    assert not gone & set(identities)


@settings(max_examples=EXAMPLES, deadline=None)
@given(plan=plans(answered=True), keep=st.integers(0, 3), more=plans(most_turns=2))
def test_a_longer_conversation_keeps_the_bytes_that_micro_left_before_it(plan, keep, more):
    """What was shortened stays shortened the same way, so that the cache keeps it."""
    chosen = strategy("micro", keep=keep, preserve=())
    first = chosen.compact(written(plan, "openai_chat")).messages
    tail = [m for m in written(more, "openai_chat") if m["role"] != "system"]
    renamed = [_renamed(m) for m in tail]
    second = chosen.compact([*first, *renamed]).messages
    short = [m for m in first if m["role"] == "tool" and str(m["content"]).startswith("[Previous")]
    assert all(any(m is kept for kept in second) for m in short)


def _renamed(message):
    made = dict(message)
    if "tool_calls" in made:
        made["tool_calls"] = [{**call, "id": f"n{call['id']}"} for call in made["tool_calls"]]
    if "tool_call_id" in made:
        made["tool_call_id"] = f"n{made['tool_call_id']}"
    return made
