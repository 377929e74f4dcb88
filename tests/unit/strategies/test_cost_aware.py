"""The decorator that asks first: what it asks, what it does with the answer, when it does not."""

from datetime import UTC, datetime

import pytest

from compactuary.advice import Advice
from policy.parameters import CompactionParameters, Parameter, Parameters
from policy.question import Question
from policy.quote import quote
from strategies.cost_aware import cost_aware, cost_aware_turn
from strategies.registry import strategy
from strategies.situation import Situation
from strategies.summary import Summarizer
from strategies.with_logging import with_logging
from tests.unit.strategies.test_strategies import asked_of, session

pytestmark = pytest.mark.disable_socket


class Client:
    """Stands in for compactuary.Client: always the same advice, and what was asked."""

    def __init__(self, decision):
        self.advice = Advice(decision, "server", "C/s = 12")
        self.asked = []

    def should_compact(self, role="", calls=0, context_tokens=None, model=None, **fields):
        self.asked.append((role, calls, context_tokens, model, fields))
        return self.advice


class Turn:
    def __init__(self, decision):
        self.client, self.recorded = Client(decision), []

    def should_compact(self, context_tokens=None, **fields):
        return self.client.should_compact("main", 7, context_tokens, "m", **fields)

    def compacted(self, context_before, context_after=None, **more):
        self.recorded.append((context_before, context_after, more))


def test_it_compacts_where_the_advice_says_so():
    client, messages = Client("compact"), session()
    inner = strategy("micro", keep=1)
    chosen = cost_aware(inner, client, role="main", model="m", window_tokens=200_000)
    result = chosen.compact(messages[:6], Situation(prefix_tokens=500))
    assert result.messages[4]["content"][0]["content"] == "[Previous: used bash]"
    assert result.reason == "shortened 1 tool results; compact (server): C/s = 12"
    ((role, calls, context, model, fields),) = client.asked
    # Three calls since the user spoke.
    assert (role, calls, model) == ("main", 3, "m")
    before = 500 + sum(_tokens(message) for message in messages[:6])
    assert context == before
    assert fields == {
        "window_tokens": 200_000,
        "kind": "clear",
        "strategy": "micro",
        # 2700 characters became the 21 of the placeholder.
        "context_after_tokens": before - (2700 - 21) // 4,
        "prefix_tokens": 500 + sum(_tokens(message) for message in messages[:4]),
    }


def _tokens(message):
    """Characters ÷ 4, rounded up, of what a message of the session says."""
    content = message["content"]
    if isinstance(content, str):
        return -(-len(content) // 4)
    said = sum(len(str(block.get("content", ""))) for block in content)
    asked = sum(
        len(block["name"]) + len(str(block["input"])) for block in content if "name" in block
    )
    return -(-(said + asked) // 4)


@pytest.mark.parametrize(
    ("decision", "shadow", "told"),
    [
        ("wait", False, "wait (server): C/s = 12"),
        ("wait", True, "wait (server): C/s = 12"),
        ("compact", True, "shadow, would have compacted: compact (server): C/s = 12"),
    ],
)
def test_it_waits_where_the_advice_says_so_and_always_in_the_shadow(decision, shadow, told):
    messages = session()
    chosen = cost_aware(strategy("micro", keep=1), Client(decision), shadow=shadow)
    result = chosen.compact(messages)
    assert result.messages is messages
    assert result.reason == told


def test_nobody_is_asked_where_there_is_nothing_to_gain():
    client = Client("compact")
    for inner in (strategy("micro", keep=9), strategy("none"), strategy("token_budget")):
        result = cost_aware(inner, client).compact(session())
        assert not result.changed
    assert client.asked == []


def test_a_question_about_a_summary_says_who_summarizes():
    requests, client = [], Client("wait")
    inner = strategy("summarize", model=asked_of(requests), threshold=0, keep_recent=2)
    cost_aware(inner, client, model="big").compact(session())
    named = Summarizer(asked_of(requests), model_name="small", summary_tokens=100)
    inner = strategy("summarize", model=named, threshold=0, keep_recent=2)
    cost_aware(inner, client, model="big").compact(session())
    first, second = (fields for *_, fields in client.asked)
    assert (first["kind"], first["summary_model"]) == ("separate", "big")
    assert (second["summary_model"], second["summary_output_tokens"]) == ("small", 100)
    assert requests == []


def test_a_turn_is_asked_and_told():
    turn = Turn("compact")
    chosen = cost_aware_turn(strategy("micro", keep=1), turn)
    result = chosen.compact(session(), Situation(prefix_tokens=500))
    ((role, calls, *_),) = turn.client.asked
    assert (role, calls) == ("main", 7)
    before, after = 500 + result.messages_tokens, 500 + result.messages_after_tokens
    assert turn.recorded == [(before, after, {"strategy": "micro"})]
    waiting = Turn("wait")
    cost_aware_turn(strategy("micro", keep=1), waiting).compact(session())
    assert waiting.recorded == []


def test_decorators_nest(tmp_path):
    log = tmp_path / "log.jsonl"
    inner = with_logging(strategy("micro", keep=1), log)
    assert not cost_aware(inner, Client("wait")).compact(session()).changed
    assert not log.exists()
    assert cost_aware(inner, Client("compact")).compact(session()).changed
    assert '"strategy": "micro"' in log.read_text()


@pytest.mark.parametrize(
    ("name", "options", "seen"),
    [("micro", {"keep": 1}, 6), ("sliding_window", {"keep_last": 1}, 9)],
)
def test_clearing_is_not_charged_what_summaries_cost_the_agent(name, options, seen):
    """The ledger saw summaries alone: what they made the agent read again says nothing of this."""
    read_again = CompactionParameters(rework_tokens=Parameter(3_451.0, "role"))
    known = Parameters(compactions={"summary": read_again})
    client = Client("wait")
    inner = strategy(name, **options)
    cost_aware(inner, client, role="main", model="m").compact(session()[:seen])
    ((role, calls, context, _, fields),) = client.asked
    assert (fields["kind"], fields["strategy"]) == ("clear", name)
    weights = {"cache_read": 0.1, "cache_write": 1.25, "output": 5.0}
    asked = Question(role, calls, context, weights=weights, **fields)
    found = quote(asked, None, known, at=datetime(2026, 1, 1, tzinfo=UTC))
    # Only what is left of the context behind the cached prefix is written instead of read.
    after, prefix = fields["context_after_tokens"], fields["prefix_tokens"]
    assert found.cost == pytest.approx(1.15 * (after - min(prefix, after)))
    assert found.saving == pytest.approx(0.1 * (context - after))
