"""The rule `median-remaining`: break-even against the median turn less what it has made."""

from policy.rules.break_even import thresholds_by_remaining
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "median_remaining"]

RULE = "median-remaining"


def median_remaining(life: Life, setting: Setting) -> Thresholds:
    """Return break-even contexts for max(0, median − i) remaining requests.

    Notes
    -----
    The median is unconditional: past it the rule believes that every turn is over.
    """
    median = life.median
    return thresholds_by_remaining(RULE, (median - made for made in range(median + 1)), setting)
