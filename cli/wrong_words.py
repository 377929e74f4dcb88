"""What was wrong about the words of a command, in one line that names the value."""

from collections.abc import Sequence
from typing import Any

__all__ = ["told_wrong_words"]

#: The option parser's words for a wrong value, where plainer ones are known.
_PLAINER = {
    "Input should be a valid integer, unable to parse string as an integer": "not a whole number",
    "Input should be a valid number, unable to parse string as a number": "not a number",
    "Input should be greater than or equal to ": "it is at least ",
    "Input should be less than or equal to ": "it is at most ",
    "Value error, ": "",
}


def told_wrong_words(error: Any, words: Sequence[str], command: str) -> str:
    """Say what was wrong, with the value and where to look.

    Parameters
    ----------
    error : Exception
        A usage error of the option parser.
    words : sequence of str
        The words after ``compactuary``.
    command : str
        The command among them, ``''`` for none.

    Returns
    -------
    str
        One line, such as ``--seed: it is at least 0 (got '-1'). See: compactuary sweep --help``.
    """
    text = error.format_message().rstrip(".")
    for theirs, ours in _PLAINER.items():
        text = text.replace(theirs, ours)
    value = _value(error, words)
    if value is not None and repr(value) not in text:
        text += f" (got {value!r})"
    # Errors of the parser proper don't know the command that they were about.
    path = error.ctx.command_path if error.ctx else f"compactuary {command}".rstrip()
    return f"{text}{'' if text.endswith('?') else '.'} See: {path} --help"


def _value(error: Any, words: Sequence[str]) -> str | None:
    """Return the last value that was given to the option in question; None where it has none."""
    param = getattr(error, "param", None)
    names = list(param.opts) if param is not None else [getattr(error, "param_hint", None)]
    given = None
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word in names and place + 1 < len(words):
            given = words[place + 1]
        elif equals and name in names:
            given = value
    return given
