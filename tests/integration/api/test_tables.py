"""What the service shows of its tables and prices."""

import pytest


@pytest.fixture
def rows(client, settled):
    """Record 40 turns of `main` (N = 1…40, twice each) and one of a role with a slash."""
    many = [
        {"turn_id": f"m{n}-{copy}", "role": "main", "tool_calls": n, "requests": n}
        for n in range(1, 41)
        for copy in range(2)
    ]
    many.append({"turn_id": "p", "role": "web/Plan", "tool_calls": 6, "requests": 3})
    assert client.post("/turns", json=many).json()["turns"] == 81
    settled()
    return many


def test_tables_hold_mean_median_and_mean_residual_life_by_age(client, rows):
    found = client.get("/tables", params={"at": [0, 10, 29]}).json()
    main = next(row for row in found if row["role"] == "main")
    # N uniform on 1…40: mean 20.5, and E[N − i | N > i] = (40 − i + 1)/2.
    assert main["turns"] == 80
    assert main["mean"] == pytest.approx(20.5)
    assert main["p50"] == 20
    assert main["m"] == pytest.approx({"0": 20.5, "10": 15.5, "29": 6})
    assert main["at_risk"] == {"0": 80, "10": 60, "29": 22}
    assert [row["role"] for row in found] == ["main", "web/Plan"]
    other = client.get("/tables", params={"unit": "requests", "at": 0}).json()
    assert other[1]["m"]["0"] == pytest.approx(3)


def test_half_of_a_single_turn_is_that_turn(client, rows):
    found = {row["role"]: row for row in client.get("/tables").json()}
    # The open tail's would be 4: (5/6)⁴ = .48.
    assert (found["web/Plan"]["p50"], found["web/Plan"]["p50_extrapolated"]) == (6, False)
    assert client.get("/tables/web/Plan").json()["rows"][0]["median"] == 6
    assert client.get("/tables/main").json()["rows"][0]["median"] == found["main"]["p50"] == 20


def test_the_life_table_of_a_role_by_hand(client, rows):
    table = client.get("/tables/main").json()
    # 20 turns must be at risk: those with N > 30 are exactly 20.
    assert table["tail_age"] == 30
    assert len(table["rows"]) == 31
    for age in (0, 1, 17, 30):
        row = table["rows"][age]
        assert row["age"] == age
        assert row["survival"] == pytest.approx(1 - age / 40)
        assert row["at_risk"] == 80 - 2 * age
        assert row["m"] == pytest.approx((41 - age) / 2)
        assert row["lower"] <= row["m"] <= row["upper"]
    assert client.get("/tables/web/Plan").json()["rows"][0]["m"] == pytest.approx(6)
    whole = client.get("/tables/all roles").json()
    assert whole["rows"][0]["at_risk"] == 81
    assert whole["rows"][0]["m"] == pytest.approx((80 * 20.5 + 6) / 81)


def test_roles_are_listed_with_their_pace(client, rows):
    found = client.get("/roles").json()
    assert found[0] == {"role": "main", "turns": 80, "ends": 80, "requests_per_call": 1.0}
    assert found[1] == {"role": "web/Plan", "turns": 1, "ends": 1, "requests_per_call": None}


def test_an_unknown_role_has_no_table(sqlite_client):
    response = sqlite_client.get("/tables/nobody/at/all")
    assert response.status_code == 404
    problem = response.json()
    assert (problem["field"], problem["value"]) == ("role", "nobody/at/all")
    assert "/roles" in problem["remedy"]


def test_prices_are_weights_relative_to_the_input(sqlite_client):
    sheet = sqlite_client.get("/prices/claude-opus-4-8").json()
    # Anthropic's price list: reads a tenth, writes 1¼ (5 min) and 2 (1 h) times the input.
    weights = sheet["weights"]
    assert weights["input"] == 1
    assert weights["cache_read"] == pytest.approx(0.1)
    assert weights["cache_write_5m"] == pytest.approx(1.25)
    assert weights["cache_write_1h"] == pytest.approx(2)
    assert sheet["source"].startswith("genai-prices")


@pytest.mark.parametrize("model", ["no-such-model", "no-such/model of 'mine'"])
def test_an_unpriced_model_is_an_error_and_never_free(sqlite_client, model):
    for response in (
        sqlite_client.get(f"/prices/{model}"),
        sqlite_client.get(
            "/should-compact",
            params={"role": "main", "calls": 1, "context_tokens": 90_000, "model": model},
        ),
    ):
        assert response.status_code == 422
        problem = response.json()
        assert problem["type"] == "urn:compactuary:problem:unknown-price"
        assert (problem["field"], problem["value"]) == ("model", model)
        assert problem["remedy"]


def test_a_model_name_may_hold_a_slash(sqlite_client):
    response = sqlite_client.get(
        "/prices/anthropic/claude-sonnet-4", params={"provider": "openrouter"}
    )
    assert response.status_code == 200, response.text
    assert response.json()["weights"]["input"] == 1


@pytest.mark.parametrize(
    ("query", "field"),
    [({"at": "yesterday"}, "at"), ({"context_tokens": -1}, "context_tokens")],
)
def test_a_wrong_question_about_prices_names_its_field(sqlite_client, query, field):
    response = sqlite_client.get("/prices/claude-opus-4-8", params=query)
    assert response.status_code == 422
    assert response.json()["field"] == field


def test_negative_ages_are_refused(sqlite_client):
    response = sqlite_client.get("/tables", params={"at": [0, -1]})
    assert response.status_code == 422
    assert response.json()["field"] == "at.1"
    assert response.json()["value"] == "-1"
