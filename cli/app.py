"""The command line: commands by name, each imported when it is asked for."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated

import typer

from compactuary.errors import CompactuaryError, InputError, MissingExtraError
from compactuary.version import VERSION

__all__ = ["COMMANDS", "make_app", "run"]

#: Module beside this one and function of each command, in the order in which help lists them.
COMMANDS: dict[str, tuple[str, str]] = {
    "import": ("import_command", "import_command"),
    "table": ("table", "table_command"),
    "decide": ("decide", "decide_command"),
    "serve": ("serve", "serve_command"),
    "export": ("export", "export_command"),
    "prices": ("prices", "prices_command"),
    "db": ("db", "db_app"),
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
            app.command(name)(found)
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
        0 done; 1 some files were refused, or the ledger refused; 2 a value was wrong.
    """
    only = words[0] if words and words[0] in COMMANDS else None
    command: Callable[..., object] = typer.main.get_command(make_app(only))
    try:
        command(args=list(words), prog_name="compactuary")
    except SystemExit as stopped:
        return stopped.code if isinstance(stopped.code, int) else 1
    except CompactuaryError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2 if isinstance(error, InputError | MissingExtraError) else 1
    return 0


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
