"""The arms: what each does to the messages before a request, as a node of the graph."""

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from experiment.assignment import SYSTEM_PROMPT
from experiment.bill import Meter
from experiment.simulated_summary import OPEN_FINDINGS
from experiment.sizes import messages_tokens, tools_block
from experiment.tools import TOOL_SCHEMAS
from strategies.none import NoCompaction
from strategies.preservation import preservation_prompt
from strategies.situation import Situation
from strategies.strategy import Strategy
from strategies.summarize import Summarize
from strategies.summary import Summarizer, SummaryReply, SummaryRequest
from strategies.token_budget import TokenBudget
from strategies.tokens import estimated_tokens

__all__ = ["ARMS", "FRAMEWORK", "NAIVE_PROMPT", "PRESERVING_PROMPT", "compaction_node"]

FRAMEWORK = "framework"
ARMS = ("baseline", "trimming", "naive", "preserving", FRAMEWORK)

#: What a summary is asked for by whoever does not say what to keep.
NAIVE_PROMPT = "Summarize the conversation so far."
PRESERVING_PROMPT = preservation_prompt(own=[OPEN_FINDINGS])

#: Messages that a summary leaves as they are: the last call and its result.
_KEEP_RECENT = 2
#: What the framework's node sets aside for its summary; it asks nobody to keep to it.
_SUMMARY_TOKENS = 512
_PREFIX_TOKENS = tools_block(TOOL_SCHEMAS).tokens


def compaction_node(arm: str, threshold_tokens: int, meter: Meter) -> Any:
    """Return the node that compacts in one arm.

    Parameters
    ----------
    arm : str
        One of `ARMS`.
    threshold_tokens : int
        Context past which it acts: tools, system prompt and messages.
    meter : Meter
        Who answers the summary calls.
    """
    if arm == FRAMEWORK:
        return _framework(threshold_tokens, meter)
    return _strategy_node(_strategy(arm, threshold_tokens, meter), threshold_tokens, meter)


def _strategy(arm: str, threshold_tokens: int, meter: Meter) -> Strategy:
    if arm == "baseline":
        return NoCompaction()
    if arm == "trimming":
        return TokenBudget(threshold_tokens)
    prompt = NAIVE_PROMPT if arm == "naive" else PRESERVING_PROMPT

    def ask(request: SummaryRequest) -> SummaryReply:
        answer = meter.summary(request.messages)
        return SummaryReply(answer.text, meter.last_summary, len(answer.tool_calls))

    summarizer = Summarizer(ask, prompt=prompt, behind_prefix=True)
    return Summarize(summarizer, threshold=0, keep_recent=_KEEP_RECENT, within_turn=True)


def _strategy_node(strategy: Strategy, threshold_tokens: int, meter: Meter) -> Any:
    situation = Situation(prefix_tokens=_PREFIX_TOKENS)

    def compact(state: Mapping[str, Any]) -> dict[str, Any] | None:
        messages: list[BaseMessage] = state["messages"]
        if _PREFIX_TOKENS + messages_tokens(messages) <= threshold_tokens:
            return None
        result = strategy.compact(messages, situation)
        meter.check()
        if not result.changed:
            return None
        # All go and those that stay come back: the summary stands before what was kept.
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *result.messages]}

    return compact


def _framework(threshold_tokens: int, meter: Meter) -> Any:
    """Return LangMem's node with its own prompts; it leaves the state's messages as they are."""
    with warnings.catch_warnings():
        # One of its own imports is deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        short_term = import_module("langmem.short_term")

    def summarize(asked: Any) -> AIMessage:
        return meter.summary(asked, with_tools=False)

    most = threshold_tokens - _PREFIX_TOKENS - estimated_tokens(SYSTEM_PROMPT)
    return short_term.SummarizationNode(
        model=RunnableLambda(summarize),
        max_tokens=max(most, _SUMMARY_TOKENS + 1),
        max_summary_tokens=_SUMMARY_TOKENS,
        token_counter=messages_tokens,
    )
