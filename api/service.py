"""What the routes share: the engine, the refresher and the price book of one worker."""

import time
from dataclasses import dataclass, field

from fastapi import Request
from sqlalchemy import Engine

from api.refresh import Refresher
from policy.prices import GenaiPriceBook, PriceBook

__all__ = ["Service", "service_of"]


@dataclass(frozen=True, slots=True)
class Service:
    """One worker's means. ``refresher.state.snapshot`` is what decisions are made from."""

    engine: Engine
    refresher: Refresher
    price_book: PriceBook = field(default_factory=GenaiPriceBook)
    started: float = field(default_factory=time.monotonic)


def service_of(request: Request) -> Service:
    """Return the app's service."""
    service: Service = request.app.state.service
    return service
