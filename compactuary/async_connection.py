"""The same connections for asyncio: no thread waits, and each event loop has its own."""

import asyncio
import time
from weakref import WeakKeyDictionary

from compactuary.advice import Unanswered
from compactuary.connection import is_stale, tls_context, unanswered
from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.http_message import Answered, AnswerParser

__all__ = ["AsyncConnections"]

_READ_BYTES = 1 << 16
_MOST_IDLE = 8
_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncConnections:
    """Connections to one endpoint, kept alive between requests of one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._tls = tls_context() if endpoint.scheme == "https" else None
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, list[_Stream]] = (
            WeakKeyDictionary()
        )

    def close(self) -> None:
        """Close the idle connections of the running loop."""
        for _, writer in self._idle.pop(asyncio.get_running_loop(), []):
            # Not close: under TLS that waits for the peer's farewell, and the loop may end before.
            writer.transport.abort()

    async def exchange(self, request: bytes, deadline: float) -> Answered | Unanswered:
        """Send a request once and return its answer, or why there is none.

        Parameters
        ----------
        request : bytes
            The whole message.
        deadline : float
            Of the monotonic clock.
        """
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await self._exchange(request)
        except (OSError, InputError) as error:
            return unanswered(error)

    async def _exchange(self, request: bytes) -> Answered:
        reader, writer = self._take() or await self._open()
        reusable = False
        try:
            writer.write(request)
            await writer.drain()
            parser = AnswerParser()
            while not parser.done:
                parser.feed(await reader.read(_READ_BYTES))
            reusable = parser.reusable
            return parser.answer()
        finally:
            idle = self._idle.setdefault(asyncio.get_running_loop(), [])
            if reusable and len(idle) < _MOST_IDLE:
                idle.append((reader, writer))
            else:
                # Not close: that would wait for the peer to take what was sent.
                writer.transport.abort()

    def _take(self) -> _Stream | None:
        idle = self._idle.get(asyncio.get_running_loop())
        while idle:
            reader, writer = idle.pop()
            raw = writer.get_extra_info("socket")
            closed = reader.at_eof() or writer.is_closing() or raw is None
            # The loop may not have run since the server closed the connection.
            if not closed and not is_stale(raw.fileno()):
                return reader, writer
            writer.transport.abort()
        return None

    async def _open(self) -> _Stream:
        host, port = self._endpoint.host, self._endpoint.port
        return await asyncio.open_connection(
            host, port, ssl=self._tls, happy_eyeballs_delay=0.02, limit=_READ_BYTES
        )
