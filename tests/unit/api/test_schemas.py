"""Bodies, questions, answers and the published schema say the same."""

import math
from dataclasses import MISSING, fields

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter, ValidationError

from api.app import create_app
from api.schemas import RequestBody, ShouldCompact, ShouldCompactQuery, TurnBody
from api.settings import Settings
from policy.question import Question

#: The issue's fields, and those inside them.
ANSWER = {
    "decision": None,
    "reason": {"code", "text"},
    "rule": None,
    "at": None,
    "mode": None,
    "would_decide": None,
    "pays": None,
    "threshold_tokens": None,
    "ask_again_seconds": None,
    "expected_remaining_calls": None,
    "expected_remaining_requests": None,
    "continue_probability": None,
    "interval": {"level", "lower", "upper"},
    "median_remaining_calls": None,
    "probability_pays": None,
    "break_even_calls": None,
    "cost": None,
    "saving_per_call": None,
    "expected_net": None,
    "basis": {
        "role", "source", "unit", "turns", "at_risk", "ends", "requests_per_call",
        "extrapolated", "credibility", "effective_ends", "half_life_turns", "rests_on", "learned",
        "assumed",
    },
    "decision_id": None,
    "versions": {"policy", "estimate", "prices", "thresholds"},
}  # fmt: skip


def test_a_body_has_the_questions_fields_and_defaults():
    body = ShouldCompact.model_fields
    assert set(body) == {field.name for field in fields(Question)}
    for field in fields(Question):
        told = body[field.name]
        assert told.is_required() == (field.default is MISSING)
        if field.default is not MISSING:
            assert told.default == field.default, field.name


def test_the_query_is_the_body_without_weights():
    assert set(ShouldCompact.model_fields) - set(ShouldCompactQuery.model_fields) == {"weights"}


def test_bodies_hold_the_issues_fields():
    assert set(TurnBody.model_fields) == {
        "role", "session_id", "model", "provider", "started_at", "entry_calls", "parent_turn_id",
    }  # fmt: skip
    assert set(RequestBody.model_fields) == {
        "request_id", "at", "model", "tool_calls", "usage", "convention", "kind",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 501, 5, None, ["a"]])
def test_names_that_no_database_would_take_are_refused(name):
    with pytest.raises(ValidationError) as refused:
        TurnBody(role=name, session_id="s")
    assert refused.value.errors()[0]["loc"] == ("role",)


@pytest.mark.parametrize("amount", [math.nan, math.inf, -1, 1e13])
def test_amounts_are_finite_and_not_negative(amount):
    with pytest.raises(ValidationError):
        ShouldCompact(role="r", calls=0, cost=amount, saving=1)


@pytest.fixture
def client(sqlite_ledger):
    with TestClient(create_app(Settings(str(sqlite_ledger.url), 3600))) as client:
        client.post("/turns", json=[{"turn_id": "t", "role": "main", "tool_calls": 4}])
        client.app.state.service.refresher.stop()
        client.app.state.service.refresher.refresh()
        yield client


@pytest.mark.parametrize(
    "more",
    [
        {"cost": 1, "saving": 1},
        {"cost": 1, "saving": 1, "explain": True},
        {"context_tokens": 150_000, "model": "claude-opus-4-8", "explain": True},
        {"context_tokens": 40_000, "model": "claude-opus-4-8"},
        {"cost": 1, "saving": 1, "role": "nobody", "unit": "requests"},
        {"context_tokens": 150_000, "model": "claude-opus-4-8", "at": "turn_end"},
        {"context_tokens": 150_000, "model": "claude-opus-4-8", "at": "idle", "idle_seconds": 240},
        {
            "context_tokens": 150_000,
            "model": "claude-opus-4-8",
            "summary_model": "claude-haiku-4-5",
            "quotes": True,
        },
    ],
)
def test_an_answer_is_what_the_route_publishes(client, more):
    answer = client.post("/should-compact", json={"role": "main", "calls": 1} | more).json()
    assert set(answer) - {"quotes", "terms"} == set(ANSWER)
    assert ("terms" in answer) == bool(more.get("explain"))
    assert [quoted["kind"] for quoted in answer.get("quotes", [])] == (
        ["separate", "summary"] if more.get("quotes") else []
    )
    for name, inside in ANSWER.items():
        if inside is not None and answer[name] is not None:
            assert set(answer[name]) == inside, name
    shares = answer["basis"]["rests_on"]
    assert all(set(share) == {"name", "turns", "weight"} for share in shares)
    assert sum(share["weight"] for share in shares) == pytest.approx(1)
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    told = document["paths"]["/should-compact"]["post"]["responses"]["200"]["content"]
    _holds(answer, told["application/json"]["schema"], schemas, "answer")


KINDS = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None),
    "array": list, "object": dict,
}  # fmt: skip


def _holds(value, schema, schemas, where):
    """Hold a JSON value against a schema: the keywords that this document uses, no others."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in schema:
        kinds = [_resolved(part, schemas) for part in schema["anyOf"]]
        fitting = [part for part in kinds if _is(value, part["type"])]
        assert fitting, f"{where}: {value!r} is none of {schema['anyOf']}"
        _holds(value, fitting[0], schemas, where)
        return
    assert not set(schema) - KNOWN, f"{where}: this test does not know {set(schema) - KNOWN}"
    if "type" in schema:
        assert _is(value, schema["type"]), f"{where}: {value!r} is no {schema['type']}"
    assert value in schema.get("enum", [value]), where
    assert value == schema.get("const", value), where
    if isinstance(value, dict) and "properties" in schema:
        assert set(schema.get("required", ())) <= set(value), where
        assert set(value) <= set(schema["properties"]), where
        for name, inner in value.items():
            _holds(inner, schema["properties"][name], schemas, f"{where}.{name}")
    if isinstance(value, list):
        for inner in value:
            _holds(inner, schema.get("items", {}), schemas, f"{where}[]")


KNOWN = {
    "type", "properties", "required", "enum", "const", "items", "title", "description",
    "additionalProperties", "default",
}  # fmt: skip


def _resolved(schema, schemas):
    return schemas[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


def _is(value, kind):
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, KINDS[kind])


def test_many_turns_come_as_a_list_or_as_an_object():
    from api.schemas import ManyTurns  # noqa: PLC0415 - an annotation, of use here only

    adapter = TypeAdapter(ManyTurns)
    row = {"turn_id": "t", "role": "r", "tool_calls": 2}
    assert adapter.validate_python([row])[0].tool_calls == 2
    assert adapter.validate_python({"turns": [row]}).turns[0].status == "ended"
