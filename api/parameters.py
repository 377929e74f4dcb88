"""What the ledger teaches, for people and callers: sizes, growth, pauses, compactions."""

from typing import Any

from fastapi import APIRouter, Request

from api.problems import PROBLEM_RESPONSES
from api.service import service_of

__all__ = ["router"]

router = APIRouter(tags=["parameters"], responses=PROBLEM_RESPONSES)


@router.get("/parameters", summary="What the ledger teaches, by role and model")
async def get_parameters(request: Request) -> dict[str, Any]:
    """List every role's parameters, and those of a role's turns on each of several models."""
    snapshot = service_of(request).refresher.state.snapshot
    rows = [known.described(*place) for place, known in sorted(snapshot.parameters.items())]
    return {"version": snapshot.version, "roles": rows}


@router.get("/parameters/{role:path}", summary="What the ledger teaches of a role")
async def get_parameters_of(
    role: str, request: Request, model: str | None = None
) -> dict[str, Any]:
    """Return the numbers that decisions about this role use where the caller gives none.

    A role that nothing is known of is answered with what all roles taught, or what is assumed:
    each number says what it rests on.
    """
    snapshot = service_of(request).refresher.state.snapshot
    return {
        "version": snapshot.version,
        **snapshot.parameters_of(role, model).described(role, model),
    }
