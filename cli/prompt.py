"""``compactuary prompt``: what a summary prompt will lose."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.options import AsJson, Db
from cli.output import print_json
from compactuary.errors import SourceError
from strategies.preservation import NO_TOOL_CALLS, PromptCheck, check_prompt

__all__ = ["prompt_app"]

prompt_app = typer.Typer(help="Judge prompts that compact conversations.", no_args_is_help=True)


@prompt_app.callback()
def prompt_command() -> None:
    """Judge prompts that compact conversations."""


@prompt_app.command("check", short_help="Name what a summary made with a prompt will lose.")
def check_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A text file with the prompt.")],
    item: Annotated[
        list[str] | None,
        typer.Option("--item", help="What must survive besides; may be repeated."),
    ] = None,
    db: Db = None,  # noqa: ARG001 - accepted everywhere; a prompt needs no ledger
    as_json: AsJson = False,
) -> int:
    """Name what a summary made with this prompt will lose; exit code 1 where that is something."""
    checked = check_prompt(_read(file), own=item or ())
    if as_json:
        print_json(
            {
                "keeps": [kept.name for kept in checked.keeps],
                "loses": [{"name": lost.name, "then": lost.lost} for lost in checked.loses],
                "forbids_tool_calls": checked.forbids_tool_calls,
            }
        )
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _lines(checked)))
    return 0 if checked.is_sound else 1


def _read(file: Path) -> str:
    remedy = "Give a text file with the prompt."
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError("is not UTF-8", where=str(file), remedy=remedy) from error
    except OSError as error:
        raise SourceError(f"{error.strerror}", where=str(file), remedy=remedy) from error
    if not text.strip():
        raise SourceError("is empty", where=str(file), remedy=remedy)
    return text


def _lines(checked: PromptCheck) -> list[str]:
    lines = [f"keeps  {item.name}" for item in checked.keeps]
    lines += [f"loses  {item.name}: {item.lost}" for item in checked.loses]
    if not checked.forbids_tool_calls:
        lines.append(f"lacks  the line that forbids tool calls. Add: {NO_TOOL_CALLS}")
    return lines
