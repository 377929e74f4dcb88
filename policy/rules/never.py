"""The rule `never`: leave it all to the hard limit."""

from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "never"]

RULE = "never"


def never(life: Life, setting: Setting) -> Thresholds:  # noqa: ARG001 - every rule is called alike
    """Return no threshold at all."""
    return Thresholds(RULE, (None,), setting=setting)
