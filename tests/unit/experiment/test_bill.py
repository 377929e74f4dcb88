"""The bill, worked out by hand."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from experiment.bill import Meter, base_tokens
from experiment.model import Reply
from experiment.sizes import message_tokens, tools_block
from experiment.tools import TOOL_SCHEMAS
from ledger.usage import Usage
from policy.weights import weights_from

TOOLS = tools_block(TOOL_SCHEMAS).tokens
PAID = weights_from({"cache_read": 0.1, "cache_write": 1.25, "output": 5})
AUTOMATIC = weights_from({"cache_read": 0.1, "cache_write": 1, "output": 5})


class Fixed:
    """Answers everything with ten tokens."""

    def __init__(self, usage=None):
        self.usage = usage

    def answer(self, messages, *, with_tools=True):
        return Reply(AIMessage("y" * 40), self.usage)


def said(tokens, letter="x", kind=HumanMessage):
    return kind(letter * 4 * tokens)


def test_base_tokens_weigh_every_class():
    usage = Usage(
        uncached=100,
        cache_read=1_000,
        cache_write_5m=10,
        cache_write_30m=20,
        cache_write_1h=40,
        cache_write_12h=80,
        cache_write_other=30,
        output=7,
    )
    # 100 + 100 + 1.25·60 + 2·(40 + 80) + 5·7
    assert base_tokens(usage, PAID) == pytest.approx(100 + 100 + 75 + 240 + 35)


def test_a_request_reads_what_the_one_before_wrote():
    meter = Meter(Fixed(), PAID)
    system, prompt = said(100, "s", SystemMessage), said(50)
    meter.agent([system, prompt])
    first = 1.25 * (TOOLS + 150) + 5 * 10
    assert meter.bill().cost == pytest.approx(first)
    meter.agent([system, prompt, AIMessage("y" * 40), said(30, "z")])
    second = 0.1 * (TOOLS + 150) + 1.25 * 40 + 50
    bill = meter.bill()
    assert bill.cost == pytest.approx(first + second)
    assert (bill.requests, bill.summary_calls, bill.summary_cost) == (2, 0, 0)
    assert bill.largest_context == TOOLS + 190
    assert bill.dollars is None


def test_after_a_compaction_only_the_system_prompt_is_read():
    meter = Meter(Fixed(), PAID)
    system = said(100, "s", SystemMessage)
    meter.agent([system, said(50)])
    before = meter.bill().cost
    meter.agent([system, said(20, "c"), said(5, "d")])
    assert meter.bill().cost - before == pytest.approx(0.1 * (TOOLS + 100) + 1.25 * 25 + 50)


def test_a_summary_behind_the_prefix_reads_it_and_is_told_apart():
    meter = Meter(Fixed(), PAID)
    system, prompt = said(100, "s", SystemMessage), said(50)
    meter.agent([system, prompt])
    meter.summary([system, prompt, said(8, "i")])
    bill = meter.bill()
    # The instructions stand behind the last mark, so that nobody pays for caching them.
    assert bill.summary_cost == pytest.approx(0.1 * (TOOLS + 150) + 8 + 50)
    assert (bill.requests, bill.summary_calls) == (1, 1)


def test_a_summary_of_its_own_pays_the_plain_price():
    meter = Meter(Fixed(), PAID)
    meter.summary([said(300), said(8, "i")], with_tools=False)
    assert meter.bill().summary_cost == pytest.approx(308 + 50)


def test_where_writing_is_free_the_cache_is_automatic():
    meter = Meter(Fixed(), AUTOMATIC)
    meter.agent([said(100)])
    meter.agent([said(100), said(7, "z")])
    assert meter.bill().cost == pytest.approx(TOOLS + 100 + 50 + 0.1 * (TOOLS + 100) + 7 + 50)


def test_a_provider_s_own_usage_counts_before_any_reckoning():
    meter = Meter(Fixed(Usage(uncached=3, output=2)), PAID)
    meter.agent([said(5_000)])
    assert meter.bill().cost == pytest.approx(13)
    assert meter.bill().largest_context == 3


def test_a_message_counts_text_and_calls():
    call = {"name": "read", "args": {"doc_id": "doc-001"}, "id": "not counted"}
    # 12 characters; read{"doc_id": "doc-001"} are 25.
    assert message_tokens(AIMessage("a" * 12, tool_calls=[call])) == 3 + 7
