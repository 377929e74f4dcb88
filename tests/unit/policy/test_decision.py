import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.errors import InputError
from policy.decision import POLICY_VERSION, Question, decide
from policy.parameters import ASSUMED
from policy.prices import GenaiPriceBook
from policy.quote import quote
from policy.snapshot import Snapshot, Standard

pytestmark = pytest.mark.disable_socket

PRESET = {"cost": 60_000, "saving": 3_500}


@pytest.fixture
def ask(at, make_table, make_snapshot, make_prices, make_book):
    """Ask about a main turn of a table with m = 20, 18 and a book at r = .1, w = 1.25, o = 5."""

    def asked(*, snapshot=None, book=None, **fields):
        if snapshot is None:
            snapshot = make_snapshot(make_table([20.0, 18.0]))
        question = Question(**({"role": "main", "calls": 0} | fields))
        prices = book or make_book(make_prices())
        return decide(question, snapshot, prices, at=at, decision_id="d-1")

    return asked


def test_the_notes_preset(ask):
    answer = ask(**PRESET, calls=0)
    assert answer.break_even_calls == pytest.approx(17.142857)
    assert (answer.decision, answer.reason.code) == ("compact", "pays")
    assert answer.expected_net == pytest.approx(20 * 3_500 - 60_000)
    assert (answer.expected_remaining_calls, answer.expected_remaining_requests) == (20, 20)
    assert (answer.interval.level, answer.interval.lower, answer.interval.upper) == (0.9, 18, 24)
    assert answer.continue_probability == 0.75
    assert answer.versions == type(answer.versions)(POLICY_VERSION, 7, None)
    assert (answer.decision_id, answer.rule, answer.terms) == ("d-1", "break-even", None)


def test_the_sentence_has_the_numbers(ask, make_table, make_snapshot):
    snapshot = make_snapshot(make_table([21.4] * 13, requests_per_call=0.92))
    answer = ask(snapshot=snapshot, calls=12, cost=61_000, saving=10_000)
    assert answer.reason.text == (
        "main turns that have made 12 calls make 21.4 more on average (19.7 requests); "
        "compacting pays from 6.1."
    )
    one = ask(snapshot=snapshot, calls=1, cost=61_000, saving=10_000)
    assert "have made 1 call make" in one.reason.text


def test_computed_cost_by_hand(ask):
    """r·X + I + o(S+R) + (w−r)(X′−P) = 20,000 + 500 + 25,000 + 1.15·23,000, s = .1·149,000."""
    answer = ask(model="m", context_tokens=200_000)
    assert answer.cost == pytest.approx(71_950)
    assert answer.saving_per_call == pytest.approx(14_900)
    assert answer.break_even_calls == pytest.approx(71_950 / 14_900)
    assert answer.versions.prices == "a list"
    assert answer.basis.assumed == (
        "context_after_tokens",
        "prefix_tokens",
        "summary_output_tokens",
        "instruction_tokens",
        "growth_tokens",
        "requests_per_call",
    )


def test_opus_5_5_by_hand_with_bundled_prices(ask):
    """10,000 + 500 + 25,000 + 1.2·23,000 = 63,100, s = .05·149,000 = 7,450."""
    answer = ask(book=GenaiPriceBook(), model="claude-opus-5-5", context_tokens=200_000)
    assert (answer.cost, answer.saving_per_call) == pytest.approx((63_100, 7_450))


def test_a_price_cliff_between_before_and_after_counts(ask):
    """Haiku 5.5 at 150k: reads cost .1·150,000, afterwards a fifth of .1·51,000."""
    answer = ask(book=GenaiPriceBook(), model="claude-haiku-5-5", context_tokens=150_000)
    assert answer.saving_per_call == pytest.approx(15_000 - 1_020)
    assert answer.cost == pytest.approx(15_000 + 500 + 25_000 + 0.2 * 1.15 * 23_000)


def test_weights_of_the_caller_need_no_price_book(ask, make_prices, make_book):
    book = make_book(make_prices())
    weights = {"cache_read": 0.05, "cache_write": 1.25, "output": 5}
    answer = ask(book=book, weights=weights, context_tokens=200_000)
    assert (answer.cost, answer.saving_per_call) == pytest.approx((63_100, 7_450))
    assert (book.asked, answer.versions.prices) == (0, "caller")
    assert "window_tokens" in answer.basis.assumed


