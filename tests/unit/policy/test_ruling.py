"""Which rule decides, from which context, and what the answer says about it."""

import pytest

from compactuary.errors import InputError
from policy.decision import decide
from policy.question import RULES, Question
from policy.rules.rules import RULES as REGISTRY
from policy.threshold_book import Compiled, compile_thresholds, key_of, setting_of
from policy.thresholds import Thresholds

pytestmark = pytest.mark.disable_socket

PAUSES = ((60, 0.9), (240, 0.6), (300, 0.4))


class OneBook:
    """A threshold book with the same thresholds for every key, which it notes."""

    def __init__(self, thresholds):
        self.thresholds, self.asked = thresholds, []

    def find(self, key, question):
        self.asked.append(key)
        return None if self.thresholds is None else Compiled(self.thresholds, 5)


@pytest.fixture
def learned(make_parameters):
    return make_parameters(
        context_after_tokens=51_000,
        growth_tokens=1_500,
        resume_probability=0.8,
        requests_after_turn=30,
        pauses=PAUSES,
    )


@pytest.fixture
def ask(at, make_table, make_snapshot, make_prices, make_book):
    """Ask about main turns with m = 20 at r = .1, w = 1.25, o = 5 in a window of a million."""

    def asked(known=None, book=None, mode="enforce", prices=None, **fields):
        table = make_table([20.0] * 40)
        snapshot = make_snapshot(table, parameters=known)
        question = Question(**({"role": "main", "calls": 3, "model": "m"} | fields))
        listed = prices or make_book(make_prices(cache_ttl_seconds=300))
        return decide(question, snapshot, listed, at=at, decision_id="d", book=book, mode=mode)

    return asked


def test_the_question_and_the_registry_know_the_same_rules():
    assert {*REGISTRY} - {*RULES} == {"three-thresholds"}
    assert {*RULES} <= {*REGISTRY}


def test_renewal_decides_where_its_inputs_are_learned(ask, learned):
    book = OneBook(Thresholds("renewal", (None, 140_000.0, 90_000.0), 60_000.0, 70_000.0))
    answer = ask(learned, book, context_tokens=100_000)
    assert (answer.rule, answer.threshold_tokens) == ("renewal", 90_000)
    assert (answer.decision, answer.reason.code, answer.pays) == ("compact", "pays", True)
    assert answer.versions.thresholds == 5
    # Another age, another threshold; it pays by m > C/s, but waiting is better still.
    waiting = ask(learned, book, context_tokens=130_000, calls=1)
    assert (waiting.decision, waiting.reason.code, waiting.pays) == ("wait", "worth_waiting", True)
    assert "compacts from 140,000 tokens, above the 130,000 there are" in waiting.reason.text
    never = ask(learned, book, context_tokens=190_000, calls=0)
    assert (never.decision, never.threshold_tokens) == ("wait", None)
    assert "waits at any context" in never.reason.text


def test_each_moment_has_its_own_threshold(ask, learned):
    thresholds = Thresholds("renewal", (90_000.0,), 60_000.0, 70_000.0, ((240.0, 65_000.0),), 270.0)
    book = OneBook(thresholds)
    after = ask(learned, book, context_tokens=61_000, at="turn_end")
    assert (after.threshold_tokens, after.decision) == (60_000, "compact")
    assert after.ask_again_seconds == 270
    back = ask(learned, book, context_tokens=61_000, at="resume", calls=0)
    assert (back.threshold_tokens, back.decision) == (70_000, "wait")
    idle = ask(learned, book, context_tokens=70_000, at="idle", idle_seconds=250)
    assert (idle.threshold_tokens, idle.decision, idle.rule) == (65_000, "compact", "idle")
    assert idle.ask_again_seconds == 20
    early = ask(learned, book, context_tokens=70_000, at="idle", idle_seconds=100)
    assert (early.threshold_tokens, early.decision) == (None, "wait")


def test_a_threshold_that_is_reached_may_not_pay_by_itself(ask, learned):
    """Below 20 requests nothing pays at 60k: C = 6,000 + 25,500 + 26,450 for 900 a request."""
    answer = ask(learned, OneBook(Thresholds("renewal", (55_000.0,))), context_tokens=60_000)
    assert (answer.decision, answer.reason.code, answer.pays) == ("compact", "threshold", False)
    assert "reached by the 60,000" in answer.reason.text


def test_without_learned_inputs_reorder_decides(ask):
    """m = 20, a = 51k, g = 1.1k: n − 19(1 − .95ⁿ) ≥ 57,050 ÷ (1,100·(2 − .1)) = 27.3 at n = 45."""
    answer = ask(context_tokens=100_000)
    assert answer.rule == "reorder"
    assert answer.threshold_tokens == 51_000 + 45 * 1_100
    assert answer.versions.thresholds is None


