"""The agent as a LangGraph graph, and one run of it: the whole report, section by section."""

import warnings
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from compactuary.errors import InputError
from experiment.arms import ARMS, FRAMEWORK, compaction_node
from experiment.assignment import (
    CLOSING,
    SECTIONS,
    SYSTEM_PROMPT,
    opening_prompt,
    section_prompt,
)
from experiment.bill import Bill, Meter
from experiment.desk import Desk
from experiment.documents import documents, injected_documents
from experiment.model import Model
from experiment.quality import Quality, quality_of
from experiment.tools import tools_of
from policy.prices import Prices

__all__ = [
    "LEAST_THRESHOLD",
    "MOST_CALLS",
    "MOST_DOCUMENTS",
    "ReportRun",
    "Setting",
    "build_graph",
    "run_report",
]

#: An agent that loses what it looks up as fast as it finds it is stopped here, in each section.
MOST_CALLS = 60
#: Tools, system prompt, a summary and the documents of one reading fit into it.
LEAST_THRESHOLD = 5_000
#: Five runs of so many took half a minute together; what is to be seen is there with 50.
MOST_DOCUMENTS = 500


class ReportState(MessagesState):
    """What the graph carries.

    Parameters
    ----------
    messages : list
        The conversation; the reducer `add_messages` obeys `RemoveMessage`.
    calls : int
        Requests since the user spoke.
    context : dict
        Where the framework's node keeps its running summary.
    summarized_messages : list
        What the framework's node sends instead of the messages.
    """

    calls: int
    context: dict[str, Any]
    summarized_messages: list[AnyMessage]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is about, whoever answers.

    Parameters
    ----------
    arm : str
        One of `experiment.arms.ARMS`.
    documents : int
        Injected documents, up to `MOST_DOCUMENTS`.
    threshold_tokens : int
        Context past which the arm compacts.
    seed : int
        Of the documents.

    Raises
    ------
    InputError
        There is no such arm, the documents are too many, or the threshold leaves no room.
    """

    arm: str
    documents: int
    threshold_tokens: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.arm not in ARMS:
            raise InputError(
                "no such arm",
                where="--arms",
                value=self.arm,
                remedy=f"Choose among {', '.join(ARMS)}",
            )
        if not 0 <= self.documents <= MOST_DOCUMENTS:
            raise InputError(
                f"is not from 0 to {MOST_DOCUMENTS}",
                where="--documents",
                value=self.documents,
                remedy="Give how many documents to inject, such as 0,10,25,50",
            )
        if self.threshold_tokens < LEAST_THRESHOLD:
            raise InputError(
                "leaves no room to work",
                where="--threshold, --thresholds",
                value=self.threshold_tokens,
                remedy=f"Give at least {LEAST_THRESHOLD:,} tokens",
            )


@dataclass(frozen=True, slots=True)
class ReportRun:
    """What came of a run.

    Parameters
    ----------
    setting : Setting
    quality : Quality
    bill : Bill
    """

    setting: Setting
    quality: Quality
    bill: Bill


def build_graph(setting: Setting, meter: Meter, desk: Desk) -> Any:
    """Return the compiled graph: compact, answer, run tools, and again until nothing is called."""
    sent = "summarized_messages" if setting.arm == FRAMEWORK else "messages"

    def answer(state: ReportState) -> dict[str, Any]:
        reply = meter.agent(state[sent])  # type: ignore[literal-required]
        return {"messages": [reply], "calls": state["calls"] + 1}

    def calls_tools(state: ReportState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", ()) else END

    def goes_on(state: ReportState) -> str:
        return "compact" if state["calls"] < MOST_CALLS else END

    graph = StateGraph(ReportState)
    graph.add_node("compact", compaction_node(setting.arm, setting.threshold_tokens, meter))
    graph.add_node("answer", answer)
    graph.add_node("tools", ToolNode(tools_of(desk), handle_tool_errors=True))
    graph.add_edge(START, "compact")
    graph.add_edge("compact", "answer")
    graph.add_conditional_edges("answer", calls_tools, ["tools", END])
    graph.add_conditional_edges("tools", goes_on, ["compact", END])
    return graph.compile()


def run_report(setting: Setting, model: Model, prices: Prices) -> ReportRun:
    """Have the whole report written in one arm, and judge it.

    Parameters
    ----------
    setting : Setting
    model : Model
        Who answers, summaries included.
    prices : Prices
        What the bill is reckoned with.

    Raises
    ------
    CompactuaryError
        The model's provider refused.
    """
    desk = Desk(documents(setting.seed), injected_documents(setting.seed, setting.documents))
    meter = Meter(model, prices)
    graph = build_graph(setting, meter, desk)
    state: dict[str, Any] = {"messages": [SystemMessage(SYSTEM_PROMPT)], "context": {}}
    for section in (*SECTIONS, CLOSING):
        desk.asked_for = section.number
        prompt = opening_prompt() if section.number == 1 else section_prompt(section)
        asked = {**state, "messages": [*state["messages"], HumanMessage(prompt)], "calls": 0}
        with warnings.catch_warnings():
            # The framework's node says so where it summarizes the middle of a turn.
            warnings.filterwarnings("ignore", "Failed to trim", RuntimeWarning)
            state = graph.invoke(asked, {"recursion_limit": 4 * MOST_CALLS, "max_concurrency": 1})
    return ReportRun(setting, quality_of(desk), meter.bill())
