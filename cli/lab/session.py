"""The lab's session: a conversation, what was done to it, and what it is judged by."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compactuary.errors import InputError
from policy.prices import Prices
from strategies.conversation import Conversation
from strategies.formats.recognise import see
from strategies.result import Result
from strategies.situation import Situation
from strategies.summary import Summarizer

__all__ = ["Bench", "Reply", "Session", "State", "model_of", "no_prices"]

#: Context tokens → prices of the agent's model at that size.
PriceLookup = Callable[[int], Prices]
#: The fields of a question → the answer as the service gives it.
Asking = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def no_prices(context_tokens: int) -> Prices:
    """Refuse: nobody said whose prices to use.

    Raises
    ------
    InputError
        Always.
    """
    del context_tokens
    remedy = "Start the lab with --model NAME, or with --weight for each weight."
    raise InputError("no model is known", where="--model", remedy=remedy)


def model_of(prices: Prices) -> str | None:
    """Return whose prices these are; None where they are weights that the caller gave."""
    return None if prices.source == "caller" else prices.model


@dataclass(frozen=True, slots=True)
class Bench:
    """What a session is judged by; it does not change while the lab is open.

    Parameters
    ----------
    summarizer : Summarizer
        Who writes summaries.
    prices : callable
        Prices at a context's size; default refuses.
    ask : callable, optional
        Answers a question; None where nobody can.
    role : str
        The agent's role, as the ledger knows it; default ``main``.
    prefix_tokens : int
        Of system prompt and tools where they are no messages.
    body : mapping, optional
        The request that the messages came in.
    """

    summarizer: Summarizer
    prices: PriceLookup = no_prices
    ask: Asking | None = None
    role: str = "main"
    prefix_tokens: int = 0
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The conversation at one time.

    Parameters
    ----------
    conversation : Conversation
    strategy : str
        The line of the strategy that made it; empty for what was opened.
    result : Result or None
        What that strategy did to the state before.
    """

    conversation: Conversation
    strategy: str = ""
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command answers: lines for people, values for programs."""

    lines: Sequence[str]
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """Where a session stands. Commands return another one, so a failed command changes nothing.

    Parameters
    ----------
    bench : Bench
    states : tuple of State
        What was opened, and each compaction since; the last is now.
    undone : tuple of State
        What ``/redo`` brings back, the last first.
    strategy : str
        The line that ``/compact``, ``/quote`` and ``/decide`` use without one; default ``micro``.
    verbose : bool
        Whether each compaction is shown before and after.
    ended : bool
    """

    bench: Bench
    states: tuple[State, ...]
    undone: tuple[State, ...] = ()
    strategy: str = "micro"
    verbose: bool = False
    ended: bool = False

    @property
    def now(self) -> State:
        """The conversation as it is."""
        return self.states[-1]

    @property
    def conversation(self) -> Conversation:
        """The messages as they are."""
        return self.now.conversation

    def situation(self, *, force: bool = False) -> Situation:
        """Return what strategies are told besides the messages."""
        name = self.conversation.wire_format.name
        return Situation(self.bench.prefix_tokens, wire_format=name, force=force)

    @property
    def context_tokens(self) -> int:
        """X, the context that the next request would send."""
        return self.situation().sent(self.conversation.tokens())

    def with_result(self, strategy: str, result: Result) -> "Session":
        """Return the session after a compaction; one that changed nothing leaves no step."""
        if not result.changed:
            return self
        after = see(result.messages, self.conversation.wire_format.name)
        return replace(self, states=(*self.states, State(after, strategy, result)), undone=())

    def before(self) -> "Session":
        """Return the session one compaction back.

        Raises
        ------
        InputError
            Nothing was compacted.
        """
        if len(self.states) == 1:
            remedy = "Compact first: /compact."
            raise InputError("nothing was compacted yet", where="/undo", remedy=remedy)
        return replace(self, states=self.states[:-1], undone=(*self.undone, self.now))

    def again(self) -> "Session":
        """Return the session with the compaction that was undone last.

        Raises
        ------
        InputError
            Nothing was undone since the last compaction.
        """
        if not self.undone:
            raise InputError("nothing was undone", where="/redo", remedy="See /undo.")
        return replace(self, states=(*self.states, self.undone[-1]), undone=self.undone[:-1])
