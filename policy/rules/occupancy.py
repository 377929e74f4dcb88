"""The rule `occupancy`: compact from a fixed context on, as nearly every agent does."""

from compactuary.errors import InputError
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "SHARE", "occupancy"]

RULE = "occupancy"

#: Of a 200,000-token window it is the 167,000 that agents ship, roughly.
SHARE = 0.835


def occupancy(
    life: Life,  # noqa: ARG001 - every rule is called alike
    setting: Setting,
    *,
    context_tokens: float | None = None,
    share: float | None = None,
) -> Thresholds:
    """Return one threshold for every request, whatever it follows.

    Parameters
    ----------
    life, setting : Life, Setting
        Only the window matters.
    context_tokens : float, optional
        The threshold.
    share : float, optional
        Or its share of the window, 0.835 when both are left out. Without a window: never.

    Raises
    ------
    InputError
        Both are given, or the share is not from 0 to 1.
    """
    if share is not None and (context_tokens is not None or not 0 <= share <= 1):
        remedy = "Give context_tokens, or a share from 0 to 1"
        raise InputError("is out of range", where="share", value=share, remedy=remedy)
    threshold = context_tokens
    if threshold is None and setting.window_tokens is not None:
        threshold = setting.window_tokens * (SHARE if share is None else share)
    return Thresholds(RULE, (threshold,), at_resume=threshold, setting=setting)
