"""What the text of a user line says: a prompt, an interruption, or how a background task went."""

import re
from typing import NamedTuple

from ledger.readers.fields import count

__all__ = ["TaskNotification", "interrupts", "is_prompt", "notification_in", "trigger_of"]

_INTERRUPTED = "[Request interrupted by user"
_NO_PROMPT = (
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
)
_TASK_ID = re.compile(r"<task-id>([^<]+)</task-id>")
_TASK_STATUS = re.compile(r"<status>([^<]+)</status>")
_TASK_CALLS = re.compile(r"<tool_uses>(\d+)</tool_uses>")


class TaskNotification(NamedTuple):
    """How a background task went: its id, which is a sub-agent's if it is one, and its calls."""

    task_id: str
    status: str
    tool_calls: int | None


def interrupts(words: str) -> bool:
    """Say whether the user interrupted the turn."""
    return words.startswith(_INTERRUPTED)


def is_prompt(words: str) -> bool:
    """Say whether the agent is prompted: shell lines and output of local commands prompt none."""
    return not words.startswith(_NO_PROMPT)


def trigger_of(words: str) -> str:
    """Return what a prompt comes from: ``task_notification``, ``slash`` or ``prompt``."""
    if words.startswith("<task-notification>"):
        return "task_notification"
    return "slash" if words.startswith(("<command-name>", "<command-message>")) else "prompt"


def notification_in(words: str) -> TaskNotification | None:
    """Return the notification a text holds, or None where it names no task or no status."""
    task, status = _TASK_ID.search(words), _TASK_STATUS.search(words)
    if not task or not status:
        return None
    calls = _TASK_CALLS.search(words)
    made = count(int(calls[1]), "task-notification.tool_uses") if calls else None
    return TaskNotification(task[1], status[1], made)
