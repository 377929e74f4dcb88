"""Connections: one request, one answer, one deadline that holds for all of it."""

import select
import socket
import threading
import time
from typing import Any

from compactuary.addresses import Address, Addresses
from compactuary.advice import Unanswered
from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.http_message import Answered, AnswerParser

__all__ = ["Connections", "is_stale", "tls_context", "unanswered"]

_READ_BYTES = 1 << 16
_MOST_IDLE = 8


class Connections:
    """Connections to one endpoint, kept alive between requests. Threads may share them.

    Proxies of the environment are not used, and redirections not followed.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._addresses = Addresses(endpoint.host, endpoint.port)
        self._tls = tls_context() if endpoint.scheme == "https" else None
        self._idle: list[socket.socket] = []
        self._closed = False
        self._lock = threading.Lock()

    def renew(self) -> None:
        """Let go of what belongs to the parent of a forked process."""
        self._lock = threading.Lock()
        self._addresses.renew()
        self._drop_idle()

    def close(self) -> None:
        """Close the connections that nobody uses now, and the others after their answer."""
        self._closed = True
        self._drop_idle()

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for each in idle:
            each.close()

    def exchange(self, request: bytes, deadline: float) -> Answered | Unanswered:
        """Send a request once and return its answer, or why there is none.

        Parameters
        ----------
        request : bytes
            The whole message.
        deadline : float
            Of the monotonic clock; looking up, connecting, sending and reading end by then.
        """
        connection = None
        reusable = False
        try:
            connection = self._take() or self._open(deadline)
            connection.settimeout(_left(deadline))
            connection.sendall(request)
            parser = AnswerParser()
            while not parser.done:
                connection.settimeout(_left(deadline))
                parser.feed(connection.recv(_READ_BYTES))
            reusable = parser.reusable
            return parser.answer()
        except (OSError, InputError) as error:
            return unanswered(error)
        finally:
            if connection is not None:
                self._give_back(connection, reusable)

    def _take(self) -> socket.socket | None:
        """Return an idle connection that the server has not closed, if there is one."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not is_stale(connection.fileno()):
                return connection
            connection.close()

    def _give_back(self, connection: socket.socket, reusable: bool) -> None:
        if reusable:
            with self._lock:
                if len(self._idle) < _MOST_IDLE and not self._closed:
                    self._idle.append(connection)
                    return
        connection.close()

    def _open(self, deadline: float) -> socket.socket:
        addresses = self._addresses.find(deadline)
        last = len(addresses) - 1
        for place, address in enumerate(addresses):
            # An address that swallows packets must leave time for the next one.
            left = _left(deadline)
            until = deadline if place == last else time.monotonic() + left / 2
            try:
                connection = self._connect(address, until)
            except OSError:
                if place == last:
                    raise
            else:
                self._addresses.prefer(address)
                return connection
        raise OSError("no address")

    def _connect(self, address: Address, deadline: float) -> socket.socket:
        family, place = address
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(_left(deadline))
            connection.connect(place)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection.settimeout(_left(deadline))
                wrapped: socket.socket = self._tls.wrap_socket(
                    connection, server_hostname=self._endpoint.host
                )
                return wrapped
        except BaseException:
            connection.close()
            raise
        return connection


def is_stale(descriptor: int) -> bool:
    """Return whether an idle connection has something to read: its end, or what nobody asked."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])


def tls_context() -> Any:
    """Return the default TLS settings: certificates are verified."""
    import ssl  # noqa: PLC0415 - as long to load as all of the client, and rarely needed

    return ssl.create_default_context()


def unanswered(error: Exception) -> Unanswered:
    """Return what an exchange's failure means."""
    if isinstance(error, TimeoutError):
        return Unanswered("timeout", "The server did not answer in time")
    if isinstance(error, InputError):
        return Unanswered("garbage", f"The server's {error.where} {error.problem}")
    return Unanswered("unreachable", f"The server can't be reached ({error})")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
