"""``compactuary lab``: try strategies out on one and the same conversation."""

import errno
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
import typer

from cli.lab.advice import asking
from cli.lab.commands import run_line
from cli.lab.file import open_conversation
from cli.lab.models import SummarizerName, summarizer_named
from cli.lab.prompt import PROMPT, history_file, lines_typed, prompt_session
from cli.lab.session import Bench, PriceLookup, Session, State, no_prices
from cli.lab.text import counted, on_screen
from cli.options import AsJson, Db
from cli.output import say
from cli.pricing import check_one_price
from cli.weights import Weights, weights_of
from compactuary.errors import CompactuaryError, InputError, MissingExtraError, SourceError
from policy.prices import GenaiPriceBook, Prices
from policy.weights import weights_from
from strategies.masking import check_masking
from strategies.summary import Summarizer

__all__ = ["lab_command"]

#: What a command may fail with; the session that was stands. The last two: half a character in a
#: text, and arguments of a call that are nested deeper than Python goes.
_FAILURES = (CompactuaryError, OSError, UnicodeError, RecursionError)
#: What to do about a file that can't be written, where neither disk nor rights are the matter.
_REMEDIES = {
    errno.ENOENT: "Name a folder that exists.",
    errno.ENOTDIR: "Name a folder that exists.",
    errno.ENAMETOOLONG: "Give a shorter name.",
}


