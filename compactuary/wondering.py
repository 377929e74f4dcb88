"""A question as an agent loop asks it."""

from typing import Any, NamedTuple

__all__ = ["Wondering"]


class Wondering(NamedTuple):
    """A question as an agent loop asks it, unchecked.

    Parameters
    ----------
    role, calls, context_tokens, model
        As in a question to the server.
    fields : dict
        Its other fields by name.
    """

    role: Any
    calls: Any
    context_tokens: Any
    model: Any
    fields: dict[str, Any]

    def told(self) -> dict[str, Any]:
        """Return it as the server takes it."""
        told = {"role": self.role, "calls": self.calls} | self.fields
        if self.context_tokens is not None:
            told["context_tokens"] = self.context_tokens
        if self.model is not None:
            told["model"] = self.model
        return told
