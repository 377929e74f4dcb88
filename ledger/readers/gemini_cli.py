"""Gemini CLI sessions: one document → ledger events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ledger.clock import milliseconds
from ledger.events import UNKNOWN_SUBAGENT, Event
from ledger.readers.fields import text, text_or_none
from ledger.readers.turn import MAIN, Turn, project_role
from ledger.usage import Usage
from ledger.usage_conventions import CONVENTIONS

__all__ = ["HARNESS", "gemini_cli_events", "is_session"]

HARNESS = "gemini-cli"
Message = Mapping[str, Any]


def is_session(value: object) -> bool:
    """Say whether a JSON object is a session as the Gemini CLI keeps it."""
    if not isinstance(value, dict):
        return False
    named = isinstance(value.get("sessionId"), str)
    told = "startTime" in value or "projectHash" in value
    return named and told and isinstance(value.get("messages"), list)


def gemini_cli_events(
    documents: Iterable[Mapping[str, Any]], _log: Path, *, role_by_project: bool = False
) -> Iterator[Event]:
    """Yield the events of sessions.

    Parameters
    ----------
    documents : iterable of mapping
        Sessions.
    role_by_project : bool, default False
        Prefix every role with ``unknown-project``: a session tells its folder's hash only.

    Raises
    ------
    InputError
        Naming the field, if a value is not what it must be.
    """
    for document in documents:
        session_id = text(document["sessionId"], "sessionId")
        role = UNKNOWN_SUBAGENT if document.get("kind") == "subagent" else MAIN
        role = project_role(role, None, by_project=role_by_project)
        messages = {message["id"]: message for message in document["messages"]}.values()
        for turn, answers in _turns(messages, session_id, role):
            yield from _turn_events(turn, answers)


def _turns(
    messages: Iterable[Message], session_id: str, role: str
) -> Iterator[tuple[Turn, Sequence[Message]]]:
    """Yield each turn with what came behind its prompt; the status is that of being left."""
    turn: Turn | None = None
    answers: list[Message] = []
    for message in messages:
        prompts = message["type"] == "user"
        if not prompts and (turn is not None or message["type"] != "gemini"):
            answers.append(message)
            continue
        if turn is not None:
            turn.reach("cut", "superseded", None)
            yield turn, answers
        turn_id = text(message["id"], "message.id")
        turn = Turn(
            turn_id=turn_id if prompts else f"{session_id}/from-{turn_id}",
            session_id=session_id,
            thread_id=session_id,
            source=HARNESS,
            role=role,
            at_ms=milliseconds(message.get("timestamp")),
            provider="google",
            trigger="prompt" if prompts else "unknown",
            from_its_start=prompts,
        )
        answers = [] if prompts else [message]
    if turn is not None:
        yield turn, answers


def _turn_events(turn: Turn, messages: Sequence[Message]) -> Iterator[Event]:
    left = (turn.status, turn.reason)
    for message in messages:
        kind = message["type"]
        at_ms = milliseconds(message.get("timestamp"))
        if kind == "error" and turn.told:
            turn.reach("cut", "api_error", at_ms)
        if kind != "gemini":
            continue
        turn.model = text_or_none(message.get("model"), "message.model") or turn.model
        if not turn.told:
            yield turn.started()
        tools = [_tool(call) for call in message.get("toolCalls") or ()]
        turn.calls += len(tools)
        usage = CONVENTIONS["gemini_cli"](message.get("tokens") or {})
        if usage != Usage():
            yield turn.request(text(message["id"], "message.id"), at_ms, usage, tuple(tools))
        else:
            turn.requests += 1  # its usage is not known, or not yet
        turn.reach(*_standing(message, left), at_ms)
    if turn.told:
        yield turn.reached(tool_calls=turn.calls)


def _standing(message: Message, left: tuple[str, str]) -> tuple[str, str]:
    """Return status and reason of a turn after a message, if it is the turn's last one."""
    calls = message.get("toolCalls") or ()
    if not calls:
        return "ended", "final_text"
    if any(call.get("status") == "cancelled" for call in calls):
        return "cut", "interrupted"
    return left


def _tool(call: Mapping[str, Any]) -> tuple[str, str]:
    name = text_or_none(call.get("name"), "toolCalls.name") or "unknown"
    return text(call["id"], "toolCalls.id"), name
