"""The sweep on a real graph: its shape, its repeatability, and what every request looks like."""

from dataclasses import replace

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage, SystemMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.graph.state import CompiledStateGraph

from compactuary.errors import CompactuaryError
from experiment.arms import ARMS
from experiment.assignment import SYSTEM_PROMPT, opening_prompt
from experiment.bill import Meter
from experiment.desk import Desk
from experiment.documents import documents, injected_documents
from experiment.graph import Setting, build_graph, run_report
from experiment.model import Reply
from experiment.simulated import SimulatedModel
from experiment.sizes import messages_tokens, tools_block
from experiment.sweep import Plan, sweep
from experiment.sweep_payload import sweep_payload
from experiment.tools import TOOL_SCHEMAS
from policy.weights import weights_from
from strategies.conversation import SUMMARY_MARK
from tests.unit.strategies.provider_rules import problems

PRICES = weights_from({"cache_read": 0.1, "cache_write": 1.25, "output": 5})
TOOLS = tools_block(TOOL_SCHEMAS).tokens


class Recorded:
    """Passes requests on and keeps them."""

    def __init__(self, model):
        self.model, self.requests, self.replies = model, [], []

    def answer(self, messages, *, with_tools=True):
        self.requests.append((list(messages), with_tools))
        reply = self.model.answer(messages, with_tools=with_tools)
        self.replies.append(reply.message)
        return reply


@pytest.fixture(scope="module", params=[0, 7])
def swept(request):
    plan = Plan(documents=(0, 50), thresholds=(6_000, 30_000), seed=request.param)
    return sweep(SimulatedModel(request.param), PRICES, plan)


def score(swept, arm, documents):
    return swept.run(arm, documents).quality.score


def test_without_injected_documents_all_arms_are_alike(swept):
    scores = [score(swept, arm, 0) for arm in ARMS]
    assert max(scores) - min(scores) < 0.05
    assert min(scores) > 0.9


def test_with_fifty_only_what_preserves_holds(swept):
    assert score(swept, "preserving", 50) > score(swept, "preserving", 0) - 0.05
    for arm in ("baseline", "trimming", "naive", "framework"):
        assert score(swept, arm, 50) < score(swept, "preserving", 50) - 0.25
        assert score(swept, arm, 50) < score(swept, arm, 0) - 0.25


def test_naive_reads_again_and_contradicts_where_preserving_does_not(swept):
    naive, preserving = (swept.run(arm, 50).quality for arm in ("naive", "preserving"))
    assert len(naive.read_again) >= 5
    assert len(naive.contradictions) >= 3
    assert (preserving.read_again, preserving.contradictions) == ((), ())
    assert preserving.facts_survived > naive.facts_survived
    assert preserving.reads == 24


def test_summary_calls_are_on_the_bill(swept):
    for arm in ARMS:
        bill = swept.run(arm, 50).bill
        assert (bill.summary_cost > 0) == (arm in ("naive", "preserving", "framework"))
        assert (bill.summary_calls > 0) == (bill.summary_cost > 0)
        assert bill.cost > bill.summary_cost
    preserving = swept.run("preserving", 50).bill
    assert preserving.cost < min(swept.run(arm, 50).bill.cost for arm in ("baseline", "naive"))


def test_a_late_threshold_costs_quality_an_early_one_more_summaries(swept):
    early, late = swept.thresholds
    assert early.setting.threshold_tokens < late.setting.threshold_tokens
    assert early.quality.score > late.quality.score
    assert early.bill.summary_calls > late.bill.summary_calls
    assert early.bill.largest_context < late.bill.largest_context


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_trimming_holds_at_first_and_falls_off(seed):
    scores = [
        run_report(
            Setting("trimming", count, 15_000, seed), SimulatedModel(seed), PRICES
        ).quality.score
        for count in (10, 25, 50)
    ]
    assert scores[0] > 0.9
    assert scores[1] > 0.85
    assert scores[2] < scores[1] - 0.25


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    plan = Plan(documents=(25,), arms=("naive", "framework"), thresholds=())
    told = [
        repr(sweep_payload(sweep(SimulatedModel(seed), PRICES, replace(plan, seed=seed)), "s", "m"))
        for seed in (4, 4, 5)
    ]
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("arm", ARMS)
def test_every_request_has_its_calls_paired_and_the_system_prompt_first(arm):
    recorded = Recorded(SimulatedModel(0))
    run_report(Setting(arm, 50, 15_000), recorded, PRICES)
    asked = [messages for messages, _ in recorded.requests]
    assert len(asked) >= 34
    for messages in asked:
        assert problems("langchain", messages) == []
    of_agent = [m for m in asked if isinstance(m[0], SystemMessage)]
    assert {m[0].text for m in of_agent} == {SYSTEM_PROMPT}
    # Only the framework's own summary calls go without the system prompt, and without tools.
    assert len(of_agent) == sum(with_tools for _, with_tools in recorded.requests)
    assert (len(of_agent) < len(asked)) == (arm == "framework")


