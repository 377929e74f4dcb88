"""The entrance: every request's key, rate and size are looked at here, and its answer counted."""

import logging
import math
import time
from contextlib import nullcontext

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import Denial, admit, bearer_token, is_public, is_remote, path_of
from api.limits import address_of
from api.problems import RefusedError, refusal
from api.service import Service
from ledger.keys import Key

__all__ = ["REFUSALS", "Entrance"]

#: Status and meaning of what the entrance itself answers.
REFUSALS = (
    ("401", "A key is needed, and none came, or a wrong, expired or revoked one."),
    ("403", "The key lacks the scope."),
    ("413", "The body is too large."),
    ("429", "More requests came from this caller than it may send; see Retry-After."),
    ("503", "The ledger can't be used now."),
)

_LOGGER = logging.getLogger(__name__)
#: What a request counts as that its caller gave up before it was answered.
_GIVEN_UP = 499
#: Digits of a length that is a number of bytes and not an attack.
_LONGEST_LENGTH = 15
_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})


class Entrance:
    """An ASGI middleware of its own: Starlette's base class would cost more than the decision.

    Parameters
    ----------
    app : ASGI app
        What answers the requests that are let in; ``scope["app"].state.service`` is its service.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or refuse it, and count what it got."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        service: Service = scope["app"].state.service
        began = time.perf_counter()
        status = _GIVEN_UP

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        traces = service.traces
        with nullcontext() if traces is None else traces.request(scope) as span:
            try:
                await self._serve(service, scope, receive, counted)
            except Exception:
                status = 500
                raise
            finally:
                route = _route_of(scope)
                method = scope["method"] if scope["method"] in _METHODS else "other"
                service.counts.answered(method, route, status, time.perf_counter() - began)
                if traces is not None:
                    traces.answered(span, method, route, status)

    async def _serve(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        path = path_of(scope)
        if is_public(path):
            await self._app(scope, receive, send)
            return
        authorization = length = host = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"content-length":
                length = value
            elif name == b"host":
                host = value
        try:
            _admitted(service, scope, path, authorization, remote=is_remote(scope, host))
            receive = _measured(service, receive, length)
        except RefusedError as refused:
            await refusal(refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _admitted(
    service: Service, scope: Scope, path: str, authorization: bytes | None, *, remote: bool
) -> None:
    """Refuse a request that comes too fast, or without the key that it needs."""
    found = admit(
        service.keyring.state,
        bearer_token(authorization),
        scope["method"],
        path,
        time.time_ns() // 1_000_000,
        remote=remote,
    )
    limiter = service.limiter
    if limiter.limits.requests_per_second:
        caller = found.key_id if isinstance(found, Key) else address_of(scope.get("client"))
        wait = limiter.wait_seconds(caller)
        if wait:
            service.counts.rate_limited += 1
            raise _too_fast(wait, limiter.limits.requests_per_second)
    if isinstance(found, Denial):
        service.counts.denied[found.denied] += 1
        _LOGGER.info("a request was refused", extra={"denied": found.denied, "route": path[:80]})
        challenge = {"www-authenticate": found.challenge} if found.challenge else {}
        raise RefusedError(
            found.status,
            f"key-{found.denied}",
            found.title,
            found.problem,
            found.remedy,
            **challenge,
        )


def _too_fast(wait_seconds: float, per_second: float) -> RefusedError:
    wait = math.ceil(wait_seconds)
    return RefusedError(
        429,
        "too-many-requests",
        "Too many requests",
        f"more than {per_second:g} requests a second came from this caller",
        f"Ask again in {wait} s.",
        **{"retry-after": str(wait)},
    )


def _measured(service: Service, receive: Receive, length: bytes | None) -> Receive:
    """Refuse a body that is too large: at once if it says so itself, else where it gets there."""
    most = service.limiter.limits.max_body_bytes
    if length is not None and length.isdigit():
        # The server sees to it that no more comes than was said.
        if len(length) > _LONGEST_LENGTH or int(length) > most:
            service.counts.too_large += 1
            raise _too_large(most)
        return receive
    received = 0

    async def measured() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > most:
            service.counts.too_large += 1
            raise _too_large(most)
        return message

    return measured


def _too_large(most: int) -> RefusedError:
    return RefusedError(
        413,
        "too-large",
        "The body is too large",
        f"the body is larger than {most:,} bytes",
        "Send less at once.",
    )


def _route_of(scope: Scope) -> str:
    """Return the template of the route that was taken, so that names in paths are not counted."""
    route = scope.get("route")
    template = getattr(route, "path", None)
    return template if isinstance(template, str) else "none"