def lab_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Messages as JSON, or a log of Claude Code or Codex."),
    ],
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", help="Run this instead of asking; may be repeated."),
    ] = None,
    script: Annotated[
        Path | None, typer.Option("--script", help="Run the lines of this file instead.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Whose prices to use. Default: whom the file names.")
    ] = None,
    provider: Annotated[str | None, typer.Option(help="Who bills for the model.")] = None,
    weight: Weights = None,
    summarizer: Annotated[
        SummarizerName,
        typer.Option(help="Who writes summaries; 'extract' asks no model."),
    ] = "extract",
    summary_model: Annotated[
        str | None, typer.Option(help="Which of its models. Default: that of --model.")
    ] = None,
    role: Annotated[str, typer.Option(help="The agent's role, for /decide.")] = "main",
    url: Annotated[
        str | None, typer.Option(help="Let /decide ask the service there, not the ledger.")
    ] = None,
    prefix_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Of system prompt and tools, where the file does not tell."),
    ] = None,
    wire_format: Annotated[
        str | None, typer.Option("--format", help="Of the messages. Default: told by them.")
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> int:
    """Open a conversation, and compact, quote, compare and undo as often as you like."""
    check_one_price(model, weight)
    _check_installed()
    lines = _given(command, script)
    opened = open_conversation(file, wire_format)
    for note in opened.notes:
        say(f"note: {note}")
    named = model or (None if weight else opened.model)
    weights = weights_of(weight)
    fields = {"model": named, "provider": provider, "weights": weights}
    prefix = opened.prefix_tokens if prefix_tokens is None else prefix_tokens
    writes, prices = (
        _summarizer(summarizer, summary_model, named),
        _prices(named, provider, weights),
    )
    with asking(url, db, fields) as ask:
        bench = Bench(writes, prices, ask, role, prefix, opened.body)
        session = Session(bench, (State(opened.conversation),))
        if lines is None and sys.stdin.isatty():
            return _typed(session, as_json)
        return _scripted(session, sys.stdin if lines is None else lines, as_json)


def _check_installed() -> None:
    """Name the lab's own extra, which brings its prompt too, not the one that masks secrets."""
    try:
        check_masking()
    except MissingExtraError as error:
        missing = getattr(error.__cause__, "name", None) or "detect_secrets"
        raise MissingExtraError(
            f"compactuary lab needs packages that the extra 'lab' brings ({missing} is missing)",
            remedy='Install them with: pip install "compactuary[lab]"',
        ) from error


def _given(command: list[str] | None, script: Path | None) -> list[str] | None:
    """Return the lines that the command line brings; None where it brings none."""
    if command and script is not None:
        raise InputError(
            "two scripts",
            where="--command, --script",
            value=str(script),
            remedy="Give one of them",
        )
    if script is None:
        return command
    try:
        return script.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        remedy = "Give a text file with one command a line."
        raise SourceError("is not UTF-8", where=str(script), remedy=remedy) from error
    except OSError as error:
        remedy = "Give a text file with one command a line."
        raise SourceError(f"{error.strerror}", where=str(script), remedy=remedy) from error


def _summarizer(name: SummarizerName, own: str | None, agents: str | None) -> Summarizer:
    """Return who writes summaries; a model of its own brings its own prices."""
    prices = None if own is None else _prices(own, None, None)(0)
    return summarizer_named(name, own or agents, prices)


def _prices(
    model: str | None, provider: str | None, weights: dict[str, float] | None
) -> PriceLookup:
    if weights is not None:
        return partial(_own, weights_from(weights))
    if model is None:
        return no_prices
    return partial(_listed, GenaiPriceBook(), model, provider)


def _own(prices: Prices, context_tokens: int) -> Prices:
    del context_tokens
    return prices


def _listed(book: GenaiPriceBook, model: str, provider: str | None, context_tokens: int) -> Prices:
    return book.prices(model, provider, at=datetime.now(UTC), context_tokens=context_tokens)


def _scripted(session: Session, lines: Iterable[str], as_json: bool) -> int:
    """Run lines up to the first that fails; comments and empty lines are passed over."""
    for line in (line.strip() for line in lines):
        if not line or line.startswith("#"):
            continue
        if not as_json:
            sys.stdout.write(f"{PROMPT}{line}\n")
        try:
            session, reply = run_line(session, line)
        except _FAILURES as error:
            _tell_failure(line, error, as_json)
            return 1
        if as_json:
            _print_line({"command": line, "ok": True, **reply.data})
        else:
            sys.stdout.writelines(f"{told}\n" for told in reply.lines)
        if session.ended:
            break
    return 0


def _tell_failure(line: str, error: Exception, as_json: bool) -> None:
    if as_json:
        _print_line({"command": line, "ok": False, "error": _told(error)})
    sys.stdout.flush()
    say(f"error: {_told(error)}")


def _print_line(value: dict[str, object]) -> None:
    sys.stdout.write(orjson.dumps(value).decode() + "\n")


def _told(error: Exception) -> str:
    if isinstance(error, OSError):
        remedy = _REMEDIES.get(error.errno or 0, "Check the disk and the rights.")
        return f"{error.filename or 'output'}: {error.strerror}. {remedy}"
    if isinstance(error, RecursionError):
        return "something is nested too deep to be shown. Look at other messages: /show N."
    return on_screen(str(error)).replace("\n", " ")


def _typed(session: Session, as_json: bool) -> int:
    if as_json:
        remedy = "Give --command or --script, or pipe commands in."
        raise InputError("needs a script", where="--json", remedy=remedy)
    prompt = prompt_session(history_file())
    sys.stdout.write(f"{_greeting(session)}\n")
    for line in lines_typed(prompt.prompt):
        if not line.strip():
            continue
        try:
            after, reply = run_line(session, line)
            sys.stdout.writelines(f"{told}\n" for told in reply.lines)
            # Only now: what an interrupted reply was about did not happen.
            session = after
        except _FAILURES as error:
            sys.stdout.write(f"error: {_told(error)}\n")
        except KeyboardInterrupt:
            sys.stdout.write("interrupted; the conversation is as it was\n")
        if session.ended:
            break
    return 0


def _greeting(session: Session) -> str:
    told, tokens = counted(session.conversation), session.context_tokens
    name = session.conversation.wire_format.name
    return f"{told} ({name}), {tokens:,} tokens. /help lists the commands."
