"""Thresholds: a rule compiled into the contexts from which it compacts, by moment and requests."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from compactuary.errors import InputError
from policy.rules.setting import Setting

__all__ = ["Moment", "Thresholds"]

#: When a rule is asked: before a request, at the end of a turn, while the agent waits for its
#: user, or before the first request after a pause that outlasted the cache.
Moment = Literal["call", "turn_end", "idle", "resume"]

_REMEDY = "Compile the thresholds again"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a rule says in every state: compact where the context is at least so many tokens.

    None is never. The hard limit of the window is a guard of its own, not in here.

    Parameters
    ----------
    rule : str
        Name of the rule.
    at_call : tuple of (float or None)
        b*(i) before request i + 1 of the turn, on a warm cache; the last one holds beyond.
    at_turn_end : float or None
        At the end of a turn, before the pause.
    at_resume : float or None
        Before the first request after a pause that outlasted the cache.
    at_idle : tuple of (float, float or None)
        ``(idle_seconds, b*)``, rising: from so many seconds of waiting on. Before the first, never.
    ask_again_seconds : float or None
        Idle time at which to ask, just before the cache expires; None where that is no use.
    setting : Setting or None
        What they were compiled for.

    Raises
    ------
    InputError
        `at_call` is empty, a threshold is negative, NaN or infinite, or idle times do not rise.
    """

    rule: str
    at_call: tuple[float | None, ...]
    at_turn_end: float | None = None
    at_resume: float | None = None
    at_idle: tuple[tuple[float, float | None], ...] = ()
    ask_again_seconds: float | None = None
    setting: Setting | None = None

    def __post_init__(self) -> None:
        if not self.at_call:
            raise InputError("is empty", where="at_call", remedy=_REMEDY)
        for threshold in self.at_call:
            _check("at_call", threshold)
        for name in ("at_turn_end", "at_resume", "ask_again_seconds"):
            _check(name, getattr(self, name))
        so_far = -1.0
        for seconds, threshold in self.at_idle:
            _check("at_idle", threshold)
            if not so_far < seconds < math.inf:
                raise InputError("do not rise", where="at_idle", value=seconds, remedy=_REMEDY)
            so_far = seconds

    def at(self, moment: str, requests: int = 0, idle_seconds: float | None = None) -> float | None:
        """Return the context from which to compact, in tokens; None for never.

        Parameters
        ----------
        moment : {'call', 'turn_end', 'idle', 'resume'}
            When the rule is asked.
        requests : int
            Requests made in this turn so far; matters before a call only.
        idle_seconds : float, optional
            Time since the last request; matters while idle only. Left out, it is just before the
            cache expires.

        Raises
        ------
        InputError
            The moment is unknown, or the requests are negative.
        """
        if moment == "call":
            if requests < 0:
                remedy = "Give the requests made so far"
                raise InputError("is negative", where="requests", value=requests, remedy=remedy)
            at_call = self.at_call
            return at_call[requests] if requests < len(at_call) else at_call[-1]
        if moment == "turn_end":
            return self.at_turn_end
        if moment == "resume":
            return self.at_resume
        if moment == "idle":
            return self._while_idle(idle_seconds)
        known = ", ".join(get_args(Moment))
        raise InputError("is unknown", where="moment", value=moment, remedy=f"Known: {known}")

    def _while_idle(self, idle_seconds: float | None) -> float | None:
        seconds = self.ask_again_seconds if idle_seconds is None else idle_seconds
        found = None
        if seconds is not None:
            for begins, threshold in self.at_idle:
                if begins > seconds:
                    break
                found = threshold
        return found

    def to_payload(self) -> dict[str, Any]:
        """Return plain JSON values; every number comes back as it was."""
        return {
            "rule": self.rule,
            "at_call": list(self.at_call),
            "at_turn_end": self.at_turn_end,
            "at_resume": self.at_resume,
            "at_idle": [list(entry) for entry in self.at_idle],
            "ask_again_seconds": self.ask_again_seconds,
            "setting": None if self.setting is None else self.setting.to_payload(),
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "Thresholds":
        """Return what `to_payload` wrote.

        Raises
        ------
        InputError
            A key is missing, or holds an impossible value.
        """
        try:
            setting = payload["setting"]
            return cls(
                rule=str(payload["rule"]),
                at_call=tuple(_number(value) for value in payload["at_call"]),
                at_turn_end=_number(payload["at_turn_end"]),
                at_resume=_number(payload["at_resume"]),
                at_idle=tuple((float(upto), _number(value)) for upto, value in payload["at_idle"]),
                ask_again_seconds=_number(payload["ask_again_seconds"]),
                setting=None if setting is None else Setting.from_payload(setting),
            )
        except (KeyError, TypeError, ValueError) as error:
            problem = f"are not stored thresholds: {type(error).__name__} {error}"
            raise InputError(problem, where="thresholds", remedy=_REMEDY) from error


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _check(name: str, threshold: float | None) -> None:
    if threshold is not None and not 0 <= threshold < math.inf:
        raise InputError("is out of range", where=name, value=threshold, remedy=_REMEDY)
