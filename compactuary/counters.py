"""Counters: what a client did, and everything it had to do without."""

from threading import Lock

from compactuary.advice import FALLBACKS

__all__ = ["COUNTERS", "Counters"]

#: Every counter there is; docs/client.md says what each counts.
COUNTERS: tuple[str, ...] = (
    "asked",
    "server",
    "cached",
    "default",
    *FALLBACKS,
    "breaker_opened",
    "thresholds_fetched",
    "thresholds_confirmed",
    "thresholds_failed",
    "cache_ignored",
    "cache_unwritten",
    "records_queued",
    "records_delivered",
    "records_retried",
    "records_refused",
    "records_dropped",
    "records_invalid",
)


class Counters:
    """Numbers that only grow, safe to count from several threads."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(COUNTERS, 0)
        self.renew()

    def renew(self) -> None:
        """Get a lock that no other process's thread holds."""
        self._lock = Lock()

    def count(self, *names: str) -> None:
        """Add one to each."""
        with self._lock:
            for name in names:
                self._counts[name] += 1

    def count_more(self, name: str, number: int) -> None:
        """Add a number to one of them."""
        with self._lock:
            self._counts[name] += number

    def snapshot(self) -> dict[str, int]:
        """Return all of them as they are now."""
        with self._lock:
            return dict(self._counts)