@pytest.mark.parametrize("arm", ["baseline", "naive", "framework"])
def test_answers_depend_on_the_messages_alone(arm):
    """Asked again in reverse order, a model without a past answers every request as before."""
    recorded = Recorded(SimulatedModel(0))
    run_report(Setting(arm, 50, 15_000), recorded, PRICES)
    fresh = SimulatedModel(0)
    for (messages, with_tools), reply in reversed(
        list(zip(recorded.requests, recorded.replies, strict=True))
    ):
        again = fresh.answer(messages, with_tools=with_tools).message
        assert (again.text, again.tool_calls) == (reply.text, reply.tool_calls)


@pytest.mark.parametrize("arm", ["trimming", "naive", "preserving"])
def test_no_request_is_past_the_threshold_by_more_than_instructions(arm):
    recorded = Recorded(SimulatedModel(0))
    run_report(Setting(arm, 25, 15_000), recorded, PRICES)
    sizes = [TOOLS + messages_tokens(messages) for messages, _ in recorded.requests]
    asking = [
        size
        for size, (messages, _) in zip(sizes, recorded.requests, strict=True)
        if messages[-1].text.startswith("Summarize")
    ]
    assert max(size for size in sizes if size not in asking) <= 15_000
    assert not asking or min(asking) > 10_000


def test_the_graph_is_langgraph_s_and_its_node_removes_and_puts_the_summary():
    meter = Meter(SimulatedModel(0), PRICES)
    desk = Desk(documents(0), injected_documents(0, 300), 1)
    graph = build_graph(Setting("preserving", 300, 15_000), meter, desk)
    assert isinstance(graph, CompiledStateGraph)
    asked = {
        "messages": [SystemMessage(SYSTEM_PROMPT), HumanMessage(opening_prompt())],
        "calls": 0,
        "context": {},
    }
    updates = [
        change["compact"]["messages"]
        for change in graph.stream(asked, stream_mode="updates")
        if change.get("compact")
    ]
    assert updates
    for messages in updates:
        assert isinstance(messages[0], RemoveMessage)
        assert messages[0].id == REMOVE_ALL_MESSAGES
        assert messages[1].text == SYSTEM_PROMPT
        assert messages[2].text.startswith(SUMMARY_MARK)
        # What the user said stays behind the summary, and what was called last behind that.
        assert messages[3].text == opening_prompt()
        assert messages[4].tool_calls


class Lost:
    """Never knows what it has read."""

    def answer(self, messages, *, with_tools=True):
        call = {"name": "read", "args": {"doc_id": "doc-001"}, "id": f"c{len(messages)}"}
        reply = SimulatedModel(0).answer(messages, with_tools=with_tools)
        if reply.message.tool_calls:
            reply = Reply(reply.message.model_copy(update={"tool_calls": [call]}))
        return reply


def test_an_agent_that_goes_round_in_circles_is_stopped(monkeypatch):
    monkeypatch.setattr("experiment.graph.MOST_CALLS", 5)
    run = run_report(Setting("trimming", 0, 15_000), Lost(), PRICES)
    assert run.bill.requests == 9 * 5
    assert run.quality.facts_survived == 0
    assert len(run.quality.read_again) == 9 * 5 - 1


class Clumsy:
    """Calls tools wrongly at first, as real models may."""

    def __init__(self):
        self.wrong = [
            {"name": "read", "args": {}, "id": "w0"},
            {"name": "fetch", "args": {"doc_id": "doc-001"}, "id": "w1"},
            {"name": "search", "args": {"query": 7}, "id": "w2"},
        ]

    def answer(self, messages, *, with_tools=True):
        reply = SimulatedModel(0).answer(messages, with_tools=with_tools)
        if self.wrong and reply.message.tool_calls:
            calls = [self.wrong.pop()]
            return Reply(reply.message.model_copy(update={"tool_calls": calls}))
        return reply


def test_a_wrong_call_is_answered_and_the_report_goes_on():
    clumsy = Clumsy()
    run = run_report(Setting("baseline", 0, 15_000), clumsy, PRICES)
    assert not clumsy.wrong
    assert run.bill.requests == 34 + 3
    assert run.quality.facts_survived == 17


class Refusing(SimulatedModel):
    """Its provider takes requests of the agent, and none for a summary."""

    def answer(self, messages, *, with_tools=True):
        if not isinstance(messages[-1], HumanMessage) or "ummar" not in messages[-1].text:
            return super().answer(messages, with_tools=with_tools)
        raise CompactuaryError("401: no such key", where="--provider")


@pytest.mark.parametrize("arm", ["naive", "preserving", "framework"])
def test_a_refused_summary_is_no_run_of_its_arm(arm):
    with pytest.raises(CompactuaryError, match="no such key"):
        run_report(Setting(arm, 10, 6_000), Refusing(0), PRICES)
