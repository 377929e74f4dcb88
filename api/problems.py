"""Errors as RFC 9457 problem documents that name the field, the value and the remedy."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from compactuary.errors import CompactuaryError, InputError, LedgerError, UnknownPriceError

__all__ = ["PROBLEM_RESPONSES", "ConflictError", "NotFoundError", "install"]

MEDIA_TYPE = "application/problem+json"
_SHOWN = 80


class NotFoundError(InputError):
    """What the path names is not in the ledger."""


class ConflictError(InputError):
    """What was sent contradicts what the ledger holds."""


_KINDS: tuple[tuple[type[CompactuaryError], int, str, str], ...] = (
    (NotFoundError, 404, "not-found", "Not in the ledger"),
    (ConflictError, 409, "conflict", "Contradicts the ledger"),
    (UnknownPriceError, 422, "unknown-price", "No price is known"),
    (InputError, 422, "invalid-value", "A value is wrong"),
    (LedgerError, 503, "ledger-unavailable", "The ledger can't be used"),
    (CompactuaryError, 500, "internal", "Something went wrong"),
)

PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    422: {
        "description": "A value is wrong; the problem names the field, the value and the remedy.",
        "content": {MEDIA_TYPE: {}},
    },
    503: {"description": "The ledger can't be used now.", "content": {MEDIA_TYPE: {}}},
}


def install(app: FastAPI) -> None:
    """Answer every error of the app with a problem document."""
    app.add_exception_handler(CompactuaryError, _of_our_own)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)


def _problem(status: int, kind: str, title: str, detail: str, **more: Any) -> JSONResponse:
    body: dict[str, Any] = {
        "type": f"urn:compactuary:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    body |= {name: value for name, value in more.items() if value is not None}
    return JSONResponse(body, status, media_type=MEDIA_TYPE)


def _of_our_own(_request: Request, error: Exception) -> JSONResponse:
    for kind, status, name, title in _KINDS:
        if isinstance(error, kind):
            return _problem(
                status,
                name,
                title,
                str(error),
                field=error.where,
                value=_shown(error.value),
                remedy=error.remedy,
            )
    raise error


def _of_validation(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    errors = [_field_error(one) for one in error.errors()]
    first = errors[0]
    return _problem(
        422,
        "invalid-value",
        "A value is wrong",
        f"{first['field']}: {first['problem']} (got {first['value']!r}). {first['remedy']}",
        field=first["field"],
        value=first["value"],
        remedy=first["remedy"],
        errors=errors,
    )


def _field_error(one: Mapping[str, Any]) -> dict[str, Any]:
    place = [str(part) for part in one["loc"] if part not in ("body", "query", "path")]
    missing = one["type"] == "missing"
    return {
        "field": ".".join(place) or "body",
        "problem": "is missing" if missing else one["msg"],
        "value": None if missing else _shown(one.get("input")),
        "remedy": "Send it." if missing else "See /docs for what the field takes.",
    }


def _of_http(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    return _problem(error.status_code, "http", str(error.detail), str(error.detail))


def _shown(value: object) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
