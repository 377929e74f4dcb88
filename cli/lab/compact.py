"""The lab's ``/compact``: a strategy at work, and before and after where that is wanted."""

from collections.abc import Iterator, Sequence
from typing import Any

from cli.lab.session import Reply, Session
from cli.lab.strategies import forces, full_line, made
from cli.lab.text import headline, in_context, on_screen
from compactuary.errors import CompactuaryError
from ledger.usage import Usage
from strategies.conversation import Conversation
from strategies.extract import extract
from strategies.result import Result

__all__ = ["compact"]

#: Runs of untouched messages longer than this are counted, not listed.
_LISTED = 3


def compact(session: Session, told: str) -> tuple[Session, Reply]:
    """Let a strategy work on the conversation; thresholds do not hold it back.

    Raises
    ------
    CompactuaryError
        The summary call failed or brought nothing to use, or the transcript can't be written.
    """
    line = full_line(session, told)
    strategy = made(session, line)
    situation = session.situation(force=forces(line))
    before = session.conversation
    result = strategy.compact(before, situation)
    _check_done(strategy.name, result)
    after = session.with_result(line, result)
    lines = [f"{strategy.name}: {on_screen(result.reason)}"]
    if result.usage is not None:
        lines.append(_told_usage(result.usage))
    if result.summarised and session.bench.summarizer.model is extract:
        lines.append("the summary was made without a model; --summarizer names one")
    if result.changed:
        lines.append(_sizes(session, after))
        lines += _before_and_after(before, after, result) if session.verbose else []
    return after, Reply(lines, _data(session, after, line, result))


def _check_done(name: str, result: Result) -> None:
    if not result.failed:
        return
    paid = "" if result.usage is None else f"; {_told_usage(result.usage)}"
    remedy = "The conversation is as it was."
    raise CompactuaryError(f"{result.reason.rstrip('.')}{paid}", where=name, remedy=remedy)


def _told_usage(usage: Usage) -> str:
    return f"the call read {usage.context_tokens:,} tokens and wrote {usage.output:,}"


def _sizes(before: Session, after: Session) -> str:
    old, new = before.context_tokens, after.context_tokens
    share = f" ({(new - old) / old:+.0%})" if old else ""
    messages = f"{in_context(before.conversation):,} → {in_context(after.conversation):,} messages"
    return f"{messages}, {old:,} → {new:,} tokens{share}"


def _data(before: Session, after: Session, line: str, result: Result) -> dict[str, Any]:
    return {
        "strategy": line,
        "changed": result.changed,
        "reason": on_screen(result.reason),
        "messages": in_context(before.conversation),
        "messages_after": in_context(after.conversation),
        "context_tokens": before.context_tokens,
        "context_after_tokens": after.context_tokens,
        "dropped": list(result.dropped),
        "summarised": list(result.summarised),
        "rewritten": list(result.rewritten),
    }


def _before_and_after(before: Conversation, after: Session, result: Result) -> Iterator[str]:
    marks = dict.fromkeys(result.dropped, "-") | dict.fromkeys(result.summarised, "s")
    marks |= dict.fromkeys(result.rewritten, "~")
    yield "before (- dropped, s in the summary, ~ shortened):"
    yield from _marked(before, [marks.get(k, " ") for k in range(len(before.messages))])
    old = {id(message.raw) for message in before.messages}
    now = after.conversation
    yield "after (+ new or shortened):"
    yield from _marked(now, [" " if id(each.raw) in old else "+" for each in now.messages])


def _marked(conversation: Conversation, marks: Sequence[str]) -> Iterator[str]:
    calls = conversation.calls()
    spoken = [k for k, each in enumerate(conversation.messages) if each.role != "other"]
    kept: list[str] = []
    for k in spoken:
        message = conversation.messages[k]
        line = f"  {marks[k]} {k:>4} {message.role:<9} {headline(message, calls)}"
        if marks[k] == " ":
            kept.append(line)
            continue
        yield from _run(kept)
        kept = []
        yield line
    yield from _run(kept)


def _run(kept: list[str]) -> Iterator[str]:
    yield from kept if len(kept) <= _LISTED else [f"         … {len(kept):,} untouched"]
