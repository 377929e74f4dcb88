"""Decorator `cost_aware`: any strategy, but only where compacting pays."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from compactuary.advice import Advice
from policy.prices import Prices
from strategies.cost_quote import Quote
from strategies.result import Result, unchanged
from strategies.situation import Situation
from strategies.strategy import DEFAULT, Messages, Strategy, seen

__all__ = ["Asking", "AskingTurn", "CostAware", "cost_aware", "cost_aware_turn"]


class Asking(Protocol):
    """What is needed of `compactuary.Client`."""

    def should_compact(
        self,
        role: str = "",
        calls: int = 0,
        context_tokens: int | None = None,
        model: str | None = None,
        **fields: Any,
    ) -> Advice:
        """Return whether to compact; never raises."""
        ...


class AskingTurn(Protocol):
    """What is needed of a turn of the client."""

    def should_compact(self, context_tokens: int | None = None, **fields: Any) -> Advice:
        """Return whether to compact; never raises."""
        ...

    def compacted(self, context_before: int, context_after: int | None = None, **more: Any) -> None:
        """Record a compaction."""
        ...


#: The question is about sizes; whoever answers has the prices, so any weights do for the quote,
#: and any dollars for a summarizer that has prices of its own.
_SIZES_ONLY = Prices("", "caller", 0.1, 1.25, 2.0, 5.0, {"input": 1.0}, None, "caller", None)

#: Asks with calls so far, context tokens and the quote's sizes.
Ask = Callable[[int, int, dict[str, Any]], Advice]
#: Records context before and after, and the strategy's name.
Record = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class CostAware:
    """Asks before each compaction, with the strategy's own quote.

    Parameters
    ----------
    inner : Strategy
        Who does the work.
    ask : callable
        Returns advice. The question carries the quote's kind, X, X′ and p′; what that costs at
        which prices is for whoever answers.
    record : callable, optional
        Told of each compaction.
    shadow : bool
        Never compact, only say what would have been done.
    """

    inner: Strategy
    ask: Ask
    record: Record | None = None
    shadow: bool = False

    @property
    def name(self) -> str:
        """The name of the strategy within."""
        return self.inner.name

    def compact(self, messages: Messages, situation: Situation = DEFAULT) -> Result:
        """Compact if the strategy has something to gain and the advice is to do it.

        Nobody is asked where the strategy would change nothing anyway.
        """
        conversation = seen(messages, situation)
        quote = self.inner.quote(conversation, _SIZES_ONLY, situation)
        if quote.kind == "none":
            return unchanged(conversation, f"{self.name} would change nothing, so nobody was asked")
        fields = _fields(self.inner, quote)
        advice = self.ask(conversation.calls_in_turn, quote.context_tokens, fields)
        told = f"{advice.decision} ({advice.source}): {advice.reason}"
        if not advice.compact:
            return unchanged(conversation, told)
        if self.shadow:
            return unchanged(conversation, f"shadow, would have compacted: {told}")
        result = self.inner.compact(conversation, situation)
        if result.changed and self.record is not None:
            after = situation.sent(result.messages_after_tokens)
            self.record(situation.sent(result.messages_tokens), after, self.name)
        return replace(result, reason=f"{result.reason}; {told}")

    def quote(self, messages: Messages, prices: Prices, situation: Situation = DEFAULT) -> Quote:
        """Return the quote of the strategy within."""
        return self.inner.quote(messages, prices, situation)


def _fields(inner: Strategy, quote: Quote) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": quote.kind,
        "strategy": inner.name,
        "context_after_tokens": quote.context_after_tokens,
        "prefix_tokens": quote.cached_after_tokens,
    }
    if quote.summary_model is not None:
        fields["summary_model"] = quote.summary_model
    if quote.kind != "clear":
        fields["summary_output_tokens"] = quote.sizes.summary_output_tokens
    return fields


def cost_aware(
    inner: Strategy,
    client: Asking,
    *,
    role: str = "",
    model: str | None = None,
    shadow: bool = False,
    **question: Any,
) -> CostAware:
    """Return a strategy that asks a client first.

    Calls so far are counted in the conversation, from the last prompt on.

    Parameters
    ----------
    inner : Strategy
    client : compactuary.Client
    role : str
        The agent's role, as the ledger knows it.
    model : str, optional
        Whose prices to use; also who summarizes, unless the strategy's summarizer has a name.
    shadow : bool
        Never compact, only say what would have been done.
    question
        What every question says besides, such as ``window_tokens``.
    """

    def ask(calls: int, context_tokens: int, fields: dict[str, Any]) -> Advice:
        told = _with_summary_model(question | fields, model)
        return client.should_compact(role, calls, context_tokens, model, **told)

    return CostAware(inner, ask, None, shadow)


def cost_aware_turn(
    inner: Strategy,
    turn: AskingTurn,
    *,
    model: str | None = None,
    shadow: bool = False,
    **question: Any,
) -> CostAware:
    """Return a strategy that asks a client's turn first, which counts calls by itself.

    Compactions are recorded with the turn.

    Parameters
    ----------
    inner : Strategy
    turn : compactuary.turn.Turn
    model : str, optional
        Who summarizes, unless the strategy's summarizer has a name.
    shadow, question
        As of `cost_aware`.
    """

    def ask(calls: int, context_tokens: int, fields: dict[str, Any]) -> Advice:
        del calls
        return turn.should_compact(context_tokens, **_with_summary_model(question | fields, model))

    def record(before: int, after: int, name: str) -> None:
        turn.compacted(before, after, strategy=name)

    return CostAware(inner, ask, record, shadow)


def _with_summary_model(fields: dict[str, Any], model: str | None) -> dict[str, Any]:
    if fields.get("kind") == "separate" and model is not None:
        return {"summary_model": model} | fields
    return fields
