"""What may come next on the lab's line: commands, strategies, settings, files."""

from collections.abc import Iterator

from cli.lab.commands import COMMANDS
from cli.lab.file import path_named
from cli.lab.strategies import ALIASES, settings_of
from compactuary.errors import InputError
from strategies.registry import STRATEGIES

__all__ = ["completions"]

_OF_STRATEGIES = ("/compact", "/strategy", "/quote", "/decide")
#: Settings that no line can hold.
_NEVER = ("model", "now", "send", "notes")
_MOST_FILES = 100


def completions(line: str) -> Iterator[tuple[str, str]]:
    """Yield each word that may stand in the place of the line's last one, and what it is.

    Parameters
    ----------
    line : str
        What is left of the cursor.
    """
    words = line.split(" ")
    last, before = words[-1], [word for word in words[:-1] if word]
    for word, told in _candidates(before, last):
        if word.startswith(last):
            yield word, told


def _candidates(before: list[str], last: str) -> Iterator[tuple[str, str]]:
    if not before:
        yield from ((name, command.told) for name, command in COMMANDS.items())
    elif before[0] == "/verbose" and len(before) == 1:
        yield from (("on", ""), ("off", ""))
    elif before[0] == "/save" and len(before) == 1:
        yield from _files(last)
    elif before[0] == "/age":
        yield from _settings("micro", before)
    elif before[0] in _OF_STRATEGIES and len(before) == 1:
        yield from ((name, "") for name in STRATEGIES)
        yield from ((name, line) for name, line in ALIASES.items() if name not in STRATEGIES)
    elif before[0] in _OF_STRATEGIES:
        yield from _settings(ALIASES.get(before[1], before[1]).split()[0], before)


def _settings(name: str, before: list[str]) -> Iterator[tuple[str, str]]:
    if name not in STRATEGIES:
        return
    given = {word.partition("=")[0] for word in before}
    for setting, usual in settings_of(name).items():
        if setting not in _NEVER and setting not in given:
            yield f"{setting}=", "" if usual is None else f"default {_written(usual)}"


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _files(last: str) -> Iterator[tuple[str, str]]:
    folder, slash, _ = last.rpartition("/")
    try:
        inside = sorted(path_named(f"{folder}{slash}" or ".").iterdir())[:_MOST_FILES]
    except (OSError, InputError):
        return
    for path in inside:
        ending = "/" if path.is_dir() else ""
        yield f"{folder}{slash}{path.name}{ending}", "folder" if ending else "is there already"
