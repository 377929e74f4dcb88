"""The lab's commands: a line in, another session and a reply out."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from cli.lab.age import age_view
from cli.lab.compact import compact
from cli.lab.diff import diff
from cli.lab.quote import decide, quote
from cli.lab.session import Reply, Session
from cli.lab.show import save, show
from cli.lab.strategies import full_line, made
from cli.lab.text import counted, in_context
from compactuary.errors import InputError

__all__ = ["COMMANDS", "Command", "run_line"]

_Run = Callable[[Session, str], tuple[Session, Reply]]


class Command(NamedTuple):
    """A command of the lab.

    Parameters
    ----------
    usage : str
        How it is written.
    told : str
        What it does, in one line.
    run : callable
        Session and what stands behind the name → another session, and the reply.
    """

    usage: str
    told: str
    run: _Run


def run_line(session: Session, line: str) -> tuple[Session, Reply]:
    """Run one line.

    Raises
    ------
    CompactuaryError
        The line is no command, or the command failed; the session that came in still stands.
    OSError
        A file can't be written.
    """
    word, _, told = line.strip().partition(" ")
    command = COMMANDS.get(word)
    if command is None:
        near = difflib.get_close_matches(f"/{word.lstrip('/')}", COMMANDS, 1)
        remedy = f"Did you mean {near[0]}?" if near else "/help lists the commands."
        raise InputError("no such command", where="lab", value=word, remedy=remedy)
    return command.run(session, told.strip())


def _undo(session: Session, told: str) -> tuple[Session, Reply]:
    _alone("/undo", told)
    undone = session.now.strategy
    return _stepped(session.before(), f"undone: {undone}")


def _redo(session: Session, told: str) -> tuple[Session, Reply]:
    _alone("/redo", told)
    done = session.again()
    return _stepped(done, f"done again: {done.now.strategy}")


def _stepped(session: Session, told: str) -> tuple[Session, Reply]:
    count, tokens = in_context(session.conversation), session.context_tokens
    data = {"messages": count, "context_tokens": tokens, "steps": len(session.states) - 1}
    return session, Reply([f"{told}; {counted(session.conversation)}, {tokens:,} tokens"], data)


def _verbose(session: Session, told: str) -> tuple[Session, Reply]:
    switches = {"on": True, "off": False, "": not session.verbose}
    if told not in switches:
        remedy = "Write /verbose on or /verbose off."
        raise InputError("is neither on nor off", where="/verbose", value=told, remedy=remedy)
    verbose = switches[told]
    lines = [f"verbose is {'on' if verbose else 'off'}"]
    return replace(session, verbose=verbose), Reply(lines, {"verbose": verbose})


def _strategy(session: Session, told: str) -> tuple[Session, Reply]:
    line = full_line(session, told)
    made(session, line)
    lines = [f"the strategy is {line}"]
    return replace(session, strategy=line), Reply(lines, {"strategy": line})


def _help(session: Session, told: str) -> tuple[Session, Reply]:
    _alone("/help", told)
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"{command.usage:<{width}}  {command.told}" for command in COMMANDS.values()]
    return session, Reply(lines, {"commands": [each.usage for each in COMMANDS.values()]})


def _quit(session: Session, told: str) -> tuple[Session, Reply]:
    _alone("/quit", told)
    return replace(session, ended=True), Reply([])


def _alone(name: str, told: str) -> None:
    if told:
        raise InputError("takes nothing", where=name, value=told, remedy=f"Write {name} alone.")


COMMANDS: Mapping[str, Command] = {
    each.usage.split()[0]: each
    for each in (
        Command("/help", "list the commands", _help),
        Command("/show [N|A..B]", "list messages, or show message N whole", show),
        Command("/compact [STRATEGY]", "compact with a strategy, or with the one set", compact),
        Command("/strategy [STRATEGY]", "set the strategy, or say which one is set", _strategy),
        Command("/verbose [on|off]", "show every compaction before and after", _verbose),
        Command("/quote [STRATEGY]", "what it would cost: C, X′, p′, s, n*", quote),
        Command("/decide [STRATEGY]", "whether it pays now, by the ledger", decide),
        Command("/diff", "what the last compaction changed", diff),
        Command("/undo", "take the last compaction back", _undo),
        Command("/redo", "do again what was undone", _redo),
        Command("/age [ROUNDS] [SETTINGS]", "how micro ages the results of ten rounds", age_view),
        Command("/save FILE", "write the messages as they are", save),
        Command("/quit", "leave", _quit),
    )
}
