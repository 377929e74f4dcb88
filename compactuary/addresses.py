"""Addresses of a host: looked up beside the callers, since a name server knows no deadline."""

import socket
import threading
import time
from typing import Any

__all__ = ["Address", "Addresses"]

#: What `socket.socket` and its ``connect`` need: the family and the address itself.
Address = tuple[int, Any]


class Addresses:
    """The addresses of one host, kept while they are looked up again.

    Parameters
    ----------
    host : str
        A name or an address.
    port : int
    fresh_seconds : float
        After so long a name is looked up again.
    """

    def __init__(self, host: str, port: int, fresh_seconds: float = 60.0) -> None:
        self._host, self._port, self._fresh_seconds = host, port, fresh_seconds
        self._found: list[Address] = []
        self.renew()
        try:
            self._found = self._look_up(socket.AI_NUMERICHOST)
            self._stale_at = float("inf")
        except OSError:
            self._stale_at = 0.0

    def renew(self) -> None:
        """Begin anew in a forked process, where no look-up is under way."""
        self._lock = threading.Lock()
        self._looking = False
        self._ready = threading.Event()
        self._error: OSError | None = None

    def find(self, deadline: float) -> list[Address]:
        """Return the addresses, the one that worked last first.

        Parameters
        ----------
        deadline : float
            Of the monotonic clock.

        Raises
        ------
        OSError
            The name can't be looked up; a TimeoutError where that takes too long.
        """
        now = time.monotonic()
        if now >= self._stale_at:
            self._begin_look_up()
            if not self._found and not self._ready.wait(max(0.0, deadline - now)):
                raise TimeoutError(f"the name {self._host} was not looked up in time")
            if not self._found:
                raise self._error or OSError(f"the name {self._host} has no address")
        return self._found

    def prefer(self, address: Address) -> None:
        """Try this address first from now on."""
        found = self._found
        if len(found) > 1 and found[0] != address:
            self._found = [address, *(one for one in found if one != address)]

    def _begin_look_up(self) -> None:
        with self._lock:
            if self._looking:
                return
            self._looking = True
            self._ready.clear()
        thread = threading.Thread(target=self._run, name="compactuary-addresses", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self._looking = False
            raise OSError(f"the name {self._host} can't be looked up: {error}") from error

    def _run(self) -> None:
        try:
            self._found = self._look_up(0)
            self._stale_at = time.monotonic() + self._fresh_seconds
        except OSError as error:
            self._error = error
        finally:
            with self._lock:
                self._looking = False
                self._ready.set()

    def _look_up(self, flags: int) -> list[Address]:
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=flags)
        return [(family, address) for family, _, _, _, address in found]