def test_cost_and_saving_of_the_caller_need_no_price_book(ask, make_prices, make_book):
    book = make_book(make_prices())
    ask(book=book, **PRESET)
    ask(book=book, context_tokens=200_000, **PRESET)
    ask(book=book, model="m", context_tokens=200_000, window_tokens=300_000, **PRESET)
    assert book.asked == 0


def test_cost_and_saving_of_the_caller_leave_the_window_to_the_price_book(
    ask, make_prices, make_book
):
    book = make_book(make_prices(context_window=200_000))
    full = ask(book=book, model="m", context_tokens=199_000, **PRESET)
    assert (full.decision, full.reason.code) == ("compact", "hard_limit")
    assert (full.cost, full.saving_per_call) == (PRESET["cost"], PRESET["saving"])


def test_cost_and_saving_of_the_caller_need_no_known_model(ask):
    answer = ask(book=GenaiPriceBook(), model="nobody-knows", context_tokens=199_000, **PRESET)
    assert answer.reason.code in ("pays", "does_not_pay")
    assert "window_tokens" in answer.basis.assumed


def test_half_given_is_half_computed(ask):
    cost_only = ask(model="m", context_tokens=200_000, cost=30_000)
    assert (cost_only.cost, cost_only.saving_per_call) == pytest.approx((30_000, 14_900))
    saving_only = ask(model="m", context_tokens=200_000, context_after_tokens=51_000, saving=5_000)
    assert (saving_only.cost, saving_only.saving_per_call) == pytest.approx((71_950, 5_000))
    assert "context_after_tokens" not in saving_only.basis.assumed


def test_tool_calls_become_requests(ask, make_table, make_snapshot):
    """20 calls are 10 requests at ½ request per call; C/s = 12 requests are 24 calls."""
    table = make_table([20.0], survival=(1.0,), requests_per_call=0.5)
    answer = ask(snapshot=make_snapshot(table), cost=12_000, saving=1_000)
    assert (answer.expected_remaining_calls, answer.expected_remaining_requests) == (20, 10)
    assert (answer.decision, answer.expected_net) == ("wait", pytest.approx(-2_000))
    assert answer.probability_pays == pytest.approx(0.95**24)
    assert answer.basis.requests_per_call == 0.5
    assert "requests_per_call" not in answer.basis.assumed


def test_requests_stay_requests(ask, make_table, make_snapshot):
    table = make_table([20.0], survival=(1.0,), unit="requests", requests_per_call=0.5)
    answer = ask(snapshot=make_snapshot(table), unit="requests", cost=12_500, saving=1_000)
    assert (answer.expected_remaining_calls, answer.expected_remaining_requests) == (40, 20)
    assert answer.decision == "compact"
    assert answer.probability_pays == pytest.approx(0.95**12)
    assert answer.interval.lower == 18
    assert answer.reason.text == (
        "main turns that have made 0 requests make 20.0 more on average; compacting pays from 12.5."
    )


def test_a_flat_role_pays_with_probability_e_to_the_minus_one_at_break_even(
    ask, make_table, make_snapshot
):
    snapshot = make_snapshot(make_table([1000.0], survival=(1.0,)))
    answer = ask(snapshot=snapshot, cost=1_000, saving=1)
    assert answer.probability_pays == pytest.approx(math.exp(-1), abs=1e-3)
    assert answer.decision == "wait"  # 1,000 is not more than 1,000


def test_equality_waits(ask):
    assert ask(cost=20, saving=1).reason.code == "does_not_pay"
    assert ask(cost=19.999, saving=1).reason.code == "pays"


def test_a_compaction_without_a_call_pays_at_once(ask):
    assert ask(cost=0, saving=1).decision == "compact"


