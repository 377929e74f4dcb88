"""The rule `renewal`: optimal stopping over requests, context, cache and the end of the turn."""

from collections.abc import Sequence

from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["RULE", "renewal", "renewals"]

RULE = "renewal"


def renewal(life: Life, setting: Setting) -> Thresholds:
    """Return the contexts from which compacting is cheaper, all that follows included.

    Parameters
    ----------
    life, setting : Life, Setting
        The role's turns; prices, sizes and what happens after a turn.

    Notes
    -----
    Reference: the model, §4. Several at once are compiled faster by `renewals`.
    """
    return renewals([(life, setting)])[0]


def renewals(problems: Sequence[tuple[Life, Setting]]) -> list[Thresholds]:
    """Return the thresholds of several roles, or of one at several prices.

    Parameters
    ----------
    problems : sequence of (Life, Setting)
        Each for itself; they share nothing but the time it takes.
    """
    # Whoever only looks thresholds up needs no numpy.
    from policy.stopping import Problem, solve  # noqa: PLC0415

    solutions = solve([Problem(life, setting) for life, setting in problems])
    return [
        Thresholds(
            RULE,
            solution.at_call,
            solution.at_turn_end,
            solution.at_resume,
            setting=setting,
        )
        for (_, setting), solution in zip(problems, solutions, strict=True)
    ]
