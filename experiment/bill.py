"""The bill: what every request used, by class of token, the summary calls apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from compactuary.errors import CompactuaryError
from experiment.model import Model
from experiment.prefix_cache import PrefixCache
from experiment.sizes import block_of, message_tokens, tools_block
from experiment.tools import TOOL_SCHEMAS
from ledger.usage import Usage
from policy.prices import Prices

__all__ = ["Bill", "Meter", "base_tokens"]


@dataclass(frozen=True, slots=True)
class Bill:
    """What a run cost.

    Parameters
    ----------
    requests, summary_calls : int
        Requests of the agent, and those that wrote a summary.
    cost : float
        Base tokens (one uncached input token), summary calls included.
    summary_cost : float
        The part of it that the summary calls cost.
    dollars : float or None
        The cost in dollars; None where the prices tell none.
    largest_context : int
        Tokens of the largest request.
    """

    requests: int
    summary_calls: int
    cost: float
    summary_cost: float
    dollars: float | None
    largest_context: int


def base_tokens(usage: Usage, prices: Prices) -> float:
    """Return what a request cost, in base tokens; writes of 30 min count as those of 5."""
    long = prices.cache_write_12h or prices.cache_write_1h
    short = usage.cache_write_5m + usage.cache_write_30m + usage.cache_write_other
    return (
        usage.uncached
        + prices.cache_read * usage.cache_read
        + prices.cache_write_5m * short
        + prices.cache_write_1h * usage.cache_write_1h
        + long * usage.cache_write_12h
        + prices.output * usage.output
    )


class Meter:
    """Passes requests on to a model, and keeps what they used.

    Where the model tells no usage, a prompt cache is reckoned with: on a price list with a write
    fee the request is marked behind the system prompt and behind its last message, otherwise the
    cache is automatic. Nothing expires.

    Parameters
    ----------
    model : Model
    prices : Prices
    """

    def __init__(self, model: Model, prices: Prices) -> None:
        self._model = model
        self._prices = prices
        self._cache = PrefixCache(prices.minimum_cacheable_tokens or 0)
        self._agent: list[Usage] = []
        self._summaries: list[Usage] = []
        self._refusal: CompactuaryError | None = None

    def agent(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Answer a request of the agent."""
        reply = self._model.answer(messages)
        self._agent.append(reply.usage or self._reckoned(messages, reply.message, len(messages)))
        return reply.message

    def summary(self, messages: Sequence[BaseMessage], *, with_tools: bool = True) -> AIMessage:
        """Answer a request for a summary.

        Parameters
        ----------
        messages : sequence of BaseMessage
            The last one asks for the summary.
        with_tools : bool
            Whether the call goes behind the agent's own prefix, which then is read from the cache.

        Raises
        ------
        CompactuaryError
            The model's provider refused; kept for `check`, as a strategy goes on without a summary.
        """
        try:
            reply = self._model.answer(messages, with_tools=with_tools)
        except CompactuaryError as error:
            self._refusal = error
            raise
        # What stands before the instructions is all that a later request could find again.
        marked = len(messages) - 1 if with_tools else None
        usage = reply.usage or self._reckoned(messages, reply.message, marked)
        self._summaries.append(usage)
        return reply.message

    def check(self) -> None:
        """Check that no summary was refused: a run without it would be another arm's.

        Raises
        ------
        CompactuaryError
            What the provider said.
        """
        if self._refusal is not None:
            raise self._refusal

    @property
    def last_summary(self) -> Usage | None:
        """What the last summary call used."""
        return self._summaries[-1] if self._summaries else None

    def bill(self) -> Bill:
        """Return what all requests so far cost."""
        summary_cost = sum(base_tokens(one, self._prices) for one in self._summaries)
        cost = summary_cost + sum(base_tokens(one, self._prices) for one in self._agent)
        price = self._prices.dollars_per_million.get("input")
        return Bill(
            len(self._agent),
            len(self._summaries),
            cost,
            summary_cost,
            None if price is None else cost * price / 1e6,
            max((one.context_tokens for one in (*self._agent, *self._summaries)), default=0),
        )

    def _reckoned(
        self, messages: Sequence[BaseMessage], answer: AIMessage, marked: int | None
    ) -> Usage:
        """Return the usage of a request marked behind so many messages; None: not at all."""
        tools = [tools_block(TOOL_SCHEMAS)] if marked is not None else []
        blocks = [*tools, *map(block_of, messages)]
        output = message_tokens(answer)
        if self._prices.cache_write_5m <= 1.0:
            return self._cache.billed(blocks, output)
        if marked is None:
            return self._cache.billed(blocks, output, ())
        head = len(tools) + sum(isinstance(one, SystemMessage) for one in messages)
        return self._cache.billed(blocks, output, sorted({head, len(tools) + marked}))
