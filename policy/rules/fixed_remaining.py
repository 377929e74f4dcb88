"""The rule `fixed-remaining`: break-even against a constant number of remaining requests."""

from policy.rules.break_even import thresholds_by_remaining
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "fixed_remaining"]

RULE = "fixed-remaining"


def fixed_remaining(
    life: Life,  # noqa: ARG001 - every rule is called alike
    setting: Setting,
    *,
    requests: float = 10.0,
) -> Thresholds:
    """Return the context from which so many requests pay for a compaction.

    Parameters
    ----------
    life, setting : Life, Setting
        Prices and sizes; the life table is not read.
    requests : float, default 10
        What always remains, the usual constant elsewhere.
    """
    return thresholds_by_remaining(RULE, (requests,), setting)
