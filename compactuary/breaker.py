"""The circuit breaker: a server that keeps failing is asked every few seconds only."""

from threading import Lock

__all__ = ["FAILURES_TO_OPEN", "Breaker"]

#: After so many failures in a row nobody asks.
FAILURES_TO_OPEN = 3


class Breaker:
    """Counts failures in a row. Times are those of a monotonic clock, in seconds.

    Parameters
    ----------
    retry_seconds : float
        Until one caller tries again; the others go on without asking.
    """

    def __init__(self, retry_seconds: float = 5.0) -> None:
        self._retry_seconds = retry_seconds
        self.renew()

    def renew(self) -> None:
        """Begin anew, as a forked process has to."""
        self._lock = Lock()
        self._failures = 0
        self._retry_at = 0.0

    @property
    def open(self) -> bool:
        """Whether the server counts as away."""
        return self._failures >= FAILURES_TO_OPEN

    def allows(self, now: float) -> bool:
        """Return whether to ask; at most one caller is told so per `retry_seconds` when open."""
        if not self.open:
            return True
        with self._lock:
            if now < self._retry_at:
                return False
            self._retry_at = now + self._retry_seconds
            return True

    def succeeded(self) -> None:
        """Take note of an answer: the server is back."""
        if self._failures:
            with self._lock:
                self._failures = 0

    def failed(self, now: float) -> bool:
        """Take note of a failure; return whether it opened the breaker."""
        with self._lock:
            self._failures += 1
            if self.open:
                self._retry_at = now + self._retry_seconds
            return self._failures == FAILURES_TO_OPEN
