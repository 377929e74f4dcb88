"""Liveness, readiness and status."""

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from api.refresh import RefreshState
from api.service import service_of
from compactuary.version import VERSION
from ledger.clock import iso
from policy.decision import POLICY_VERSION

__all__ = ["router"]

router = APIRouter(tags=["health"])

#: A snapshot that could not be compared with the ledger for this long is stale.
STALE_SECONDS = 30


@router.get("/healthz", summary="The process lives")
async def get_healthz() -> dict[str, str]:
    """Answer as long as the process can answer at all."""
    return {"status": "ok"}


@router.get("/readyz", summary="Answers can be trusted")
async def get_readyz(request: Request, response: Response) -> dict[str, Any]:
    """Say `ready`, or `degraded` while the ledger can't be read; 503 before the first snapshot.

    A degraded worker goes on answering from its last good snapshot.
    """
    state = service_of(request).refresher.state
    if state.built_ms is None:
        response.status_code = 503
        return {"status": "not ready", "reason": state.error}
    if state.error or _age_seconds(state.checked_ms) > STALE_SECONDS:
        return {"status": "degraded", "reason": state.error or "the ledger was not checked lately"}
    return {"status": "ready", "reason": None}


@router.get("/status", summary="Versions, ages, the last error")
async def get_status(request: Request) -> dict[str, Any]:
    """Return what this worker answers from, and how its refresher fares."""
    service = service_of(request)
    state = service.refresher.state
    return {
        "version": VERSION,
        "policy": POLICY_VERSION,
        "uptime_seconds": round(time.monotonic() - service.started, 3),
        "ledger": service.engine.url.render_as_string(hide_password=True),
        "snapshot": _snapshot_status(state),
        "last_error": state.error,
    }


def _snapshot_status(state: RefreshState) -> dict[str, Any]:
    snapshot = state.snapshot
    return {
        "version": snapshot.version,
        "content_hash": snapshot.content_hash,
        "built_at": iso(state.built_ms),
        "checked_at": iso(state.checked_ms),
        "age_seconds": None if state.built_ms is None else _age_seconds(state.built_ms),
        "refreshes": state.refreshes,
        "roles": len(snapshot.tables.get("tool_calls", {})),
    }


def _age_seconds(at_ms: int | None) -> float:
    return 0.0 if at_ms is None else round(time.time() - at_ms / 1000, 3)
