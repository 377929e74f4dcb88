"""The lab's prompt: prompt_toolkit with history and completion."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from platformdirs import user_state_path

from cli.lab.completion import completions
from compactuary.errors import MissingExtraError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

__all__ = ["PROMPT", "history_file", "lines_typed", "prompt_session"]

PROMPT = "lab> "


def history_file() -> Path | None:
    """Return the file that keeps what was typed, readable by its owner alone; None without one."""
    path = user_state_path("compactuary", appauthor=False) / "lab_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return None
    return path


def prompt_session(history: Path | None, **terminal: Any) -> "PromptSession[str]":
    """Return a prompt with history and completion.

    Parameters
    ----------
    history : Path or None
        Where lines are kept; None keeps them while the lab is open.
    terminal
        Input and output of one's own, as prompt_toolkit takes them.

    Raises
    ------
    MissingExtraError
        prompt_toolkit is not installed.
    """
    try:
        from prompt_toolkit import PromptSession  # noqa: PLC0415 - an extra
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion  # noqa: PLC0415
        from prompt_toolkit.document import Document  # noqa: PLC0415
        from prompt_toolkit.history import FileHistory, InMemoryHistory  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"a prompt needs packages that the extra 'lab' brings ({error.name} is missing)",
            remedy='Install them with: pip install "compactuary[lab]", or give --command',
        ) from error

    class _Words(Completer):
        def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
            del event
            line = document.text_before_cursor
            last = line.split(" ")[-1]
            for word, told in completions(line):
                yield Completion(word, start_position=-len(last), display_meta=told)

    kept = InMemoryHistory() if history is None else FileHistory(str(history))
    return PromptSession(PROMPT, history=kept, completer=_Words(), **terminal)


def lines_typed(prompt: Callable[[], str]) -> Iterator[str]:
    """Yield the lines that a person types, until the end of input; an interrupt drops one line."""
    while True:
        try:
            yield prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
