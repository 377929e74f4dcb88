"""Limits: how large a body may be, and how often one caller may ask."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from compactuary.errors import InputError

__all__ = [
    "DEFAULT_MAX_BODY_BYTES",
    "MAX_BODY_VARIABLE",
    "RATE_BURST_VARIABLE",
    "RATE_LIMIT_VARIABLE",
    "Limits",
    "RateLimiter",
    "address_of",
    "limits_of",
]

MAX_BODY_VARIABLE = "COMPACTUARY_MAX_BODY_BYTES"
RATE_LIMIT_VARIABLE = "COMPACTUARY_RATE_LIMIT"
RATE_BURST_VARIABLE = "COMPACTUARY_RATE_BURST"
#: 10,000 finished turns with long names fit in.
DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024
_LARGEST = 10**12
#: Callers remembered; the one that has asked for longest ago is forgotten first.
_MOST_CALLERS = 10_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What one caller may ask of one worker.

    Parameters
    ----------
    max_body_bytes : int
        Of a request, as it is sent.
    requests_per_second : float
        By key, else by address; 0 sets no limit.
    burst : float
        Requests that may come at once after a pause; 0 is twice a second's.
    """

    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    requests_per_second: float = 0.0
    burst: float = 0.0


def limits_of(environment: Mapping[str, str]) -> Limits:
    """Read ``COMPACTUARY_MAX_BODY_BYTES``, ``COMPACTUARY_RATE_LIMIT`` and its ``_BURST``.

    Raises
    ------
    InputError
        Naming the variable, if one is no number of its kind.
    """
    body = _number_of(environment, MAX_BODY_VARIABLE, DEFAULT_MAX_BODY_BYTES, 1, "bytes")
    rate = _number_of(environment, RATE_LIMIT_VARIABLE, 0.0, 0, "requests a second; 0 is no limit")
    burst = _number_of(environment, RATE_BURST_VARIABLE, 0.0, 0, "requests; 0 is twice the limit")
    return Limits(int(body), rate, burst)


def _number_of(
    environment: Mapping[str, str], name: str, default: float, least: float, what: str
) -> float:
    given = environment.get(name)
    if not given:
        return default
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not least <= number <= _LARGEST:
        raise InputError(
            f"not a number from {least} to {_LARGEST:,}",
            where=name,
            value=given,
            remedy=f"Set it to {what}.",
        )
    return number


@dataclass(slots=True)
class RateLimiter:
    """Token buckets, one a caller: each request takes one, and they fill up steadily.

    Parameters
    ----------
    limits : Limits
    clock : callable
        Seconds that only grow.
    """

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def wait_seconds(self, caller: str) -> float:
        """Take one request of a caller's; return 0, or how long it has to wait for the next."""
        rate = self.limits.requests_per_second
        if not rate:
            return 0.0
        most = max(1.0, self.limits.burst or 2 * rate)
        now = self.clock()
        # Taken out and put in again, so that the first of the dict is the longest quiet one.
        tokens, at = self._buckets.pop(caller, (most, now))
        tokens = min(most, tokens + (now - at) * rate)
        admitted = tokens >= 1
        if len(self._buckets) >= _MOST_CALLERS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[caller] = (tokens - 1 if admitted else tokens, now)
        return 0.0 if admitted else (1 - tokens) / rate


def address_of(client: object) -> str:
    """Return who asks, by address: an IPv6 caller owns the whole of its /64.

    Parameters
    ----------
    client : (str, int), or None
        The caller, as ASGI knows it.
    """
    host = str(client[0]) if isinstance(client, tuple | list) and client else "local"
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return host
    mapped = address.ipv4_mapped
    return address.exploded[:19] if mapped is None else str(mapped)
