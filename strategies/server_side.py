"""Strategy `server_side`: the provider compacts, and its block takes the old messages' place.

Three ways, as the providers' SDKs have them (anthropic 2.14, openai 3.57):

- ``anthropic``: a request with ``compaction`` summarizes its messages and returns a `compaction`
  block alone, which later requests send first instead of them.
- ``anthropic_threshold``: ``context_management`` lets any request compact by itself past a
  threshold. The block comes at the head of the response's content, which must be sent back whole.
- ``openai``: ``responses.compact`` returns the user's messages and one opaque item.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compactuary.errors import InputError
from ledger.usage import Usage, billed_iterations, usage_from
from policy.prices import Prices
from policy.sizes import SUMMARY_OUTPUT_TOKENS
from strategies.conversation import Conversation
from strategies.cost_quote import Quote, SummaryTerms, nothing_to_do, quote_of
from strategies.cutting import systems_before
from strategies.formats.recognise import FORMATS
from strategies.masking import masked
from strategies.outside import one_line
from strategies.preservation import with_no_tool_calls
from strategies.raw_fields import field_of, plain
from strategies.result import Replacement, Result, replaced, unchanged
from strategies.safe_split import safe_cut
from strategies.settings import at_least, check_types
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, refusal, seen

__all__ = ["Send", "ServerSide", "Way"]

Way = Literal["anthropic", "anthropic_threshold", "openai"]
#: Sends the parameters of a request, with whatever the caller adds, and returns the response.
Send = Callable[[Mapping[str, Any]], Any]

#: The least that Anthropic accepts as a threshold, and its default.
LEAST_THRESHOLD_TOKENS = 50_000
THRESHOLD_TOKENS = 150_000

_FORMATS = {
    "anthropic": "anthropic",
    "anthropic_threshold": "anthropic",
    "openai": "openai_responses",
}


@dataclass(frozen=True, slots=True)
class ServerSide:
    """Builds the requests for a provider's own compaction, and puts its answer in place.

    Parameters
    ----------
    way : {'anthropic', 'anthropic_threshold', 'openai'}
    send : callable, optional
        Sends the parameters, such as ``lambda p: client.beta.messages.create(model=…,
        max_tokens=…, **p)`` or ``lambda p: client.responses.compact(model=…, **p)``. Without it,
        `parameters` and `put` are for the caller's own requests.
    instructions : str, optional
        They replace the provider's own prompt, so they must say everything that must survive; the
        line that forbids tool calls is added where it is missing. Anthropic only.
    threshold_tokens : int
        For 'anthropic_threshold'; default 150,000, at least 50,000.
    pause : bool
        For 'anthropic_threshold': stop after the compaction instead of answering.

    Raises
    ------
    InputError
        The way is unknown, the threshold too low, or instructions are given where none are taken.
    """

    name: ClassVar[str] = "server_side"
    way: Way = "anthropic"
    send: Send | None = None
    instructions: str | None = None
    threshold_tokens: int = THRESHOLD_TOKENS
    pause: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        if self.way not in _FORMATS:
            remedy = f"Known: {', '.join(_FORMATS)}."
            raise InputError("unknown way", where="way", value=self.way, remedy=remedy)
        at_least(LEAST_THRESHOLD_TOKENS, threshold_tokens=self.threshold_tokens)
        if self.way == "openai" and self.instructions is not None:
            remedy = "Leave them out: they would replace the agent's own, not the summary's."
            raise InputError("are not taken", where="instructions", value="openai", remedy=remedy)

    def parameters(self, messages: Messages, situation: Situation = DEFAULT) -> dict[str, Any]:
        """Return what a request must carry, beside the caller's model, system prompt and tools.

        Raises
        ------
        InputError
            The messages are of another provider's format.
        """
        conversation = seen(messages, situation)
        _check_format(conversation, self.way)
        raws = [message.raw for message in conversation.messages]
        asked = (
            {}
            if self.instructions is None
            else {"instructions": with_no_tool_calls(self.instructions)}
        )
        if self.way == "anthropic_threshold":
            trigger = {"type": "input_tokens", "value": self.threshold_tokens}
            edit: dict[str, Any] = {"type": "compact_20260112", "trigger": trigger, **asked}
            if self.pause:
                edit["pause_after_compaction"] = True
            return {
                "messages": raws,
                "betas": ["compact-2026-01-12"],
                "context_management": {"edits": [edit]},
            }
        old = raws[: _cut(conversation)]
        if self.way == "openai":
            return {"input": old}
        return {
            "messages": old,
            "betas": ["compact-2026-09-04"],
            "compaction": {"type": "summarize", **asked},
        }

    def put(self, messages: Messages, response: Any, situation: Situation = DEFAULT) -> Result:
        """Return the conversation with a response's compaction in place of what it stands for.

        A response without one is, for 'anthropic_threshold', a usual answer: nothing changes.
        """
        conversation = seen(messages, situation)
        _check_format(conversation, self.way)
        threshold = self.way == "anthropic_threshold"
        usage = _usage(response, of_compaction=threshold)
        if self.way == "openai":
            items = [_sendable(item) for item in field_of(response, "output") or ()]
        else:
            content = [_sendable(block) for block in field_of(response, "content") or ()]
            items = [{"role": "assistant", "content": content}]
        made = FORMATS[_FORMATS[self.way]].messages(items)
        if not any(_compacts(part.kind, part.characters) for each in made for part in each.parts):
            return unchanged(conversation, "the response holds no compaction", usage)
        size = len(conversation.messages)
        cut = size if threshold else _cut(conversation)
        systems = systems_before(conversation, cut)
        kept = (*systems, *range(cut, size))
        tokens = sum(each.tokens for each in made)
        tokens += sum(conversation.messages[k].tokens for k in kept)
        gone = tuple(k for k in range(cut) if k not in systems)
        new = Replacement((*systems, *items, *range(cut, size)), tokens, gone)
        return replaced(conversation, new, f"the server compacted {cut} messages", usage)

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Ask the provider for the compaction of what lies before the last prompt."""
        conversation = seen(messages, situation)
        refused = refusal(conversation)
        if refused:
            return refused
        idle = self._nothing_to_ask(conversation)
        if idle or self.send is None:
            return unchanged(conversation, idle or "nothing was given to send the request with")
        asked = self.parameters(conversation, situation)
        try:
            response = self.send(asked)
        except Exception as error:  # noqa: BLE001 - a provider may fail in any way; the result says how
            told = masked(one_line(str(error), 200))
            reason = f"the server failed: {type(error).__name__}: {told}"
            return unchanged(conversation, reason, failed=True)
        return self.put(conversation, response, situation)

    def _nothing_to_ask(self, conversation: Conversation) -> str:
        """Return why no request is made; empty where one is."""
        if self.way == "anthropic_threshold":
            return "the server compacts by itself: send parameters(), then put() its response"
        if not _cut(conversation):
            return "no clean boundary at the last prompt"
        return "nothing new to compact" if _is_compacted(conversation) else ""

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the price of a call behind the agent's own prefix, until one was observed."""
        conversation = seen(messages, situation)
        total = conversation.tokens()
        cut = _cut(conversation)
        if self.way == "anthropic_threshold" and situation.sent(total) > self.threshold_tokens:
            cut = len(conversation.messages)
        elif self.way == "anthropic_threshold":
            cut = 0
        if not cut or _is_compacted(conversation):
            return nothing_to_do(situation.sent(total))
        return quote_of(
            "server_side",
            prices,
            context_tokens=situation.sent(total),
            after_tokens=situation.sent(conversation.tokens(cut)) + SUMMARY_OUTPUT_TOKENS,
            cached_tokens=situation.prefix_tokens,
            prefix_tokens=situation.prefix_tokens,
            summary=SummaryTerms(
                situation.scaled(conversation.tokens(0, cut)), instruction_tokens=0
            ),
        )


