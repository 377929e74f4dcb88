"""Answers of `/should-compact`: whose turns they rest on, and what C and s they compare."""

import pytest

ISSUE_FIELDS = {
    "decision", "reason", "rule", "expected_remaining_calls", "expected_remaining_requests",
    "continue_probability", "interval", "median_remaining_calls", "probability_pays",
    "break_even_calls", "cost", "saving_per_call", "expected_net", "basis", "decision_id",
    "versions",
}  # fmt: skip


def test_an_empty_ledger_waits_and_says_so(asked):
    answer = asked("main", cost=6, saving=3)
    assert set(answer) == ISSUE_FIELDS
    assert answer["decision"] == "wait"
    assert answer["reason"]["code"] == "empty_ledger"
    assert answer["basis"]["source"] == "none"
    assert answer["break_even_calls"] == 2
    assert answer["expected_remaining_calls"] is None


def test_an_unknown_role_is_answered_from_all_roles(told, asked):
    told("a", 2, role="main")
    told("b", 4, role="Plan")
    told("open", 1, role="scout", end=None)
    for role in ("nobody", "scout"):  # of scout, no turn has ended
        answer = asked(role)
        assert answer["basis"]["source"] == "all_roles"
        assert answer["basis"]["role"] == role
        # (2 + 4) / 2; the open turn is known for N ≥ 1 only, which is no call at risk.
        assert answer["expected_remaining_calls"] == pytest.approx(3)
    assert asked("main")["expected_remaining_calls"] == pytest.approx(2)


def test_beyond_what_was_seen_the_answer_is_marked_as_extrapolated(told, asked):
    told("a", 3)
    assert asked("main", 0)["basis"]["extrapolated"] is False
    answer = asked("main", 50)
    assert answer["basis"]["extrapolated"] is True
    assert answer["expected_remaining_calls"] == pytest.approx(3)


def test_requests_per_call_is_learned_from_five_turns_on(client, asked):
    rows = [{"turn_id": f"t{n}", "role": "main", "tool_calls": 4, "requests": 3} for n in range(4)]
    client.post("/turns", json=rows)
    before = asked("main")
    assert before["basis"]["requests_per_call"] == 1
    assert "requests_per_call" in before["basis"]["assumed"]
    client.post("/turns", json=[{**rows[0], "turn_id": "t4"}])
    after = asked("main")
    assert after["basis"]["requests_per_call"] == pytest.approx(3 / 4)
    assert "requests_per_call" not in after["basis"]["assumed"]
    assert after["expected_remaining_calls"] == pytest.approx(4)
    assert after["expected_remaining_requests"] == pytest.approx(3)
    assert after["expected_net"] == pytest.approx(3 * 4 - 4)
    in_requests = asked("main", unit="requests")
    assert in_requests["expected_remaining_requests"] == pytest.approx(3)
    assert in_requests["expected_remaining_calls"] == pytest.approx(4)


def test_the_price_of_a_compaction_by_hand(told, asked):
    told("a", 30)
    answer = asked(
        "main",
        cost=None,
        saving=None,
        context_tokens=150_000,
        context_after_tokens=50_000,
        weights={"cache_read": 0.1, "cache_write": 1.25, "output": 5},
        window_tokens=200_000,
        explain=True,
    )
    # s = 0.1 · (150k − 50k). C = 0.1·150k read + 500 instruction + 5·5k summary
    #   + (1.25 − 0.1)·(50k − 28k) written again behind the kept prefix.
    assert answer["saving_per_call"] == pytest.approx(10_000)
    assert answer["cost"] == pytest.approx(15_000 + 500 + 25_000 + 1.15 * 22_000)
    assert answer["break_even_calls"] == pytest.approx(6.58)
    assert answer["decision"] == "compact"
    assert answer["terms"]["cost"]["output"] == pytest.approx(25_000)
    assert answer["versions"]["prices"] == "caller"


def test_the_hard_limit_goes_before_everything(asked):
    answer = asked("main", cost=6e4, saving=3e3, context_tokens=195_000, window_tokens=200_000)
    assert (answer["decision"], answer["reason"]["code"]) == ("compact", "hard_limit")


def test_the_query_asks_what_the_body_asks(client, told, asked):
    told("a", 3)
    body = {"role": "main", "calls": 1, "cost": 4, "saving": 4, "explain": True}
    posted = asked("main", 1, explain=True)
    got = client.get("/should-compact", params=body).json()
    assert posted.pop("decision_id") != got.pop("decision_id")
    assert got == posted


def test_every_answer_has_an_id_of_its_own(asked):
    assert len({asked("main")["decision_id"] for _ in range(20)}) == 20
