"""The guards around every rule: the hard limit of the window, and a compaction without saving."""

from policy.sizes import GROWTH_TOKENS, SUMMARY_OUTPUT_TOKENS

__all__ = ["hard_limit", "no_saving"]


def hard_limit(
    context_tokens: int,
    window_tokens: int,
    *,
    growth_tokens: int = GROWTH_TOKENS,
    summary_output_tokens: int = SUMMARY_OUTPUT_TOKENS,
) -> bool:
    """Return whether to compact whatever the rule says, because it would soon be too late.

    Parameters
    ----------
    context_tokens : int
        Context before the next request.
    window_tokens : int
        What the model can hold, input and output together.
    growth_tokens : int
        Expected growth by one more request.
    summary_output_tokens : int
        Output of the summary call, which must itself still fit after that request.

    Notes
    -----
    Reference: the model, §5. Exactly filling the window is still within it.
    """
    return context_tokens + growth_tokens + summary_output_tokens > window_tokens


def no_saving(saving: float, context_tokens: int | None, context_after_tokens: int | None) -> bool:
    """Return whether a compaction would leave nothing to save.

    Parameters
    ----------
    saving : float
        s, in base tokens per request.
    context_tokens, context_after_tokens : int or None
        Context before and after; None where they played no part.
    """
    if saving <= 0:
        return True
    if context_tokens is None or context_after_tokens is None:
        return False
    return context_after_tokens >= context_tokens
