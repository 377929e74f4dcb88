"""A turn as a context manager: it counts its calls, and tells the service how it ended."""

from types import TracebackType
from typing import Any, Protocol, Self

from compactuary.advice import Advice
from compactuary.records import calls_in, new_id

__all__ = ["AsyncTurn", "Recorder", "Turn"]

#: A compaction that left more of the context than this was of no use: the model, §5.
_USELESS_SHARE = 0.95


class Recorder(Protocol):
    """What a turn needs of a client: writes that never wait and never raise."""

    def start_turn(self, turn_id: str, role: str, session_id: str, **more: Any) -> None:
        """Record a turn that begins."""

    def record_request(
        self, turn_id: str, request_id: str, usage: Any, tool_calls: Any = (), **more: Any
    ) -> None:
        """Record a request."""

    def end_turn(self, turn_id: str, status: str = "ended", **more: Any) -> None:
        """Record a turn's end."""

    def record_compaction(self, session_id: str, context_before: int, **more: Any) -> None:
        """Record a compaction."""


class _Asking(Recorder, Protocol):
    def should_compact(
        self,
        role: str,
        calls: int,
        context_tokens: int | None,
        model: str | None,
        **fields: Any,
    ) -> Advice: ...


class _AsyncAsking(Recorder, Protocol):
    async def should_compact(
        self,
        role: str,
        calls: int,
        context_tokens: int | None,
        model: str | None,
        **fields: Any,
    ) -> Advice: ...


class _Turn:
    """What sync and async turns share: the counts, and the records.

    Attributes
    ----------
    turn_id, role, session_id : str
    model : str or None
    calls, requests : int
        Made so far; calls that were made before observation began are in `calls`.
    useless_compactions : int
        In a row, up to now, that shrank the context by less than 5%.
    """

    def __init__(
        self,
        recorder: Recorder,
        role: str,
        session_id: str | None,
        turn_id: str | None,
        started: dict[str, Any],
        question: dict[str, Any],
    ) -> None:
        self._recorder = recorder
        self.role = role
        self.turn_id = turn_id or new_id()
        self.session_id = session_id or self.turn_id
        self.model: str | None = started.get("model")
        self.calls = _whole(started.get("entry_calls"))
        self.requests = 0
        self.useless_compactions = 0
        self._started, self._question = started, question
        self._seen: set[str] = set()

    def request(
        self, request_id: str | None, usage: Any, tool_calls: Any = (), **more: Any
    ) -> None:
        """Record a request and count its tool calls; one that was recorded before counts once.

        Parameters
        ----------
        request_id : str or None
            The provider's message id; None makes one up.
        usage : mapping or object
            The provider's usage object as it came.
        tool_calls : int, or list of mappings or pairs
            How many the answer asked for, or each one's id and name.
        more
            ``model``, ``convention``, ``at``.
        """
        request_id = request_id or new_id()
        tool_calls, number = _counted(tool_calls)
        if str(request_id) not in self._seen and more.get("kind", "agent") == "agent":
            self._seen.add(str(request_id))
            self.requests += 1
            self.calls += number
        self._recorder.record_request(self.turn_id, request_id, usage, tool_calls, **more)

    def compacted(self, context_before: int, context_after: int | None = None, **more: Any) -> None:
        """Record that the context was compacted, and whether that was of use.

        Parameters
        ----------
        context_before, context_after : int
            In tokens.
        more
            ``strategy``, ``trigger``, ``compaction_id``, ``at``.
        """
        places = {"calls_before": self.calls, "requests_before": self.requests}
        named = {"turn_id": self.turn_id, "context_after": context_after}
        self._recorder.record_compaction(self.session_id, context_before, **(named | places | more))
        if isinstance(context_before, int) and isinstance(context_after, int):
            useless = context_after > _USELESS_SHARE * context_before
            self.useless_compactions = self.useless_compactions + 1 if useless else 0

    def _begin(self) -> None:
        self._recorder.start_turn(self.turn_id, self.role, self.session_id, **self._started)

    def _end(self, error: type[BaseException] | None) -> None:
        status, reason = ("ended", None) if error is None else ("cut", error.__name__)
        # In all: right also where requests were dropped from a full queue.
        self._recorder.end_turn(self.turn_id, status, reason=reason, tool_calls=self.calls)

    def _asked(self, context_tokens: int | None, fields: dict[str, Any]) -> dict[str, Any]:
        """Return what a question about this turn's next request says."""
        told = self._question | fields
        in_requests = told.get("unit") == "requests"
        return {
            "role": self.role,
            "calls": self.requests if in_requests else self.calls,
            "context_tokens": context_tokens,
            "model": self.model,
            "turn_id": self.turn_id,
            "session_id": self.session_id,
            "useless_compactions": self.useless_compactions,
        } | told


class Turn(_Turn):
    """A turn of a `Client`: ``with client.turn(role, session_id) as turn``.

    It is started where the block begins; ended where the block does, ``cut`` where an exception
    leaves it, with the exception's name as the reason.
    """

    _recorder: _Asking

    def should_compact(self, context_tokens: int | None = None, **fields: Any) -> Advice:
        """Ask before this turn's next request; role, calls and names are known. Never raises."""
        return self._recorder.should_compact(**self._asked(context_tokens, fields))

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(kind)


class AsyncTurn(_Turn):
    """A turn of an `AsyncClient`: ``async with client.turn(role, session_id) as turn``."""

    _recorder: _AsyncAsking

    async def should_compact(self, context_tokens: int | None = None, **fields: Any) -> Advice:
        """Ask before this turn's next request; role, calls and names are known. Never raises."""
        return await self._recorder.should_compact(**self._asked(context_tokens, fields))

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(kind)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _counted(tool_calls: Any) -> tuple[Any, int]:
    """Return tool calls as a record takes them, and how many they are."""
    try:
        told = calls_in(tool_calls)
    except Exception:  # noqa: BLE001 - whatever a caller gives; the record of it is refused
        return tool_calls, 0
    return told, max(0, told) if isinstance(told, int) else len(told)
