"""The command line: commands by name, each imported when it is asked for."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, cast

import typer

from cli.argument_names import capital_arguments
from cli.output import say
from cli.stopped import Stopped
from cli.wrong_words import told_wrong_words
from compactuary.errors import CompactuaryError, InputError, MissingExtraError
from compactuary.interrupt import CODE, leave_at_once, raise_as_usual
from compactuary.version import VERSION

__all__ = ["COMMANDS", "make_app", "run"]

#: Module beside this one and function of each command, in the order in which help lists them.
COMMANDS: dict[str, tuple[str, str]] = {
    "import": ("import_command", "import_command"),
    "table": ("table", "table_command"),
    "split": ("split", "split_command"),
    "drift": ("drift", "drift_command"),
    "audit": ("audit", "audit_command"),
    "backtest": ("backtest", "backtest_command"),
    "report": ("report_command", "report_command"),
    "learn": ("learn", "learn_command"),
    "decide": ("decide", "decide_command"),
    "lab": ("lab.command", "lab_command"),
    "thresholds": ("thresholds", "thresholds_command"),
    "decisions": ("decisions", "decisions_command"),
    "serve": ("serve", "serve_command"),
    "keys": ("keys", "keys_app"),
    "export": ("export", "export_command"),
    "prune": ("prune", "prune_command"),
    "backup": ("backup", "backup_command"),
    "restore": ("backup", "restore_command"),
    "prompt": ("prompt", "prompt_app"),
    "sweep": ("sweep", "sweep_command"),
    "prices": ("prices", "prices_command"),
    "db": ("db", "db_app"),
}

#: What the list of commands says of those whose first sentence is too long for a line of it.
_IN_SHORT = {
    "split": "Test whether parts of a role deserve tables of their own.",
    "audit": "Judge whether past compactions paid.",
    "backtest": "Show what other rules would have cost on past sessions.",
    "report": "Tell it all in a form that may be shared.",
    "learn": "Show what the ledger teaches: sizes, growth, pauses.",
    "lab": "Try compactions on a conversation, and compare them.",
    "thresholds": "Show from which context a rule compacts.",
    "decisions": "Hold logged decisions against what turns then did.",
    "prune": "Delete turns that closed before a time.",
    "restore": "Put a copy in the place of an SQLite ledger.",
    "sweep": "Run an experiment: what each way of compacting loses.",
    "prices": "Show a model's weights, dollars and cache.",
}


def make_app(only: str | None = None) -> typer.Typer:
    """Make the application with every command, or with one alone, so that it starts fast."""
    app = typer.Typer(
        help="Tells an LLM agent, before each request, whether compacting its context will pay.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_main)
    for name in COMMANDS if only is None else (only,):
        module, attribute = COMMANDS[name]
        # Derived from this module's own name, which is another one once installed.
        found = getattr(import_module(f"{__package__}.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name, short_help=_IN_SHORT.get(name))(found)
    return app


def run(words: Sequence[str]) -> int:
    """Run one command line and return its exit code.

    Parameters
    ----------
    words : sequence of str
        The words after ``compactuary``.

    Returns
    -------
    int
        0 done; 1 some files were refused, or the ledger refused; 2 a value was wrong; 130 stopped
        by Ctrl-C.
    """
    only = words[0] if words and words[0] in COMMANDS else None
    command: Callable[..., object] = typer.main.get_command(make_app(only))
    capital_arguments(command)
    # Packages are loaded; from here on there is something to put away.
    own_process = raise_as_usual()
    try:
        code = _run(command, words)
    except (KeyboardInterrupt, Stopped) as stop:
        say(f"stopped: {stop}" if str(stop) else "stopped")
        code = CODE
    if own_process:
        leave_at_once()
    return code


def _run(command: Callable[..., object], words: Sequence[str]) -> int:
    try:
        code = command(args=list(words), prog_name="compactuary", standalone_mode=False)
        sys.stdout.flush()
    except _USAGE_ERROR as error:
        return _wrong_words(error, words)
    except CompactuaryError as error:
        say(f"error: {error}")
        return 2 if isinstance(error, InputError | MissingExtraError) else 1
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter's last flush must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UnicodeEncodeError as error:
        wrong = ascii(error.object[error.start : error.end])
        say(f"error: {error.encoding} can't hold {wrong}. Rename the file, or print UTF-8.")
        return 1
    except OSError as error:
        say(
            f"error: {error.filename or 'output'}: {error.strerror}. Check the disk and the rights."
        )
        return 1
    if code == CODE:
        # What the option parser makes of Ctrl-C.
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


#: Typer keeps a copy of click whose names are private; its base of wrong words is this one's.
_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__bases__[0])


def _wrong_words(error: Any, words: Sequence[str]) -> int:
    """Tell in one line what was wrong about the words, or show the help that they ask for."""
    text = error.format_message()
    if "\n" in text:
        say(text)  # no words at all: the message is the help
        return 2
    command = words[0] if words and words[0] in COMMANDS else ""
    say(f"error: {told_wrong_words(error, words, command)}")
    return 2


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"compactuary {VERSION}\n")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Tells an LLM agent, before each request, whether compacting its context will pay."""
