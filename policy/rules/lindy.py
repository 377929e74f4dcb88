"""The rule `lindy`: break-even, if what has lasted i requests lasts as many again."""

from policy.rules.break_even import thresholds_by_remaining
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "lindy"]

RULE = "lindy"


def lindy(
    life: Life,  # noqa: ARG001 - every rule is called alike
    setting: Setting,
    *,
    longest: int = 1_000,
) -> Thresholds:
    """Return break-even contexts for as many remaining requests as were made so far.

    Parameters
    ----------
    life, setting : Life, Setting
        Prices and sizes; the life table is not read.
    longest : int, default 1,000
        Beyond so many requests the threshold stays.
    """
    return thresholds_by_remaining(RULE, range(longest + 1), setting)
