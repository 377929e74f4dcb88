"""What the snapshot and the price book hold, for people who check numbers."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request

from api.problems import NOT_FOUND, PROBLEM_RESPONSES, NotFoundError
from api.role_tables import ALL_ROLES
from api.service import service_of
from ledger.clock import moment
from policy.remaining_calls import DEFAULT_AGES, remaining_calls
from policy.role_table import RoleTable

__all__ = ["router"]

router = APIRouter(tags=["tables"], responses=PROBLEM_RESPONSES)

Unit = Literal["tool_calls", "requests"]
Age = Annotated[int, Query(ge=0, le=10**6)]


@router.get("/roles", summary="The roles the ledger knows")
async def get_roles(request: Request, unit: Unit = "tool_calls") -> list[dict[str, Any]]:
    """List the roles with turns that ended, with their turns and requests per tool call."""
    tables = service_of(request).refresher.state.snapshot.tables.get(unit, {})
    return [
        {
            "role": role,
            "turns": table.turns,
            "ends": table.ends[0],
            "requests_per_call": table.requests_per_call,
        }
        for role, table in tables.items()
    ]


@router.get("/tables", summary="Remaining calls by role")
async def get_tables(
    request: Request,
    unit: Unit = "tool_calls",
    at: Annotated[list[Age] | None, Query()] = None,
) -> list[dict[str, Any]]:
    """Return mean, median and m(i) by role; `at` names the ages and may be given repeatedly."""
    snapshot = service_of(request).refresher.state.snapshot
    ages = tuple(at) if at else DEFAULT_AGES
    return [remaining_calls(table, ages) for table in snapshot.tables.get(unit, {}).values()]


@router.get("/tables/{role:path}", responses=NOT_FOUND, summary="The life table of one role")
async def get_table(role: str, request: Request, unit: Unit = "tool_calls") -> dict[str, Any]:
    """Return every age of a role's table; `all roles` names all of them together."""
    snapshot = service_of(request).refresher.state.snapshot
    table = snapshot.tables.get(unit, {}).get(role)
    if table is None and role == ALL_ROLES:
        table = snapshot.portfolio.get(unit)
    if table is None:
        raise NotFoundError(
            "no turn of this role has ended",
            where="role",
            value=role,
            remedy="See /roles for those that are known.",
        )
    return _life_table(table)


def _life_table(table: RoleTable) -> dict[str, Any]:
    return {
        "role": table.role,
        "unit": table.unit,
        "turns": table.turns,
        "tail_age": table.tail_age,
        "level": table.level,
        "requests_per_call": table.requests_per_call,
        "rows": [
            {
                "age": age,
                "at_risk": table.at_risk[age],
                "ends": table.ends[age],
                "survival": table.survival[age],
                "continue_probability": table.continue_probability[age],
                "m": table.expected[age],
                "lower": table.lower[age],
                "upper": table.upper[age],
                # Of whole turns the median is seen even where few are left: as `/tables` has it.
                "median": table.median(age) if age else table.whole_median,
            }
            for age in range(table.tail_age + 1)
        ],
    }


@router.get("/prices/{model:path}", summary="Weights, dollars and cache of a model")
async def get_prices(
    model: str,
    request: Request,
    provider: str | None = None,
    at: str | None = None,
    context_tokens: Annotated[int, Query(ge=0, le=10**9)] = 0,
) -> dict[str, Any]:
    """Return what each class of token weighs, and its cache, at a date and a context size."""
    when = datetime.now(UTC) if at is None else moment(at, "at")
    book = service_of(request).price_book
    return book.prices(model, provider, at=when, context_tokens=context_tokens).as_payload()
