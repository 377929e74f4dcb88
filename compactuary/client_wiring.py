"""The wiring: the parts of a client, joined. Loaded when one is made, not when one is imported."""

import os
from typing import Any, NamedTuple

from compactuary.adviser import Adviser
from compactuary.breaker import Breaker
from compactuary.client_settings import ClientSettings, settings_from
from compactuary.connection import Connections
from compactuary.counters import Counters
from compactuary.delivery import Delivery
from compactuary.log_once import LogOnce
from compactuary.records import MAKERS
from compactuary.threshold_shelf import ThresholdShelf

__all__ = ["Wiring", "wire"]


class Wiring(NamedTuple):
    """The parts of one client."""

    settings: ClientSettings
    counters: Counters
    log: LogOnce
    connections: Connections
    breaker: Breaker
    shelf: ThresholdShelf
    delivery: Delivery
    adviser: Adviser

    def record(self, kind: str, *words: Any, **more: Any) -> None:
        """Have something recorded; what can't be is counted, and never raises."""
        try:
            self.delivery.offer(MAKERS[kind](*words, **more))
        except Exception as error:  # noqa: BLE001 - a record must never break the loop it is of
            self.counters.count("records_invalid")
            self.log.tell((kind, type(error)), f"A record can't be made ({kind}): {error}.")

    def renew(self) -> None:
        """Begin anew in a forked process."""
        self.counters.renew()
        self.connections.renew()
        self.breaker.renew()
        self.shelf.renew()
        self.delivery.renew()

    def let_go(self) -> None:
        """Let threads end and close idle connections."""
        self.shelf.close()
        self.delivery.close()
        self.connections.close()


def wire(
    url: str | None, key: str | None, cache: bool | str | os.PathLike[str], **numbers: Any
) -> Wiring:
    """Return the parts of a client.

    Raises
    ------
    InputError
        A setting is wrong.
    """
    settings = settings_from(url, key, cache, numbers)
    endpoint = settings.endpoint
    counters, log, breaker = Counters(), LogOnce(), Breaker(settings.breaker_seconds)
    connections = Connections(endpoint)
    shared = (endpoint, connections, counters, log)
    shelf = ThresholdShelf(*shared, settings.folder, settings.refresh_seconds)
    delivery = Delivery(*shared, settings.queue_capacity, settings.exit_seconds)
    adviser = Adviser(endpoint, shelf, breaker, counters, log)
    return Wiring(settings, counters, log, connections, breaker, shelf, delivery, adviser)
