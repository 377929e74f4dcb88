"""Strategy `compact_tool`: the model asks for the compaction itself, and says what matters."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from compactuary.errors import InputError
from policy.prices import Prices
from strategies.auto import save_and_summarize
from strategies.conversation import Conversation, Part
from strategies.cost_quote import Quote, nothing_to_do
from strategies.result import Result, unchanged
from strategies.safe_split import clean_tail, open_tail, pair_up
from strategies.settings import check_types
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, refusal, seen
from strategies.summary import Summarizer, SummaryModel, quote_of_summary, summarizer_of
from strategies.transcript import Now, utc_now

__all__ = ["TOOL_NAME", "CompactTool", "ToolAnswer", "tool_schema"]

TOOL_NAME = "compact"
_DESCRIPTION = (
    "Replace the conversation so far by a summary. Call it when a phase of the work is done and "
    "its details are not needed any more."
)
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "focus": {
            "type": "string",
            "description": "What the summary must keep in most detail.",
        }
    },
}


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the handler of the tool gives back.

    Parameters
    ----------
    result : Result
        The conversation after; its last response holds the call, still open.
    content : str
        What to send as the call's result.
    """

    result: Result
    content: str


def tool_schema(wire_format: str = "anthropic") -> dict[str, Any]:
    """Return the tool as a request lists it.

    Parameters
    ----------
    wire_format : {'anthropic', 'openai_chat', 'openai_responses', 'langchain'}
        LangChain takes the form of OpenAI Chat.

    Raises
    ------
    InputError
        The format has no tools of this kind.
    """
    parameters = json.loads(json.dumps(_PARAMETERS))
    named = {"name": TOOL_NAME, "description": _DESCRIPTION}
    if wire_format == "anthropic":
        return {**named, "input_schema": parameters}
    if wire_format in ("openai_chat", "langchain"):
        return {"type": "function", "function": {**named, "parameters": parameters}}
    if wire_format == "openai_responses":
        return {"type": "function", **named, "parameters": parameters}
    remedy = "Known: anthropic, openai_chat, openai_responses, langchain."
    raise InputError("has no tools", where="wire_format", value=wire_format, remedy=remedy)


@dataclass(frozen=True, slots=True)
class CompactTool:
    """Compacts where the last response calls the tool ``compact`` and waits for its result.

    As `Auto`, the transcript is written first. The response with the call stays, with all its
    other calls, and so does what of their results is there already.

    Parameters
    ----------
    model : callable or Summarizer
        Who writes the summary.
    transcripts : Path or str
        Folder for the full transcripts. Default ``.transcripts``.
    now : callable
        Tells the time that names a transcript.

    Raises
    ------
    InputError
        The model can't be called.
    """

    name: ClassVar[str] = "compact_tool"
    model: Summarizer | SummaryModel
    transcripts: Path | str = ".transcripts"
    now: Now = utc_now

    def __post_init__(self) -> None:
        summarizer_of(self.model)
        check_types(self)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Do what an open call of the tool asks for; without one nothing changes."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        call = _open_call(conversation)
        if call is None:
            return unchanged(conversation, f"no call of {TOOL_NAME} waits for its result")
        summarizer, folder = summarizer_of(self.model), Path(self.transcripts)
        return save_and_summarize(conversation, summarizer, folder, self.now, _focus(call))

    def handle(self, messages: Messages, situation: Situation = DEFAULT) -> ToolAnswer:
        """Return the conversation after, and what the call's result says.

        The caller appends the result in its own way, beside those of other calls.
        """
        result = self.compact(messages, situation)
        if not result.changed:
            return ToolAnswer(result, f"Not compacted: {result.reason}.")
        gone = result.messages_tokens - result.messages_after_tokens
        return ToolAnswer(result, f"Compacted: about {gone} tokens became a summary.")

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the price of doing it now, whether or not the model asks for it."""
        conversation = seen(messages, situation)
        cut = clean_tail(conversation)
        if cut is None:
            return nothing_to_do(situation.sent(conversation.tokens()))
        return quote_of_summary(conversation, cut, summarizer_of(self.model), prices, situation)


def _open_call(conversation: Conversation) -> Part | None:
    waiting = pair_up(conversation.messages).unanswered
    tail = open_tail(conversation)
    answered = {
        part.id
        for message in conversation.messages[tail:]
        for part in message.parts
        if part.kind == "tool_result"
    }
    calls = (
        part
        for index in waiting
        if index >= tail
        for part in conversation.messages[index].parts
        if part.kind == "tool_call" and part.name == TOOL_NAME and part.id not in answered
    )
    return next(calls, None)


def _focus(call: Part) -> str:
    """Return the focus of a call, empty where its arguments are not as the schema says."""
    arguments = call.arguments
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return ""
    focus = arguments.get("focus") if isinstance(arguments, Mapping) else None
    return focus if isinstance(focus, str) else ""
