"""The rule `eoq`: the economic order quantity, a turn that never ends."""

import math

from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "eoq", "eoq_context"]

RULE = "eoq"


def eoq(life: Life, setting: Setting) -> Thresholds:  # noqa: ARG001 - every rule is called alike
    """Return one threshold for every request, without any survival data."""
    threshold = eoq_context(setting)
    return Thresholds(RULE, (threshold,), at_resume=threshold, setting=setting)


def eoq_context(setting: Setting) -> float | None:
    """Return a + g·√(2·C(a)/(r̄·g)), the limit of `reorder` for m → ∞.

    Parameters
    ----------
    setting : Setting
        Prices and sizes.

    Returns
    -------
    float or None
        None where reading costs nothing, or beyond the window.

    Notes
    -----
    C(b) = C(a) + σ·(b − a), of which σ·(b − a) is paid for every token once, however often one
    compacts; C(a) is what a longer cycle saves.
    """
    weight, after = setting.mean_read_weight, setting.after_tokens
    if not weight:
        return None
    found = after + math.sqrt(2.0 * setting.cost(after) * setting.growth_tokens / weight)
    # Compacting what is no larger than its summary is no compaction.
    found = max(found, math.floor(after) + 1.0)
    return None if found > setting.limit_tokens() else found
