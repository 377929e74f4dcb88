"""Errors as RFC 9457 problem documents that name the field, the value and the remedy."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from api.schemas import FORMS
from compactuary.errors import CompactuaryError, InputError, LedgerError, UnknownPriceError

__all__ = [
    "CONFLICT",
    "NOT_FOUND",
    "PROBLEM_RESPONSES",
    "ConflictError",
    "NotFoundError",
    "RefusedError",
    "describe_refusals",
    "field_problem",
    "install",
    "refusal",
    "shown",
]

MEDIA_TYPE = "application/problem+json"
_SHOWN = 80
_INTERNAL = "Something went wrong"


class NotFoundError(InputError):
    """What the path names is not in the ledger."""


class ConflictError(InputError):
    """What was sent contradicts what the ledger holds."""


class RefusedError(HTTPException):
    """A request that goes no further, for what it is rather than for what it asks.

    Parameters
    ----------
    status : int
    kind, title, problem, remedy : str
    headers : mapping of str to str
        Sent with the answer.
    """

    def __init__(
        self, status: int, kind: str, title: str, problem: str, remedy: str, **headers: str
    ) -> None:
        super().__init__(status, f"{problem}. {remedy}", headers)
        self.kind, self.title, self.remedy = kind, title, remedy


_KINDS: tuple[tuple[type[CompactuaryError], int, str, str], ...] = (
    (NotFoundError, 404, "not-found", "Not in the ledger"),
    (ConflictError, 409, "conflict", "Contradicts the ledger"),
    (UnknownPriceError, 422, "unknown-price", "No price is known"),
    (InputError, 422, "invalid-value", "A value is wrong"),
    (LedgerError, 503, "ledger-unavailable", "The ledger can't be used"),
    (CompactuaryError, 500, "internal", _INTERNAL),
)


def _documented(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {}}}


PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    422: _documented("A value is wrong; the problem names the field, the value and the remedy."),
    503: _documented("The ledger can't be used now."),
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: _documented("The ledger does not know it.")}
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: _documented("It contradicts what the ledger holds.")
}


def describe_refusals(document: dict[str, Any]) -> None:
    """Add to an OpenAPI document what routing and media types refuse.

    That is a name which no path can hold, and a body of another type than an operation reads.
    """
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if "{" in path:
                operation["responses"].setdefault("404", _documented("There is no such path."))
            media = operation.get("requestBody", {}).get("content", {"application/json": {}})
            if "application/json" not in media:
                told = _documented(f"The body is not {', '.join(media)}.")
                operation["responses"].setdefault("415", told)


def install(app: FastAPI) -> None:
    """Answer every error of the app with a problem document."""
    app.add_exception_handler(CompactuaryError, _of_our_own)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _of_a_fault)


def refusal(error: RefusedError) -> Response:
    """Return the answer that a refusal is."""
    response = _problem(
        error.status_code, error.kind, error.title, error.detail, remedy=error.remedy
    )
    response.headers.update(error.headers or {})
    return response


def _problem(status: int, kind: str, title: str, detail: str, **more: Any) -> Response:
    body: dict[str, Any] = {
        "type": f"urn:compactuary:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    body |= {name: value for name, value in more.items() if value is not None}
    # Escaped, because a value that is wrong may be no text that UTF-8 can hold.
    return Response(json.dumps(body), status, media_type=MEDIA_TYPE)


def _of_our_own(_request: Request, error: Exception) -> Response:
    for kind, status, name, title in _KINDS:
        if isinstance(error, kind):
            return _problem(
                status,
                name,
                title,
                str(error),
                field=error.where,
                value=shown(error.value),
                remedy=error.remedy,
            )
    raise error


def _of_validation(_request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    errors = [field_problem(one) for one in error.errors()]
    first = errors[0]
    return _problem(
        422,
        "invalid-value",
        "A value is wrong",
        _sentence(first),
        field=first["field"],
        value=first["value"],
        remedy=first["remedy"],
        errors=errors,
    )


def _sentence(first: Mapping[str, Any]) -> str:
    got = "" if first["value"] is None else f" (got {first['value']!r})"
    return f"{first['field']}: {first['problem']}{got}. {first['remedy']}"


def field_problem(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return field, problem, value and remedy of an error as validation told it.

    Parameters
    ----------
    one : mapping
        Its ``type, loc, msg, input``; the place begins with where the fields are: the body, say.
    """
    kind, place = one["type"], one["loc"][1:]
    if kind == "json_invalid":
        # Its place is the number of a character, not a field.
        problem, place = f"is not JSON: {one['ctx']['error']} at character {place[0]}", ()
        value = None
    elif kind == "missing":
        problem, value = "is missing", None
    else:
        problem, value = one["msg"], shown(one.get("input"))
    named = [str(part) for part in place if part not in FORMS]
    return {
        "field": ".".join(named) or "body",
        "problem": problem,
        "value": value,
        "remedy": _remedy(kind, one.get("input")),
    }


def _remedy(kind: str, given: object) -> str:
    if kind == "missing":
        return "Send it."
    if kind == "json_invalid" or isinstance(given, bytes):
        return "Send JSON, with the header content-type: application/json."
    return "See /docs for what the field takes."


def _of_http(_request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if isinstance(error, RefusedError):
        return refusal(error)
    if error.status_code == 400 and error.__cause__ is not None:
        return _of_an_unreadable_body(error.__cause__)
    detail = str(error.detail)
    remedy = "See /docs for the paths and methods there are."
    response = _problem(error.status_code, "http", detail, f"{detail}. {remedy}", remedy=remedy)
    response.headers.update(error.headers or {})
    return response


def _of_an_unreadable_body(cause: BaseException) -> Response:
    """Answer to bytes that are no text, or to nesting and numbers beyond what Python takes."""
    problem = "is not UTF-8" if isinstance(cause, UnicodeError) else "is not JSON that can be read"
    remedy = "Send JSON in UTF-8."
    detail = f"body: {problem}. {remedy}"
    return _problem(422, "invalid-value", "A value is wrong", detail, field="body", remedy=remedy)


def _of_a_fault(_request: Request, _error: Exception) -> Response:
    remedy = "The service's own log says more; nothing was half-written."
    return _problem(500, "internal", _INTERNAL, f"{_INTERNAL}. {remedy}", remedy=remedy)


def shown(value: object) -> Any:
    """Return a wrong value as a problem tells it: numbers of 64 bits as such, else a short text."""
    if value is None or (isinstance(value, int) and abs(value) < 2**63):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
