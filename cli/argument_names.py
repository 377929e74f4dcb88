"""Arguments in usage lines and lists: capitals, in square brackets where they may be left out."""

from typing import Any

__all__ = ["capital_arguments"]


def capital_arguments(command: Any) -> None:
    """Name the arguments of a command, and of those below it, in one way.

    Parameters
    ----------
    command : Command
        Of the option parser, whose own braces read as a place to fill in, and whose names are
        the functions' own.
    """
    for below in getattr(command, "commands", {}).values():
        capital_arguments(below)
    for param in command.params:
        if param.param_type_name == "argument":
            several = param.nargs != 1
            name = (param.metavar or param.name).strip("[].").upper()
            # One word stands for each of several values.
            param.metavar = name.removesuffix("S") if several else name
            param.get_usage_pieces = _usage(param.metavar, several=several, required=param.required)


def _usage(name: str, *, several: bool, required: bool) -> Any:
    told = (name if required else f"[{name}]") + "..." * several
    return lambda _context: [told]
