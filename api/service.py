"""What the routes share: one worker's engine, snapshot, thresholds, prices and decision log."""

import time
from dataclasses import dataclass, field

from fastapi import Request
from sqlalchemy import Engine

from api.compiler import Compiler
from api.counts import Counts
from api.decision_log import DecisionLog
from api.keyring import Keyring
from api.limits import RateLimiter
from api.modes import Modes
from api.refresh import Refresher
from api.repeats import Repeats
from api.shared_metrics import SharedMetrics
from api.traces import Traces
from policy.prices import GenaiPriceBook, PriceBook

__all__ = ["Service", "service_of"]


@dataclass(frozen=True, slots=True)
class Service:
    """One worker's means. ``refresher.state.snapshot`` is what decisions are made from.

    Without a ``log``, decisions are not logged; without ``traces``, nothing is traced; without
    ``shared_metrics``, this worker is the only one.
    """

    engine: Engine
    refresher: Refresher
    compiler: Compiler
    keyring: Keyring
    limiter: RateLimiter
    price_book: PriceBook = field(default_factory=GenaiPriceBook)
    log: DecisionLog | None = None
    modes: Modes = field(default_factory=Modes)
    repeats: Repeats = field(default_factory=Repeats)
    counts: Counts = field(default_factory=Counts)
    traces: Traces | None = None
    shared_metrics: SharedMetrics | None = None
    started: float = field(default_factory=time.monotonic)


def service_of(request: Request) -> Service:
    """Return the app's service."""
    service: Service = request.app.state.service
    return service