def _cut(conversation: Conversation) -> int:
    """Return the cut before the last prompt; the server takes its own earlier summary along."""
    return safe_cut(conversation, conversation.last_prompt, past_compactions=True)


def _check_format(conversation: Conversation, way: str) -> None:
    wanted, found = _FORMATS[way], conversation.wire_format.name
    if found != wanted:
        remedy = f"This way takes messages of {wanted}."
        raise InputError("is another provider's", where="messages", value=found, remedy=remedy)


def _compacts(kind: str, characters: int) -> bool:
    """Whether a part is a compaction that did not fail: a failed one has no content."""
    return kind == "compaction" and characters > 0


def _is_compacted(conversation: Conversation) -> bool:
    """Whether the server's compaction stands right before the last prompt already."""
    before = conversation.messages[: max(conversation.last_prompt, 0)]
    return bool(before) and any(part.kind == "compaction" for part in before[-1].parts)


def _sendable(block: Any) -> Any:
    """Return a block of a response as a request takes it back: without fields that are not set."""
    dump = getattr(block, "model_dump", None)
    # An SDK reads a user's message among outputs as one of its own, and would warn of that.
    return block if dump is None else dump(exclude_none=True, warnings=False)


def _usage(response: Any, *, of_compaction: bool) -> Usage | None:
    told = plain(field_of(response, "usage"))
    if not isinstance(told, Mapping):
        return None
    told = {name: value for name, value in told.items() if value is not None}
    calls = [each for each in billed_iterations(told) if each.kind == "compaction"]
    if calls:
        return _sum_of([each.usage for each in calls])
    return None if of_compaction else usage_from(told)


def _sum_of(usages: Sequence[Usage]) -> Usage:
    """Return usages in one, class by class."""
    names = Usage.__slots__
    return Usage(**{name: sum(getattr(each, name) for each in usages) for name in names})
