"""The rule `reorder`: break-even with the value of waiting, the reorder point of an inventory."""

import math

from policy.rules.break_even import break_even_context
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "cold_reorder_context", "reorder", "reorder_context", "reorder_requests"]

RULE = "reorder"

# Tokens; where the window is not known a threshold beyond is never reached.
_LARGEST = 2.0**52
# Requests; past this, sums over a geometric life lose their digits.
_LONGEST = 1e6


def reorder(life: Life, setting: Setting) -> Thresholds:
    """Return b*(m(i) + ν) for every age.

    Parameters
    ----------
    life, setting : Life, Setting
        The role's turns; prices and sizes. ν is 0 where context does not outlive the turn.

    Notes
    -----
    Optimal where the hazard is constant and growth even; it takes m(i) for the mean of a
    memoryless life. It knows nothing of pauses: the end of a turn is never a reason to compact.
    Reference: the model, §4.
    """
    outlives = setting.requests_after_turn
    known: dict[float, float | None] = {}
    at_call = []
    for expected in life.expected:
        if expected not in known:
            known[expected] = reorder_context(expected + outlives, setting)
        at_call.append(known[expected])
    at_resume = cold_reorder_context(life.expected[0] + outlives, setting)
    return Thresholds(RULE, tuple(at_call), at_resume=at_resume, setting=setting)


def reorder_context(expected_requests: float, setting: Setting) -> float | None:
    """Return b* = a + g·n*, the context from which a compaction is worth not waiting any longer.

    Parameters
    ----------
    expected_requests : float
        m, at least 1, the next request included.
    setting : Setting
        Prices and sizes.

    Returns
    -------
    float or None
        None where no context inside the window is large enough.
    """
    if not setting.growth_tokens:
        # Nothing grows, so there is nothing to wait for.
        found = break_even_context(expected_requests, setting)
    else:
        requests = reorder_requests(expected_requests, setting)
        found = None
        if requests is not None:
            found = setting.after_tokens + setting.growth_tokens * requests
    return None if found is None or found > min(setting.limit_tokens(), _LARGEST) else found


def reorder_requests(expected_requests: float, setting: Setting) -> int | None:
    """Return n*, the requests from one compaction to the next, None for never.

    Parameters
    ----------
    expected_requests : float
        m, at least 1, the next request included.
    setting : Setting
        Prices and sizes, with g > 0.

    Notes
    -----
    The first n ≥ 1 with n − (m − 1)(1 − pⁿ) ≥ C(a)/(g·(m·r̄ − σ)), p = 1 − 1/m and σ the
    growth of C per token: the model's first-order rule, whose terms in A_n and C_n cancel because
    both are linear in the context. The left side rises in n.
    """
    m = max(1.0, expected_requests)
    gain = m * setting.mean_read_weight - setting.summary_slope
    if gain <= 0.0:
        return None
    target = setting.cost(setting.after_tokens) / (setting.growth_tokens * gain)
    if not target < _LARGEST:
        return None

    def reached(n: int) -> bool:
        return _waited(n, m) >= target

    # _waited(n) lies between n − (m − 1) and n.
    low, high = max(0, math.ceil(target) - 1), math.ceil(target + m)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return max(1, high)


def _waited(n: int, m: float) -> float:
    """Return n − (m − 1)(1 − pⁿ)."""
    if m == 1.0:
        return float(n)
    return n + (m - 1.0) * math.expm1(n * math.log1p(-1.0 / m))


def cold_reorder_context(expected_requests: float, setting: Setting) -> float | None:
    """Return the context from which to compact at the first request on a cold cache.

    Parameters
    ----------
    expected_requests : float
        m, at least 1, that request included.
    setting : Setting
        Prices and sizes.

    Returns
    -------
    float or None
        Whole tokens. None where it is better to cache the context again at w and to compact, if
        at all, when reading it costs r̄, at every context inside the window.
    """
    m = min(max(1.0, expected_requests), _LONGEST)
    after, grown = setting.after_tokens, setting.first_growth_tokens
    threshold = reorder_context(m, setting)
    again = setting.summary_intercept + setting.write_weight * after
    again += (1.0 - 1.0 / m) * _warm_value(after + grown, m, threshold, setting)

    def pays(context: float) -> bool:
        waits = setting.write_weight * context
        waits += (1.0 - 1.0 / m) * _warm_value(context + grown, m, threshold, setting)
        return waits > setting.cold_summary_slope * context + again

    low, high = math.floor(after), math.floor(min(setting.limit_tokens(grown), _LARGEST))
    if high <= low or not pays(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return float(high)


def _warm_value(context: float, m: float, threshold: float | None, setting: Setting) -> float:
    """Return what a memoryless turn costs from a context on, compacting from the threshold on."""
    if threshold is None:
        growth = setting.growth_tokens * (m - 1.0)
        return setting.mean_read_weight * m * (context + growth)
    after = setting.after_tokens
    cycle, left = _until(after, m, threshold, setting)
    waits, reached = _until(context, m, threshold, setting)
    return waits + reached * cycle / (1.0 - left)


def _until(context: float, m: float, threshold: float, setting: Setting) -> tuple[float, float]:
    """Return the cost up to and with the next compaction, and P(the turn lasts until then)."""
    growth = setting.growth_tokens
    if context >= threshold:
        return setting.cost(context), 1.0
    if not growth:
        return setting.mean_read_weight * context * m, 0.0
    requests = math.ceil((threshold - context) / growth)
    log_p = math.log1p(-1.0 / m) if m > 1.0 else -math.inf
    left = math.exp(requests * log_p)
    # Σ pᵗ and Σ t·pᵗ over t < n.
    lasted = m * (1.0 - left)
    weighted = m * (lasted - 1.0 - (requests - 1) * left)
    reads = setting.mean_read_weight * (context * lasted + growth * weighted)
    return reads + left * setting.cost(context + growth * requests), left
