"""A model, simulated or real: messages go in, one answer comes out, with what it used if told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from langchain_core.messages import AIMessage, BaseMessage

from ledger.usage import Usage

__all__ = ["Model", "Reply"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer.

    Parameters
    ----------
    message : AIMessage
    usage : Usage or None
        As the provider told it; None where nobody did, so that the bill is reckoned.
    """

    message: AIMessage
    usage: Usage | None = None


class Model(Protocol):
    """Whoever answers requests."""

    def answer(self, messages: Sequence[BaseMessage], *, with_tools: bool = True) -> Reply:
        """Answer one request.

        Parameters
        ----------
        messages : sequence of BaseMessage
            The whole request, system messages included.
        with_tools : bool
            Whether the three tools are sent with it.

        Raises
        ------
        CompactuaryError
            The provider refused, or can't be reached.
        """
        ...
