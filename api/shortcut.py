"""The shortcut: a usual question goes straight to its answer, past the framework's routing."""

import json
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.access import path_of
from api.decisions import ASKED, answer
from api.problems import RefusedError, refusal
from api.schemas import ShouldCompact
from api.service import Service
from compactuary.errors import CompactuaryError

__all__ = ["Shortcut"]

_JSON = b"application/json"


@dataclass(frozen=True, slots=True)
class _Taken:
    """The route that a request is counted under, as routing would have found it."""

    path: str = ASKED


_TAKEN = _Taken()


class Shortcut:
    """An ASGI middleware that answers `POST /should-compact` by the route's own model and function.

    To find the route and to solve its dependencies costs more than the decision. Whatever is not
    a valid question in plain JSON, or can't be answered, goes the general way as if it came first
    there, so every refusal is worded in one place.

    Parameters
    ----------
    app : ASGI app
        The general way.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not _is_usual(scope):
            await self._app(scope, receive, send)
            return
        service: Service = scope["app"].state.service
        scope["route"] = _TAKEN
        read: list[Message] = []
        try:
            question = ShouldCompact.model_validate(json.loads(await _body(receive, read)))
            response = await answer(question, service)
        except RefusedError as refused:
            # By the entrance, while it measured the body.
            await refusal(refused)(scope, receive, send)
            return
        except (ValueError, RecursionError, ClientDisconnect, CompactuaryError):
            await self._app(scope, _again(read, receive), send)
            return
        await response(scope, receive, send)


def _is_usual(scope: Scope) -> bool:
    if scope["method"] != "POST" or path_of(scope) != ASKED:
        return False
    return [value for name, value in scope["headers"] if name == b"content-type"] == [_JSON]


async def _body(receive: Receive, read: list[Message]) -> bytes:
    """Return a request's body, and keep the messages it came in."""
    while True:
        message = await receive()
        read.append(message)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        if not message.get("more_body", False):
            break
    return b"".join([message.get("body", b"") for message in read])


def _again(read: list[Message], receive: Receive) -> Receive:
    """Return what gives out messages again that were read, then those behind them."""
    left = iter(read)

    async def again() -> Message:
        for message in left:
            return message
        return await receive()

    return again
