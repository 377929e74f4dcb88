"""The ruling: which rule decides a question, and from which context it compacts."""

from dataclasses import dataclass

from policy.break_even import RULE as BREAK_EVEN
from policy.estimate import Estimate
from policy.question import Question
from policy.quote import Quote
from policy.rules.reorder import RULE as REORDER
from policy.rules.reorder import cold_reorder_context, reorder_context
from policy.rules.setting import Setting
from policy.threshold_book import Compiled, ThresholdBook, key_of, setting_of, thresholds_of

__all__ = ["Ruling", "default_rule", "ruling_of"]

#: What 'renewal' and 'idle' need from the ledger; without it they answer a question nobody asked.
NEEDS_LEARNED = ("context_after_tokens", "growth_tokens", "resume_probability")

# What a rule's threshold depends on beside cost and saving.
_USED = ("growth_tokens", "first_growth_tokens")
_USED_AFTER_TURNS = (*_USED, "resume_probability")


@dataclass(frozen=True, slots=True)
class Ruling:
    """A rule, and what it says about this question.

    Parameters
    ----------
    rule : str
        Its name.
    by_context : bool
        Whether it compares the context with a threshold; otherwise it compares m with C/s.
    threshold_tokens : float or None
        The context from which it compacts; None where it never does.
    ask_again_seconds : float or None
        When to ask again while the agent is idle.
    version : int or None
        Version of the snapshot that the thresholds were compiled from, where they were.
    used : tuple of str
        Names of the inputs that the threshold depends on.
    """

    rule: str
    by_context: bool = False
    threshold_tokens: float | None = None
    ask_again_seconds: float | None = None
    version: int | None = None
    used: tuple[str, ...] = ()

    def reached(self, context_tokens: int | None) -> bool:
        """Return whether a context is at or past the threshold."""
        threshold = self.threshold_tokens
        return threshold is not None and context_tokens is not None and context_tokens >= threshold


def ruling_of(
    question: Question, quoted: Quote, estimate: Estimate | None, book: ThresholdBook | None
) -> Ruling:
    """Return the ruling on one question.

    Parameters
    ----------
    book : ThresholdBook or None
        Compiled rules; what it does not have gives way to 'reorder', worked out here.

    Notes
    -----
    Without being asked for a rule, 'renewal' decides where its inputs are learned ('idle' while
    the agent is idle), and 'reorder' where they are not. Where cost and saving are given nothing is
    known of contexts, and across a price cliff waiting costs more than any growth, so 'break-even'
    decides there. Reference: the model, §4.
    """
    if estimate is None or quoted.prices is None or quoted.crosses_cliff:
        return Ruling(BREAK_EVEN)
    rule = question.rule or default_rule(question, quoted)
    if rule == BREAK_EVEN:
        return Ruling(BREAK_EVEN)
    found = None if book is None else book.find(key_of(rule, question, quoted), question)
    if found is not None:
        return _compiled(rule, question, estimate, found)
    if question.at in ("turn_end", "idle"):
        # Nothing but compiled rules knows what follows a turn.
        return Ruling(BREAK_EVEN)
    setting = setting_of(question, quoted)
    if rule in ("renewal", "idle", REORDER):
        return _reordered(quoted, estimate, setting)
    thresholds = thresholds_of(rule, estimate.found.table, setting)
    return _compiled(rule, question, estimate, Compiled(thresholds, None))


def default_rule(question: Question, quoted: Quote) -> str:
    """Return 'renewal' ('idle' while idle) where its inputs are known, else 'reorder'."""
    origins = quoted.inputs.origins
    if any(origins[name] == "assumed" for name in NEEDS_LEARNED):
        return REORDER
    return "idle" if question.at == "idle" else "renewal"


def _reordered(quoted: Quote, estimate: Estimate, setting: Setting) -> Ruling:
    """Return what 'reorder' says of this one age: its threshold has a closed form."""
    context = cold_reorder_context if quoted.pause.expired else reorder_context
    threshold = context(estimate.requests + setting.requests_after_turn, setting)
    return Ruling(REORDER, True, threshold, used=_used(REORDER))


def _used(rule: str) -> tuple[str, ...]:
    return _USED_AFTER_TURNS if rule in ("renewal", "idle") else _USED


def _compiled(rule: str, question: Question, estimate: Estimate, found: Compiled) -> Ruling:
    thresholds = found.thresholds
    threshold = thresholds.at(question.at, estimate.requests_made, question.idle_seconds)
    ask_again = thresholds.ask_again_seconds if question.at in ("turn_end", "idle") else None
    if ask_again is not None and question.at == "idle":
        left = ask_again - (question.idle_seconds or 0.0)
        ask_again = left if left > 0 else None
    return Ruling(rule, True, threshold, ask_again, found.version, _used(rule))
