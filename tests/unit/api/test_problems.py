"""Every kind of error becomes a problem document that names field, value and remedy."""

import json

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api.problems import ConflictError, NotFoundError, install
from compactuary.errors import (
    CompactuaryError,
    InputError,
    LedgerError,
    SourceError,
    UnknownPriceError,
)

KINDS = [
    (NotFoundError, 404, "not-found"),
    (ConflictError, 409, "conflict"),
    (UnknownPriceError, 422, "unknown-price"),
    (InputError, 422, "invalid-value"),
    (SourceError, 422, "invalid-value"),
    (LedgerError, 503, "ledger-unavailable"),
    (CompactuaryError, 500, "internal"),
]


def answered(error):
    app = FastAPI()
    install(app)

    @app.get("/")
    def fails():
        raise error

    return TestClient(app, raise_server_exceptions=False).get("/")


@pytest.mark.parametrize(("kind", "status", "name"), KINDS)
def test_each_error_has_its_status_and_its_type(kind, status, name):
    response = answered(kind("is wrong", where="calls", value=-1, remedy="Send 0 or more."))
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem.pop("title")
    assert problem == {
        "type": f"urn:compactuary:problem:{name}",
        "status": status,
        "detail": "calls: is wrong (got -1). Send 0 or more.",
        "field": "calls",
        "value": -1,
        "remedy": "Send 0 or more.",
    }


def test_a_fault_of_our_own_tells_nothing_of_its_inside():
    response = answered(ZeroDivisionError("secret"))
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert "secret" not in response.text
    assert response.json()["remedy"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (5, 5),
        (True, True),
        (1.5, "1.5"),
        ("x" * 81, "x" * 77 + "..."),
        ("x" * 80, "x" * 80),
        ([1, 2], "[1, 2]"),
        ("\ud800", "\ud800"),
    ],
)
def test_values_are_shown_short_and_never_break_the_document(value, shown):
    response = answered(InputError("is wrong", where="f", value=value, remedy="Mend it."))
    assert json.loads(response.content)["value"] == shown


def test_what_does_not_apply_is_left_out():
    assert set(answered(LedgerError("is gone")).json()) == {"type", "title", "status", "detail"}