def test_what_is_not_compiled_yet_gives_way_to_reorder(ask, learned):
    book = OneBook(None)
    answer = ask(learned, book, context_tokens=100_000)
    assert (answer.rule, [key.rule for key in book.asked]) == ("reorder", ["renewal"])
    after = ask(learned, book, context_tokens=100_000, at="turn_end")
    assert after.rule == "break-even"


def test_given_cost_and_saving_leave_only_break_even(ask):
    answer = ask(cost=60_000, saving=3_500, context_tokens=100_000)
    assert (answer.rule, answer.threshold_tokens) == ("break-even", None)


def test_across_a_price_cliff_break_even_decides(ask, make_prices, make_book):
    dear = make_prices(dollars_per_million={"input": 10.0})
    book = make_book(make_prices(), dear, 200_000)
    assert ask(context_tokens=210_000, prices=book).rule == "break-even"
    assert ask(context_tokens=199_000, prices=book).rule == "reorder"


@pytest.mark.parametrize("rule", [name for name in RULES if name not in ("renewal", "idle")])
def test_every_rule_can_be_asked_for_without_a_book(ask, rule):
    answer = ask(context_tokens=150_000, rule=rule)
    assert answer.rule == rule
    assert answer.break_even_calls is not None


def test_after_two_useless_compactions_wait_until_the_hard_limit(ask):
    asked = {"context_tokens": 150_000, "useless_compactions": 2}
    answer = ask(**asked)
    assert (answer.decision, answer.reason.code) == ("wait", "useless")
    assert ask(**asked | {"useless_compactions": 1}).decision == "compact"
    full = ask(**asked | {"context_tokens": 999_000})
    assert (full.decision, full.reason.code) == ("compact", "hard_limit")


def test_in_shadow_the_answer_waits_and_says_what_it_would_have_done(ask):
    answer = ask(context_tokens=150_000, mode="shadow")
    assert (answer.decision, answer.would_decide, answer.mode) == ("wait", "compact", "shadow")
    assert answer.reason.code == "pays"


def test_the_hard_limit_uses_what_was_learned(ask, make_parameters, make_book, make_prices):
    book = make_book(make_prices(context_window=200_000))
    known = make_parameters(growth_tokens=20_000, summary_output_tokens=10_000)
    answer = ask(known, context_tokens=170_001, prices=book)
    assert answer.reason.code == "hard_limit"
    assert ask(known, context_tokens=170_000, prices=book).reason.code != "hard_limit"


def test_what_was_learned_and_assumed_is_named(ask, learned):
    book = OneBook(Thresholds("renewal", (90_000.0,)))
    basis = ask(learned, book, context_tokens=100_000).basis
    assert basis.learned == ("context_after_tokens", "growth_tokens", "resume_probability")
    assert basis.assumed == (
        "prefix_tokens",
        "summary_output_tokens",
        "instruction_tokens",
        "requests_per_call",
    )


def test_a_compiled_setting_has_what_the_quote_has(at, learned, make_book, make_prices):
    from policy.quote import quote  # noqa: PLC0415

    question = Question("main", 3, context_tokens=100_000, model="m", kind="separate",
                        summary_model="m", ttl="1h", quality_cost=7.0)  # fmt: skip
    book = make_book(make_prices(cache_ttl_seconds=300))
    setting = setting_of(question, quote(question, book, learned, at=at))
    # Another call sends 100k − 28k + 500 at 1 and writes 5k at 5.
    assert setting.summary_cost(100_000) == pytest.approx(72_500 + 25_000 + 7)
    assert setting.summary_cost(120_000) == pytest.approx(92_500 + 25_000 + 7, rel=0.01)
    assert (setting.write_weight, setting.ttl_seconds) == (2.0, 3_600)
    assert setting.cold_probability == pytest.approx(0.4)


def test_keys_differ_by_what_thresholds_depend_on(at, learned, make_book, make_prices):
    from policy.quote import quote  # noqa: PLC0415

    book = make_book(make_prices())

    def key(**fields):
        question = Question(
            **({"role": "main", "calls": 3, "context_tokens": 100_000, "model": "m"} | fields)
        )
        return key_of("renewal", question, quote(question, book, learned, at=at))

    same = [key(), key(calls=9), key(context_tokens=90_000), key(at="resume"), key(turn_id="t")]
    assert len(set(same)) == 1
    others = [
        key(role="x"), key(model="n"), key(ttl="1h"), key(context_after_tokens=40_000),
        key(growth_tokens=9.0), key(quality_cost=1.0), key(kind="clear"), key(window_tokens=9_999),
        key(unit="requests"),
    ]  # fmt: skip
    assert len({*same, *others}) == 1 + len(others)


def test_compiling_for_nobody_is_refused(at, make_snapshot, make_book, make_prices):
    question = Question("main", 3, context_tokens=100_000, model="m")
    with pytest.raises(InputError) as caught:
        compile_thresholds("reorder", question, make_snapshot(), make_book(make_prices()), at=at)
    assert caught.value.where == "role"
