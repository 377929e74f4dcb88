"""The threshold book: compiled rules by what they were compiled for."""

from datetime import datetime
from typing import NamedTuple, Protocol, cast

from compactuary.errors import InputError
from policy.cache_state import CacheState, Ttl
from policy.prices import PriceBook, Prices
from policy.question import Question, missing_model
from policy.quote import Quote, quote
from policy.role_table import RoleTable
from policy.rules.life import Life
from policy.rules.rules import RULES
from policy.rules.setting import Setting
from policy.snapshot import Snapshot
from policy.thresholds import Thresholds

__all__ = [
    "Compiled",
    "ThresholdBook",
    "ThresholdKey",
    "compile_thresholds",
    "key_of",
    "setting_of",
    "thresholds_of",
]


class ThresholdKey(NamedTuple):
    """What thresholds hold for: a rule, a role, a price set, and what the caller said itself."""

    rule: str
    role: str
    unit: str
    model: str | None
    provider: str | None
    kind: str
    strategy: str | None
    summary_model: str | None
    ttl: str
    ttl_seconds: float
    cache_read: float
    cache_write: float
    output: float
    window_tokens: int | None
    given: tuple[float | None, ...]


class Compiled(NamedTuple):
    """Thresholds, and the version of the snapshot they were compiled from, if they are kept."""

    thresholds: Thresholds
    version: int | None


class ThresholdBook(Protocol):
    """Where a decision looks up compiled rules."""

    def find(self, key: ThresholdKey, question: Question) -> Compiled | None:
        """Return the thresholds of a key, or None while nobody has compiled them.

        Parameters
        ----------
        key : ThresholdKey
        question : Question
            One to which they would apply, from which whoever keeps the book may compile them.
        """
        ...


def key_of(rule: str, question: Question, quoted: Quote) -> ThresholdKey:
    """Return what the thresholds that answer a question are filed under.

    Parameters
    ----------
    rule : str
    question, quoted : Question, Quote
        The quote needs its prices.
    """
    prices, ttl = _priced(quoted), question.ttl
    return ThresholdKey(
        rule,
        question.role,
        question.unit,
        question.model,
        question.provider,
        question.kind,
        question.strategy,
        question.summary_model,
        ttl,
        quoted.pause.ttl_seconds,
        prices.cache_read,
        prices.cache_write_5m if ttl == "5m" else prices.cache_write_1h,
        prices.output,
        quoted.window_tokens,
        (
            question.context_after_tokens,
            question.prefix_tokens,
            question.summary_output_tokens,
            question.growth_tokens,
            question.rework_tokens,
            question.quality_cost,
            question.miss_probability,
            question.resume_probability,
            question.requests_after_turn,
        ),
    )


def setting_of(question: Question, quoted: Quote) -> Setting:
    """Return the setting that a question's rule is compiled for; the quote needs its prices."""
    prices, inputs, pause = _priced(quoted), quoted.inputs, quoted.pause
    after = inputs.context_after_tokens
    setting = Setting(
        read_weight=prices.cache_read,
        write_weight=CacheState(ttl=cast(Ttl, question.ttl)).write_weight(prices),
        output_weight=prices.output,
        context_after_tokens=after,
        cached_after_tokens=min(inputs.prefix_tokens, after),
        summary_output_tokens=inputs.summary_output_tokens,
        instruction_tokens=inputs.instruction_tokens,
        growth_tokens=inputs.growth_tokens,
        first_growth_tokens=inputs.first_growth_tokens,
        window_tokens=quoted.window_tokens,
        miss_probability=inputs.miss_probability,
        resume_probability=inputs.resume_probability,
        cold_probability=inputs.cold_probability(pause.ttl_seconds),
        requests_after_turn=inputs.requests_after_turn,
        rework_tokens=inputs.rework_tokens,
        quality_cost=question.quality_cost,
        pauses=inputs.pauses,
        ttl_seconds=pause.ttl_seconds,
    )
    if question.kind == "clear":
        return setting.without_call()
    if question.kind == "summary" or quoted.terms is None:
        return setting
    return setting.with_linear_call(*_line(question, quoted))


def thresholds_of(rule: str, table: RoleTable, setting: Setting) -> Thresholds:
    """Return a rule compiled for one table and setting."""
    return RULES[rule](Life.of(table), setting)


def compile_thresholds(
    rule: str, question: Question, snapshot: Snapshot, price_book: PriceBook, *, at: datetime
) -> Thresholds:
    """Compile a rule for all questions like this one.

    Parameters
    ----------
    rule : str
        One of `policy.question.RULES`.
    question : Question
        Its role, prices and sizes count; its calls and moment do not.
    snapshot, price_book, at
        As of `policy.decision.decide`.

    Raises
    ------
    InputError
        Nothing is known of the role, or an UnknownPriceError where no price is.
    """
    found = snapshot.lookup(question.unit, question.role, question.model)
    if found is None:
        raise InputError(
            "has no life table",
            where="role",
            value=question.role,
            remedy="Record turns, or wait for the first snapshot",
        )
    known = snapshot.parameters_of(question.role, question.model)
    quoted = quote(question, price_book, known, at=at)
    table = snapshot.in_requests(found.table, question.role, question.model) or found.table
    return thresholds_of(rule, table, setting_of(question, quoted))


def _priced(quoted: Quote) -> Prices:
    if quoted.prices is None:
        raise missing_model()
    return quoted.prices


def _line(question: Question, quoted: Quote) -> tuple[float, float]:
    """Return slope and intercept of C_sum in the context, for a call of another kind."""
    terms, sizes = quoted.terms, quoted.sizes
    if terms is None or sizes is None:
        raise missing_model()
    paid = terms.read + terms.uncached + terms.output
    if question.kind == "server_side":
        return 0.0, paid
    # Another model is sent what lies behind the prefix, and as much as the summary takes.
    sent = sizes.context_tokens - sizes.prefix_tokens + sizes.instruction_tokens
    slope = terms.uncached / sent if sent > 0 else 0.0
    return slope, paid - slope * sizes.context_tokens
