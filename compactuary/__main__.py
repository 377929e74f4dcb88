"""The command ``compactuary``: needs the standard library to start, an extra to do its work."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from compactuary import __version__
from compactuary.errors import MissingExtraError
from compactuary.interrupt import CODE, leave_at_once

__all__ = ["EXTRA_OF_COMMAND", "main"]

EXTRA_OF_COMMAND = {
    "import": "analysis",
    "table": "analysis",
    "split": "analysis",
    "drift": "analysis",
    "audit": "analysis",
    "backtest": "analysis",
    "report": "analysis",
    "learn": "analysis",
    "decide": "analysis",
    "thresholds": "analysis",
    "decisions": "analysis",
    "export": "analysis",
    "prompt": "analysis",
    "sweep": "langgraph",
    "lab": "lab",
    "prices": "analysis",
    "db": "analysis",
    "keys": "analysis",
    "prune": "analysis",
    "backup": "analysis",
    "restore": "analysis",
    "serve": "server",
}
"""The extra of the wheel that brings each command's packages."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``compactuary``. Default: those this process was started with.

    Returns
    -------
    int
        The exit code: 0 done, 1 the ledger refused, 2 wrong words or a missing extra, 130 stopped
        by Ctrl-C.

    Raises
    ------
    ModuleNotFoundError
        A module inside an installed package is missing: a damaged install, not a missing extra.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        # This process is the command's own.
        leave_at_once()
    try:
        return _run(words)
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return CODE


def _run(words: Sequence[str]) -> int:
    if words == ["--version"]:
        sys.stdout.write(f"compactuary {__version__}\n")
        return 0
    try:
        from cli.app import run  # noqa: PLC0415 - --version and the advice below go without it

        return run(words)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        # A top-level package that can be found is installed: what is missing is a part of it.
        if not missing or find_spec(missing):
            raise
        return explain_missing(words, missing)


def explain_missing(words: Sequence[str], missing: str) -> int:
    """Say which extra brings the packages that a command needs.

    Parameters
    ----------
    words : sequence of str
        The words after ``compactuary``; without a command among them, every command is listed.
    missing : str
        The top-level package that could not be imported.

    Returns
    -------
    int
        0 where only help was asked for, else 2.
    """
    command = next((word for word in words if word in EXTRA_OF_COMMAND), None)
    if command is None:
        only_options = all(word.startswith("-") for word in words)
        (sys.stdout if only_options else sys.stderr).write(overview())
        return 0 if only_options else 2
    extra = EXTRA_OF_COMMAND[command]
    error = MissingExtraError(
        f"compactuary {command} needs packages that the extra '{extra}' brings "
        f"({missing} is missing)",
        remedy=f'Install them with: pip install "compactuary[{extra}]"',
    )
    sys.stderr.write(f"{error}\n")
    return 2


def overview() -> str:
    """List the commands for an installation that can't run them yet.

    Returns
    -------
    str
        Lines of text, the last one ended.
    """
    rows = (f"  {name:<10} {extra}" for name, extra in EXTRA_OF_COMMAND.items())
    head = "usage: compactuary COMMAND [OPTIONS]\n\ncommand and the extra that it needs:"
    tail = 'Install an extra with: pip install "compactuary[EXTRA]"'
    return "\n".join([head, *rows, "", tail, ""])


if __name__ == "__main__":
    raise SystemExit(main())
