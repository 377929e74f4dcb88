"""The app: routes, problem documents, and the life of one worker."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI

from api import (
    decisions,
    drift,
    health,
    ingest,
    metrics,
    parameters,
    problems,
    tables,
    thresholds,
    turns,
)
from api.access import describe_access
from api.compiler import Compiler
from api.decision_log import DecisionLog
from api.entrance import REFUSALS, Entrance
from api.keyring import Keyring
from api.limits import RateLimiter
from api.refresh import Refresher
from api.service import Service
from api.settings import Settings
from api.shared_metrics import SharedMetrics
from api.shortcut import Shortcut
from api.traces import on_refresh, open_traces
from compactuary.version import VERSION
from ledger.database import open_engine
from policy.prices import GenaiPriceBook

__all__ = ["create_app"]

DESCRIPTION = """
Before each request, an agent asks whether compacting its context now will pay. The answer compares
the calls this turn still has to make, estimated from a ledger of past turns, with what compacting
costs at the model's token prices.
"""


class _App(FastAPI):
    """The app, whose OpenAPI document says which scope each operation needs."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = super().openapi()
            describe_access(self.openapi_schema, REFUSALS)
            problems.describe_refusals(self.openapi_schema)
        return self.openapi_schema


def create_app(settings: Settings | None = None) -> FastAPI:
    """Make the app of one worker.

    Parameters
    ----------
    settings : Settings, optional
        Read from the environment when the worker starts, if left out.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with _running(settings or Settings.from_environment()) as app.state.service:
            yield

    app = _App(
        title="compactuary", version=VERSION, description=DESCRIPTION.strip(), lifespan=lifespan
    )
    app.add_middleware(Shortcut)
    app.add_middleware(Entrance)
    problems.install(app)
    rooms = (
        decisions,
        thresholds,
        turns,
        ingest,
        tables,
        parameters,
        drift,
        health,
        metrics,
    )
    for room in rooms:
        app.include_router(room.router)
    return app


@contextmanager
def _running(settings: Settings) -> Iterator[Service]:
    """Start all that a worker runs in the background, and stop it in the opposite order."""
    with ExitStack() as stack:
        engine = open_engine(settings.db)
        stack.callback(engine.dispose)
        traces = open_traces(settings.traces)
        if traces is not None:
            stack.callback(traces.close)
        keyring = Keyring(engine, settings.refresh_seconds)
        refresher = Refresher(engine, settings.refresh_seconds, on_refresh=on_refresh(traces))
        prices = GenaiPriceBook()
        compiler = Compiler(lambda: refresher.state.snapshot, prices)
        log = DecisionLog(engine, settings.log_queue, settings.log_durability)
        shared = SharedMetrics(settings.metrics_dir) if settings.metrics_dir else None
        service = Service(
            engine,
            refresher,
            compiler,
            keyring,
            RateLimiter(settings.limits),
            prices,
            log if settings.log else None,
            settings.modes,
            traces=traces,
            shared_metrics=shared,
        )
        if shared is not None:
            shared.families = partial(metrics.families_of, service)
        for part in (keyring, refresher, service.log, compiler, shared):
            if part is not None:
                part.start()
                stack.callback(part.stop)
        yield service