def test_hard_limit_goes_before_the_rule(ask):
    near = ask(context_tokens=193_901, window_tokens=200_000, cost=1e6, saving=1)
    assert (near.decision, near.reason.code) == ("compact", "hard_limit")
    assert "193,901" in near.reason.text
    assert "200,000" in near.reason.text
    assert near.expected_remaining_calls == 20
    far = ask(context_tokens=193_900, window_tokens=200_000, cost=1e6, saving=1)
    assert far.reason.code == "does_not_pay"


def test_hard_limit_takes_the_window_of_the_price_book(ask, make_book, make_prices):
    book = make_book(make_prices(context_window=100_000))
    assert ask(book=book, model="m", context_tokens=95_000).reason.code == "hard_limit"
    wider = ask(book=book, model="m", context_tokens=95_000, window_tokens=200_000)
    assert wider.reason.code != "hard_limit"


def test_hard_limit_goes_before_no_saving(ask):
    answer = ask(model="m", context_tokens=38_000, window_tokens=40_000)
    assert answer.reason.code == "hard_limit"


def test_an_unknown_window_is_said(ask, make_book, make_prices):
    book = make_book(make_prices(context_window=None))
    answer = ask(book=book, model="m", context_tokens=10**9)
    assert answer.reason.code != "hard_limit"
    assert "window_tokens" in answer.basis.assumed
    assert "context_tokens" in ask(**PRESET, window_tokens=200_000).basis.assumed


@pytest.mark.parametrize("context", [51_000, 40_000, 0])
def test_no_saving_waits(ask, context):
    answer = ask(model="m", context_tokens=context)
    assert (answer.decision, answer.reason.code) == ("wait", "no_saving")
    assert (answer.break_even_calls, answer.probability_pays) == (None, 0)


def test_free_reads_save_nothing(ask):
    weights = {"cache_read": 0, "cache_write": 1.25, "output": 5}
    assert ask(weights=weights, context_tokens=200_000).reason.code == "no_saving"


def test_without_any_table_it_waits(ask):
    empty = Snapshot.of(0, "2026-11-30T12:00:00Z", {})
    answer = ask(snapshot=empty, **PRESET)
    assert (answer.decision, answer.reason.code) == ("wait", "empty_ledger")
    assert answer.expected_remaining_calls is None
    assert answer.expected_net is None
    assert answer.interval is None
    assert (answer.basis.source, answer.basis.turns) == ("none", 0)
    assert (answer.basis.rests_on, answer.basis.half_life_turns) == ((), None)
    assert answer.break_even_calls == pytest.approx(17.142857)
    full = ask(snapshot=empty, **PRESET, context_tokens=200_000, window_tokens=200_000)
    assert full.decision == "compact"


def test_an_unknown_role_takes_all_roles_and_says_so(ask, make_table, make_snapshot):
    everyone = make_table([5.0], role="*", source="all_roles")
    snapshot = make_snapshot(make_table([20.0]), portfolio=everyone)
    answer = ask(snapshot=snapshot, role="scout", **PRESET)
    assert (answer.basis.role, answer.basis.source) == ("scout", "all_roles")
    assert answer.expected_remaining_calls == 5
    assert answer.reason.text == (
        "No scout turn has ended yet. Turns of all roles that have made 0 calls make 5.0 more on "
        "average (5.0 requests); compacting pays from 17.1."
    )


def test_an_empty_ledger_is_answered_from_turns_elsewhere(ask, make_table, make_snapshot):
    """Nothing of its own: the whole estimate is that of the standard table, which is named."""
    elsewhere = make_table(
        [30.0], role="all roles", source="standard", credibility=(0.0,), effective_ends=(0.0,)
    )
    standard = {("tool_calls", ""): Standard("standard table 2026-11-30", 900)}
    snapshot = make_snapshot(portfolio=elsewhere, standard=standard)
    answer = ask(snapshot=snapshot, role="scout", **PRESET)
    assert (answer.decision, answer.reason.code) == ("compact", "pays")
    assert answer.reason.text.startswith(
        "No turn has ended in this ledger yet. Turns elsewhere (standard table 2026-11-30) that "
        "have made 0 calls make 30.0 more on average"
    )
    assert (answer.basis.source, answer.basis.credibility) == ("standard", 0)
    assert answer.as_payload()["basis"]["rests_on"] == [
        {"name": "standard table 2026-11-30", "turns": 900, "weight": 1.0}
    ]


