"""The app: routes, problem documents, and the life of one worker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from api import decisions, drift, health, problems, tables, turns
from api.refresh import Refresher
from api.service import Service
from api.settings import Settings
from compactuary.version import VERSION
from ledger.database import open_engine

__all__ = ["create_app"]

DESCRIPTION = """
Before each request, an agent asks whether compacting its context now will pay. The answer compares
the calls this turn still has to make, estimated from a ledger of past turns, with what compacting
costs at the model's token prices.
"""


def create_app(settings: Settings | None = None) -> FastAPI:
    """Make the app of one worker.

    Parameters
    ----------
    settings : Settings, optional
        Read from the environment when the worker starts, if left out.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        chosen = settings or Settings.from_environment()
        engine = open_engine(chosen.db)
        refresher = Refresher(engine, chosen.refresh_seconds)
        refresher.start()
        app.state.service = Service(engine, refresher)
        yield
        refresher.stop()
        engine.dispose()

    app = FastAPI(
        title="compactuary", version=VERSION, description=DESCRIPTION.strip(), lifespan=lifespan
    )
    problems.install(app)
    for room in (decisions, turns, tables, drift, health):
        app.include_router(room.router)
    return app
