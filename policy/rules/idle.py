"""The rule `idle`: renewal, asked once more while idle, just before the cache expires."""

from collections.abc import Sequence

from compactuary.errors import InputError
from policy.rules.life import Life
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

__all__ = ["LEAD_SHARE", "RULE", "asked_share", "idle", "idles", "resumed_after_expiry"]

RULE = "idle"

#: Part of the time to live that is left for the compaction to begin in: 15 s of 5 minutes.
LEAD_SHARE = 0.05


def idle(life: Life, setting: Setting, *, ask_seconds: float | None = None) -> Thresholds:
    """Return renewal's thresholds for a caller that can also act while the agent is idle.

    Parameters
    ----------
    life, setting : Life, Setting
        The role's turns; prices, sizes and what happens after a turn.
    ask_seconds : float, optional
        Idle time at which the caller asks; 95% of the time to live when left out.

    Notes
    -----
    Without a time to live, or where no session outlives its turn, it is renewal. The end of a turn
    then compacts only where that beats waiting to be asked. Reference: the model, §4.
    """
    return idles([(life, setting)], ask_seconds=ask_seconds)[0]


def idles(
    problems: Sequence[tuple[Life, Setting]], *, ask_seconds: float | None = None
) -> list[Thresholds]:
    """Return the thresholds of several roles, or of one at several prices, as `idle` does.

    Raises
    ------
    InputError
        `ask_seconds` is negative or NaN.
    """
    # Whoever only looks thresholds up needs no numpy.
    from policy.stopping import Problem, solve  # noqa: PLC0415

    if ask_seconds is not None and not ask_seconds >= 0:
        remedy = "Give the idle time in seconds at which you ask"
        raise InputError("is out of range", where="ask_seconds", value=ask_seconds, remedy=remedy)
    asked = [_ask_seconds(setting, ask_seconds) for _, setting in problems]
    solutions = solve(
        [
            Problem(life, setting, None if at is None else asked_share(setting, at))
            for (life, setting), at in zip(problems, asked, strict=True)
        ]
    )
    made = []
    for (_, setting), at, found in zip(problems, asked, solutions, strict=True):
        steps: tuple[tuple[float, float | None], ...] = ()
        ttl = setting.ttl_seconds
        if at is not None and ttl is not None:
            steps = ((at, found.at_idle), (ttl, None))
        again = None if found.at_idle is None else at
        made.append(
            Thresholds(
                RULE, found.at_call, found.at_turn_end, found.at_resume, steps, again, setting
            )
        )
    return made


def asked_share(setting: Setting, ask_seconds: float) -> float:
    """Return P(pause > ask_seconds) of sessions that go on, at least p_c.

    Without pauses it is p_c, as if nobody came back between the question and the expiry.
    """
    share = setting.pause_exceeds(ask_seconds)
    return setting.cold_probability if share is None else max(share, setting.cold_probability)


def resumed_after_expiry(setting: Setting, idle_seconds: float | None = None) -> float:
    """Return P(the session is resumed after the cache has expired | idle for so long).

    Parameters
    ----------
    setting : Setting
        q_s, p_c and the pauses of sessions that go on.
    idle_seconds : float, optional
        Time since the last request, less than the time to live; just before the expiry when left
        out.

    Returns
    -------
    float
        q_s·p_c/(q_s·P(pause > t) + 1 − q_s); 0 where no session is resumed that late.
    """
    goes_on = setting.resume_probability
    late = goes_on * setting.cold_probability
    if not late:
        return 0.0
    share = setting.cold_probability if idle_seconds is None else asked_share(setting, idle_seconds)
    return min(1.0, late / (goes_on * share + 1.0 - goes_on))


def _ask_seconds(setting: Setting, ask_seconds: float | None) -> float | None:
    """Return when to ask, or None where asking while idle is no use."""
    ttl = setting.ttl_seconds
    if not ttl or not setting.resume_probability:
        return None
    if ask_seconds is None:
        return ttl * (1.0 - LEAD_SHARE)
    return ask_seconds if ask_seconds < ttl else None