def nested_snapshot(make_table, make_snapshot):
    """z = ½ on the model, ¼ of the role, ⅘ of all roles; the model's z is 0 from age 1 on."""
    on_model = make_table(
        [20.0, 18.0],
        role="main on m",
        turns=6,
        credibility=(0.5, 0.0),
        effective_ends=(3.0, 0.0),
        half_life_turns=200.0,
    )
    role = make_table([16.0], turns=9, credibility=(0.25,), effective_ends=(1.0,))
    everyone = make_table([12.0], role="all roles", turns=70, credibility=(0.8,))
    standard = {("tool_calls", ""): Standard("the standard", 900)}
    return make_snapshot(
        role, models=[("main", "m", on_model)], portfolio=everyone, standard=standard
    )


def test_what_an_answer_rests_on_multiplies_down_the_nest(ask, make_table, make_snapshot):
    snapshot = nested_snapshot(make_table, make_snapshot)
    basis = ask(snapshot=snapshot, **PRESET, model="m").basis
    assert [(share.name, share.turns) for share in basis.rests_on] == [
        ("main on m", 6),
        ("main", 9),
        ("all roles", 70),
        ("the standard", 900),
    ]
    # ½; ½·¼; ½·¾·⅘; ½·¾·⅕
    weights = [share.weight for share in basis.rests_on]
    assert weights == pytest.approx([0.5, 0.125, 0.3, 0.075])
    assert (basis.credibility, basis.effective_ends, basis.half_life_turns) == (0.5, 3, 200)
    assert (basis.turns, basis.ends) == (6, 10)


def test_what_weighs_nothing_is_not_named(ask, make_table, make_snapshot):
    snapshot = nested_snapshot(make_table, make_snapshot)
    later = ask(snapshot=snapshot, **PRESET, model="m", calls=1).basis
    # At age 1 the model says nothing; parents whose tables are shorter stay at their last age.
    assert [share.name for share in later.rests_on] == ["main", "all roles", "the standard"]
    assert [share.weight for share in later.rests_on] == pytest.approx([0.25, 0.6, 0.15])
    other = ask(snapshot=snapshot, **PRESET, model="another").basis
    assert [share.name for share in other.rests_on] == ["main", "all roles", "the standard"]
    assert other.credibility == 0.25


@given(
    st.lists(st.floats(0, 1), min_size=3, max_size=3), st.booleans(), st.sampled_from(["m", None])
)
def test_shares_add_up_to_one(at, make_table, make_snapshot, z, known_standard, model):
    own, role, everyone = (
        make_table([9.0], role=name, credibility=(share,))
        for name, share in zip(("main on m", "main", "all roles"), z, strict=True)
    )
    if not known_standard:
        everyone = make_table([9.0], role="all roles")  # stands alone
    standard = {("tool_calls", ""): Standard("the standard", 1)} if known_standard else None
    snapshot = make_snapshot(
        role, models=[("main", "m", own)], portfolio=everyone, standard=standard
    )
    question = Question("main", 0, cost=1.0, saving=1.0, model=model)
    shares = decide(question, snapshot, None, at=at, decision_id="d").basis.rests_on
    assert sum(share.weight for share in shares) == pytest.approx(1)
    assert all(0 < share.weight <= 1 for share in shares)


def test_beyond_the_table_it_is_said(ask):
    answer = ask(**PRESET, calls=500)
    assert answer.basis.extrapolated
    assert answer.expected_remaining_calls == 18


def test_payload_is_plain_json_with_exactly_the_promised_fields(ask):
    payload = ask(**PRESET).as_payload()
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    assert list(payload) == [
        "decision", "reason", "rule", "at", "mode", "would_decide", "pays", "threshold_tokens",
        "ask_again_seconds", "expected_remaining_calls", "expected_remaining_requests",
        "continue_probability", "interval", "median_remaining_calls", "probability_pays",
        "break_even_calls", "cost", "saving_per_call", "expected_net", "basis", "decision_id",
        "versions",
    ]  # fmt: skip
    assert payload["basis"]["assumed"] == ["window_tokens", "requests_per_call"]


