"""The rule `break-even`: compact where m(i)·s exceeds C, now compared with never."""

import math
from collections.abc import Iterable

from policy.break_even import RULE, break_even_requests, pays
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "break_even", "break_even_context", "cold_context", "thresholds_by_remaining"]

# Past this a context in tokens has no fraction left, and no model such a window.
_LARGEST = 2.0**52


def break_even(life: Life, setting: Setting, *, session: bool = False) -> Thresholds:
    """Return the contexts from which the expected remaining requests exceed C/s.

    Parameters
    ----------
    life, setting : Life, Setting
        The role's turns; prices and sizes.
    session : bool
        Whether the ν requests expected after this turn count as well.

    Notes
    -----
    Reference: the model, §4. It compares compacting now with never, so it is right where asked
    once, or where the hazard rises and nothing grows (T2); asked at every request it compacts too
    early where waiting may be better still.
    """
    after = setting.requests_after_turn if session else 0.0
    return thresholds_by_remaining(RULE, (m + after for m in life.expected), setting)


def thresholds_by_remaining(rule: str, remaining: Iterable[float], setting: Setting) -> Thresholds:
    """Return break-even contexts for a guess of the remaining requests at each age.

    Parameters
    ----------
    rule : str
        Name of the rule.
    remaining : iterable of float
        Requests that remain, the next one included, after 0, 1, … requests.
    setting : Setting
        Prices and sizes.
    """
    guessed = tuple(remaining)
    at_call = tuple(break_even_context(requests, setting) for requests in guessed)
    return Thresholds(rule, at_call, at_resume=cold_context(guessed[0], setting), setting=setting)


def break_even_context(requests: float, setting: Setting) -> float | None:
    """Return the smallest context, in whole tokens, at which requests·s > C on a warm cache.

    Parameters
    ----------
    requests : float
        Requests that remain, the next one included.
    setting : Setting
        Prices and sizes.

    Returns
    -------
    float or None
        (K + n·r̄·a)/(n·r̄ − σ) rounded up, with C(b) = σ·b + K and a = X′ + L; just above a
        where compacting pays at once, None where it never does.
    """
    after = setting.after_tokens
    gain = requests * setting.mean_read_weight - setting.summary_slope
    first = math.floor(after) + 1.0
    if gain <= 0.0:
        # Falling in b: if it does not pay just above a, it never will.
        return first if _pays_at(first, requests, setting) else None
    fixed = setting.summary_intercept + setting.recache_cost
    exact = (fixed + requests * setting.mean_read_weight * after) / gain
    if not exact < _LARGEST:
        return None
    found = max(first, math.floor(exact) + 1.0)
    # The closed form may be a rounding off what C/s itself says.
    if found > first and _pays_at(found - 1.0, requests, setting):
        return found - 1.0
    return found if _pays_at(found, requests, setting) else found + 1.0


def cold_context(requests: float, setting: Setting) -> float | None:
    """Return the smallest context, in whole tokens, at which compacting on a cold cache pays.

    Parameters
    ----------
    requests : float
        Requests that remain, the first one included, which writes the whole context again.
    setting : Setting
        Prices and sizes.

    Notes
    -----
    net = w·D + (n − 1)·r̄·D − C_sum, D = b − a. Reference: the model, §3.
    """
    weight = setting.write_weight + max(0.0, requests - 1.0) * setting.mean_read_weight
    if requests <= 0.0:
        return None
    gain = weight - setting.cold_summary_slope
    first = math.floor(setting.after_tokens) + 1.0
    fixed = setting.summary_intercept
    if gain <= 0.0:
        paid = weight * (first - setting.after_tokens)
        return first if paid > setting.cold_summary_slope * first + fixed else None
    exact = (fixed + weight * setting.after_tokens) / gain
    return max(first, math.floor(exact) + 1.0) if exact < _LARGEST else None


def _pays_at(context: float, requests: float, setting: Setting) -> bool:
    """Ask the rule itself, in the terms that an answer shows."""
    line = break_even_requests(setting.cost(context), setting.saving(context))
    return line is not None and pays(requests, line)
