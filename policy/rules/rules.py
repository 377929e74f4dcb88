"""The registry of rules, by the names that callers use."""

from collections.abc import Callable, Mapping

from policy.rules.break_even import RULE as BREAK_EVEN
from policy.rules.break_even import break_even
from policy.rules.eoq import RULE as EOQ
from policy.rules.eoq import eoq
from policy.rules.fixed_remaining import RULE as FIXED_REMAINING
from policy.rules.fixed_remaining import fixed_remaining
from policy.rules.idle import RULE as IDLE
from policy.rules.idle import idle
from policy.rules.lindy import RULE as LINDY
from policy.rules.lindy import lindy
from policy.rules.median_remaining import RULE as MEDIAN_REMAINING
from policy.rules.median_remaining import median_remaining
from policy.rules.never import RULE as NEVER
from policy.rules.never import never
from policy.rules.occupancy import RULE as OCCUPANCY
from policy.rules.occupancy import occupancy
from policy.rules.renewal import RULE as RENEWAL
from policy.rules.renewal import renewal
from policy.rules.reorder import RULE as REORDER
from policy.rules.reorder import reorder
from policy.rules.three_thresholds import RULE as THREE_THRESHOLDS
from policy.rules.three_thresholds import three_thresholds
from policy.thresholds import Thresholds

__all__ = ["RULES", "Rule"]

#: ``rule(life, setting, **parameters)``: whose turns, at what prices and sizes, and what the rule
#: leaves open.
Rule = Callable[..., Thresholds]

RULES: Mapping[str, Rule] = {
    OCCUPANCY: occupancy,
    BREAK_EVEN: break_even,
    REORDER: reorder,
    RENEWAL: renewal,
    IDLE: idle,
    EOQ: eoq,
    THREE_THRESHOLDS: three_thresholds,
    FIXED_REMAINING: fixed_remaining,
    LINDY: lindy,
    MEDIAN_REMAINING: median_remaining,
    NEVER: never,
}