def test_explain_adds_terms_that_sum_to_the_cost(ask):
    answer = ask(model="m", context_tokens=200_000, explain=True)
    terms = answer.as_payload()["terms"]
    assert json.loads(json.dumps(terms, allow_nan=False)) == terms
    parts = ("read", "uncached", "output", "recache")
    assert sum(terms["cost"][part] for part in parts) == pytest.approx(71_950)
    assert terms["sizes"]["prefix_tokens"] == 28_000
    assert terms["weights"]["cache_read"] == 0.1
    assert terms["remaining"]["expected"] == 20


WRONG = [
    ({"role": ""}, "role"),
    ({"role": None}, "role"),
    ({"calls": -1}, "calls"),
    ({"calls": 1.0}, "calls"),
    ({"calls": True}, "calls"),
    ({"calls": 10**400}, "calls"),
    ({"context_tokens": -1}, "context_tokens"),
    ({"context_tokens": 1.5}, "context_tokens"),
    ({"context_after_tokens": -1}, "context_after_tokens"),
    ({"window_tokens": 0}, "window_tokens"),
    ({"unit": "tokens"}, "unit"),
    ({"rule": "guess"}, "rule"),
    ({"cost": -1}, "cost"),
    ({"cost": math.nan}, "cost"),
    ({"cost": "60000"}, "cost"),
    ({"saving": -1}, "saving"),
    ({"saving": 0}, "saving"),
    ({"saving": math.inf}, "saving"),
    ({"model": 5}, "model"),
    ({"provider": ""}, "provider"),
    ({"cost": None, "saving": None}, "model"),
    ({"cost": None}, "model"),
    ({"saving": None, "model": "m"}, "context_tokens"),
    (
        {"saving": None, "context_tokens": 10, "weights": {"cache_read": 0.1, "output": 5}},
        "weights.cache_write",
    ),
]


@pytest.mark.parametrize(("fields", "where"), WRONG)
def test_a_wrong_field_is_named_with_a_remedy(ask, fields, where):
    with pytest.raises(InputError) as caught:
        ask(**(PRESET | fields))
    assert caught.value.where == where
    assert caught.value.remedy


def test_a_quote_asked_for_directly_names_what_is_missing(at):
    for question, where in [
        (Question("main", 0, cost=1.0, model="m"), "context_tokens"),
        (Question("main", 0, context_tokens=10), "model"),
    ]:
        with pytest.raises(InputError) as caught:
            quote(question, None, ASSUMED, at=at)
        assert caught.value.where == where


def test_what_is_missing_without_prices_is_spelled_out(ask):
    with pytest.raises(InputError, match="Give model, or weights, or cost with saving"):
        ask(context_tokens=10)


def test_an_unknown_rule_names_the_known_ones(ask):
    with pytest.raises(InputError, match="Known: occupancy, break-even, reorder"):
        ask(**PRESET, rule="guess")


@given(
    calls=st.integers(0, 10**6),
    cost=st.floats(0, 1e12),
    saving=st.floats(0, 1e12, exclude_min=True),
    means=st.lists(st.floats(1, 1e4), min_size=1, max_size=6),
    rate=st.none() | st.floats(1e-3, 1e3),
)
def test_the_decision_follows_from_its_own_numbers(
    at, make_table, make_snapshot, calls, cost, saving, means, rate
):
    snapshot = make_snapshot(make_table(means, requests_per_call=rate))
    question = Question("main", calls, cost=cost, saving=saving)
    answer = decide(question, snapshot, None, at=at, decision_id="d")
    assert 0 <= answer.probability_pays <= 1
    if answer.break_even_calls is None:
        assert answer.reason.code == "no_saving"
        return
    exceeds = answer.expected_remaining_requests > answer.break_even_calls
    assert (answer.decision == "compact") is exceeds
    assert answer.reason.code == ("pays" if exceeds else "does_not_pay")
    json.dumps(answer.as_payload(), allow_nan=False)


def test_answers_and_questions_are_frozen(ask):
    with pytest.raises(dataclasses.FrozenInstanceError):
        ask(**PRESET).decision = "wait"
