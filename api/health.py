"""Liveness, readiness and status."""

import os
import time
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from api.refresh import RefreshState
from api.service import Service, service_of
from compactuary.version import VERSION
from ledger.clock import iso
from ledger.database import shown_url
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
        "worker": os.getpid(),
        "uptime_seconds": round(time.monotonic() - service.started, 3),
        "ledger": shown_url(service.engine),
        "snapshot": _snapshot_status(state),
        "thresholds": asdict(service.compiler.state),
        "decision_log": None if service.log is None else service.log.state.as_payload(),
        "drift_alarms": state.drift_alarms,
        "access": _access_status(service),
        "last_error": state.error,
    }


def _access_status(service: Service) -> dict[str, Any]:
    limits, counts = service.limiter.limits, service.counts
    return {
        **service.keyring.state.as_payload(time.time_ns() // 1_000_000),
        "requests_per_second": limits.requests_per_second,
        "max_body_bytes": limits.max_body_bytes,
        "denied": dict(counts.denied),
        "rate_limited": counts.rate_limited,
        "too_large": counts.too_large,
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
