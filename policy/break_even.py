"""The break-even rule: compact when the turn is expected to outlive the compaction's cost."""

import math

__all__ = ["RULE", "break_even_requests", "pays"]

RULE = "break-even"


def break_even_requests(cost: float, saving: float) -> float | None:
    """Return C/s, the requests that must remain for a compaction to pay.

    Parameters
    ----------
    cost : float
        C, in base tokens.
    saving : float
        s, in base tokens per remaining request.

    Returns
    -------
    float or None
        None where no number of requests would do: no saving, or one that is lost in rounding.
    """
    if saving <= 0:
        return None
    requests = cost / saving
    return requests if math.isfinite(requests) else None


def pays(expected_remaining_requests: float, break_even: float) -> bool:
    """Return whether to compact: the expected remaining requests strictly exceed C/s.

    Parameters
    ----------
    expected_remaining_requests : float
        m(i) in requests, the next one included.
    break_even : float
        C/s in requests.

    Notes
    -----
    Reference: the model, §4, rule `break-even`. It compares compacting now with never.
    """
    return expected_remaining_requests > break_even
