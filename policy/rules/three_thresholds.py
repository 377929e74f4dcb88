"""The rule `three-thresholds`: for main sessions, for the end of a turn, for sub-agents."""

from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "three_thresholds"]

RULE = "three-thresholds"


def three_thresholds(
    life: Life,  # noqa: ARG001 - every rule is called alike
    setting: Setting,
    *,
    main: float | None,
    turn_end: float | None,
    subagent: float | None,
) -> Thresholds:
    """Return the three, as somebody trained or chose them.

    Parameters
    ----------
    life, setting : Life, Setting
        A session of one turn (q_s = 0) is a sub-agent.
    main : float or None
        Before every request of a main session, whatever it follows.
    turn_end : float or None
        At the end of a main session's turn.
    subagent : float or None
        Before every request of a sub-agent.
    """
    if not setting.resume_probability:
        return Thresholds(RULE, (subagent,), at_resume=subagent, setting=setting)
    return Thresholds(RULE, (main,), turn_end, main, setting=setting)
