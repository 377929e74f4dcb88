"""Answers of `/should-compact`: whose turns they rest on, and what C and s they compare."""

import math

import pytest

from tests.integration.api.credibility_by_hand import decayed, decisive, standard

ISSUE_FIELDS = {
    "decision", "reason", "rule", "at", "mode", "would_decide", "pays", "threshold_tokens",
    "ask_again_seconds", "expected_remaining_calls", "expected_remaining_requests",
    "continue_probability", "interval", "median_remaining_calls", "probability_pays",
    "break_even_calls", "cost", "saving_per_call", "expected_net", "basis", "decision_id",
    "versions",
}  # fmt: skip


@pytest.mark.parametrize("role", ["main", "web/main", "Plan"])
def test_an_empty_ledger_is_answered_from_the_standard_table(asked, role):
    answer = asked(role, 5, cost=6, saving=3)
    assert set(answer) == ISSUE_FIELDS
    table = standard(role)
    assert answer["expected_remaining_calls"] == pytest.approx(table.at(5).mean)
    assert answer["break_even_calls"] == 2
    assert (answer["decision"], answer["reason"]["code"]) == ("compact", "pays")
    basis = answer["basis"]
    assert (basis["role"], basis["source"], basis["credibility"]) == (role, "standard", 0)
    (share,) = basis["rests_on"]
    assert share["name"] in answer["reason"]["text"]
    assert share["name"].startswith("standard 20")
    assert (share["turns"], share["weight"]) == (table.turns_with_a_call, 1)
    # No turn of the ledger has ended: D = 0, so the interval is that of 3 average turns.
    factor = math.exp(1.6448536 * math.sqrt(1 / 3))
    assert answer["interval"]["upper"] == pytest.approx(table.at(5).mean * factor)


def test_an_unknown_role_is_answered_from_all_roles(told, asked):
    told("a", 2, role="main")
    told("b", 4, role="Plan")
    told("open", 1, role="scout", end=None)
    # z = ½·¼/(½·¼) each, so √(2·4) between them; D = 1 + 1 against the vote of 3 others.
    # The open turn is known for N ≥ 1 only, which is no call at risk.
    for role in ("nobody", "scout"):  # of scout, no turn has ended
        answer = asked(role)
        basis = answer["basis"]
        assert (basis["source"], basis["role"]) == ("all_roles", role)
        expected = math.sqrt(8) ** 0.4 * standard(role).at(0).mean ** 0.6
        assert answer["expected_remaining_calls"] == pytest.approx(expected)
        assert weights_of(basis) == pytest.approx({"all roles": 0.4, "standard": 0.6})
    above = math.sqrt(8) ** 0.4 * standard("main").at(0).mean ** 0.6
    own = asked("main")
    assert own["expected_remaining_calls"] == pytest.approx(2**0.25 * above**0.75)
    shares = {"main": 0.25, "all roles": 0.75 * 0.4, "standard": 0.75 * 0.6}
    assert weights_of(own["basis"]) == pytest.approx(shares)
    assert own["basis"]["credibility"] == pytest.approx(0.25)


def weights_of(basis):
    """Weights by name, the standard table's without its date."""
    return {share["name"].split(" 20")[0]: share["weight"] for share in basis["rests_on"]}


def test_beyond_what_was_seen_the_answer_is_marked_as_extrapolated(told, asked):
    told("a", 3)
    assert asked("main", 0)["basis"]["extrapolated"] is False
    answer = asked("main", 50)
    assert answer["basis"]["extrapolated"] is True
    # The own tail goes on at m = 3; the standard knows more of turns of that age.
    assert answer["expected_remaining_calls"] == pytest.approx(decisive([3], age=50))


def test_with_many_turns_the_answer_is_the_role_s_own(client, asked):
    errors = []
    for many in (5, 50, 500):
        rows = [{"turn_id": f"t{n}", "role": "main", "tool_calls": 5} for n in range(many)]
        assert client.post("/turns", json=rows).status_code == 200
        answer = asked("main")
        assert answer["expected_remaining_calls"] == pytest.approx(decisive([5] * many))
        errors.append(answer["expected_remaining_calls"] - 5)
    assert errors == sorted(errors, reverse=True)
    assert 0 < errors[-1] < 0.001


def test_old_turns_fade_from_decisions_and_not_from_tables(client, asked):
    rows = [
        {"turn_id": f"t{n:03}", "role": "main", "tool_calls": 2 if n < 400 else 20}
        for n in range(800)
    ]
    assert client.post("/turns", json=rows).status_code == 200
    answer = asked("main")
    assert client.get("/tables/main").json()["rows"][0]["m"] == pytest.approx(11)
    # Two half-lives later the first 400 weigh a quarter of the others: (¼·2 + 1·20) / (¼ + 1).
    assert decayed([2] * 400 + [20] * 400)[0] == pytest.approx(16.4)
    assert answer["expected_remaining_calls"] == pytest.approx(decisive([2] * 400 + [20] * 400))
    basis = answer["basis"]
    assert (basis["turns"], basis["ends"], basis["half_life_turns"]) == (800, 800, 200)
    effective = decayed([1] * 800)[1]
    assert basis["effective_ends"] == pytest.approx(effective)
    assert basis["credibility"] == pytest.approx(effective / (effective + 3))


def test_a_role_on_two_models_is_told_apart_by_model(client, asked):
    rows = [
        {"turn_id": f"t{n:02}", "role": "main", "tool_calls": calls, "model": model}
        for n in range(40)
        for calls, model in [((2, "small"), (20, "large"))[n % 2]]
    ]
    assert client.post("/turns", json=rows).status_code == 200
    short, either, long = (
        asked("main", model=model)["expected_remaining_calls"]
        for model in ("small", "unheard-of", "large")
    )
    assert 2 < short < either < long < 20
    basis = asked("main", model="large")["basis"]
    assert [share["name"] for share in basis["rests_on"]][:3] == [
        "main on large",
        "main",
        "all roles",
    ]
    assert sum(share["weight"] for share in basis["rests_on"]) == pytest.approx(1)
    # 20 turns, every second of the role's: weights q⁰, q², … with q = 2^(−1/200).
    ends = effective([0.5 ** (2 * newer / 200) for newer in range(20)])
    assert basis["credibility"] == pytest.approx(ends / (ends + 3))
    assert basis["turns"] == 20


def effective(weights):
    return sum(weights) ** 2 / sum(weight**2 for weight in weights)


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
    calls, requests = decisive([4] * 5), decisive([3] * 5, unit="requests")
    assert after["expected_remaining_calls"] == pytest.approx(calls)
    assert after["expected_remaining_requests"] == pytest.approx(requests)
    assert after["expected_net"] == pytest.approx(requests * 4 - 4)
    in_requests = asked("main", unit="requests")
    assert in_requests["expected_remaining_requests"] == pytest.approx(requests)
    assert in_requests["expected_remaining_calls"] == pytest.approx(requests * 4 / 3)


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
