"""The guards around every rule: the window's hard limit, and compactions that save nothing."""

from policy.sizes import GROWTH_TOKENS, SUMMARY_OUTPUT_TOKENS

__all__ = ["USELESS_IN_A_ROW", "hard_limit", "no_saving", "useless"]

#: So many compactions in a row that shrank the context by less than 5% are enough: the model, §5.
USELESS_IN_A_ROW = 2


def hard_limit(
    context_tokens: int,
    window_tokens: int,
    *,
    growth_tokens: float = GROWTH_TOKENS,
    summary_output_tokens: float = SUMMARY_OUTPUT_TOKENS,
) -> bool:
    """Return whether to compact whatever the rule says, because it would soon be too late.

    Parameters
    ----------
    context_tokens : int
        Context before the next request.
    window_tokens : int
        What the model can hold, input and output together.
    growth_tokens : float
        Expected growth by one more request.
    summary_output_tokens : float
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


def useless(useless_compactions: int) -> bool:
    """Return whether compacting has been tried often enough without effect.

    Parameters
    ----------
    useless_compactions : int
        Compactions in a row that shrank this context by less than 5%.
    """
    return useless_compactions >= USELESS_IN_A_ROW
