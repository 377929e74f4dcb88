"""The client for asyncio: the same answers, counters and records; nothing blocks the loop."""

import asyncio
import time
from types import TracebackType
from typing import Any, Self

from compactuary.advice import Advice, Unanswered
from compactuary.async_connection import AsyncConnections
from compactuary.client import RESERVED_SECONDS
from compactuary.client_parts import ClientParts
from compactuary.turn import AsyncTurn
from compactuary.wondering import Wondering

__all__ = ["AsyncClient"]


class AsyncClient(ClientParts):
    """A client that can't break an agent loop, for asyncio. Its settings are those of `Client`.

    Nothing but the constructor raises; what asyncio cancels is cancelled. Event loops may come and
    go; close the client within the loop that used it, or use ``async with``. A thread delivers
    records.
    """

    _streams: AsyncConnections | None = None

    async def should_compact(
        self,
        role: str = "",
        calls: int = 0,
        context_tokens: int | None = None,
        model: str | None = None,
        **fields: Any,
    ) -> Advice:
        """Return whether to compact before the next request, as `Client.should_compact` does."""
        deadline = time.monotonic() + self._wired.settings.budget_seconds - RESERVED_SECONDS
        adviser = self._wired.adviser
        try:
            asked = Wondering(role, calls, context_tokens, model, fields)
            request = adviser.prepare(asked)
            if isinstance(request, Unanswered):
                return adviser.conclude(asked, request)
            if self._streams is None:
                self._streams = AsyncConnections(self._wired.settings.endpoint)
            said = await self._streams.exchange(request, deadline)
            return adviser.conclude(asked, said)
        except Exception as error:  # noqa: BLE001 - advice must never break the loop that asks
            return adviser.broken(error)

    def turn(
        self,
        role: str,
        session_id: str | None = None,
        *,
        turn_id: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        entry_calls: int | None = None,
        parent_turn_id: str | None = None,
        **question: Any,
    ) -> AsyncTurn:
        """Return a turn as an async context manager, as `Client.turn` does."""
        started = {
            "model": model,
            "provider": provider,
            "entry_calls": entry_calls,
            "parent_turn_id": parent_turn_id,
        }
        return AsyncTurn(self, role, session_id, turn_id, started, question)

    async def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until every record is delivered; return whether they were, in time."""
        return await asyncio.to_thread(self._wired.delivery.flush, timeout_seconds)

    async def close(self, timeout_seconds: float | None = None) -> bool:
        """Flush, drop what could not be delivered, and let go of threads and connections."""
        seconds = self._wired.settings.exit_seconds if timeout_seconds is None else timeout_seconds
        done = await self.flush(seconds)
        self._wired.delivery.give_up()
        if self._streams is not None:
            self._streams.close()
        self._finish()
        return done

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _renew(self) -> None:
        super()._renew()
        self._streams = None
