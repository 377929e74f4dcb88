"""``/drift``: which roles have changed, as the detectors that the refresher feeds know."""

from typing import Any

from fastapi import APIRouter, Request

from api.drift_watch import drift_report
from api.problems import PROBLEM_RESPONSES
from api.service import service_of
from ledger.database import reading

__all__ = ["router"]

router = APIRouter(tags=["tables"], responses=PROBLEM_RESPONSES)


@router.get("/drift", summary="Roles whose turns have become shorter or longer")
def get_drift(request: Request) -> list[dict[str, Any]]:
    """Return one row a role: its detector's state, and its alarms with m(i) before and after."""
    with reading(service_of(request).engine) as connection:
        return drift_report(connection)
