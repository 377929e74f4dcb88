"""One conversation with the model while it is written: requests, tool calls, cache, turns."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from examples.manifest import CompactionTruth, SessionTruth, Status, Tokens, Trigger, TurnTruth
from examples.transcript import Line, Prose, Transcript, provider_id
from examples.transcript_lines import (
    Style,
    assistant,
    hook_progress,
    prompt,
    tool_result,
    tool_use,
    usage,
)

__all__ = [
    "Conversation",
    "OpenTurn",
    "answer",
    "begin_turn",
    "close_turn",
    "request_tokens",
    "work",
]

_CACHE_SECONDS = 300
_TOOLS = ("Bash", "Read", "Read", "Edit", "Grep", "Glob", "Write")
_THINKS, _COMMENTS, _SHOWS_HOOK, _ANSWERED_AT_ONCE = 0.25, 0.3, 0.08, 0.2


@dataclass(slots=True)
class OpenTurn:
    """The turn in progress: what its :class:`TurnTruth` will say."""

    trigger: Trigger
    started_at: str
    tool_calls: int = 0
    compactions: int = 0
    requests: list[Tokens] = field(default_factory=list)


@dataclass(slots=True)
class Conversation:
    """A session's own conversation, or a sub-agent's.

    Parameters
    ----------
    transcript : Transcript
        Where its lines go.
    truth : SessionTruth
        Where closed turns and compactions are noted.
    style : Style
        The harness's version.
    rng : Random
        Source of chance.
    prose : Prose
        Source of text.
    body_chars : int
        Mean characters of a tool result.
    role, model : str
        Role and model of its turns.
    agent_id : str or None
        The sub-agent; None for the session's own conversation.
    growth_tokens : float
        Mean tokens of a tool result before the longest, twice that, are truncated.
    cached_tokens, pending_tokens : int
        Tokens that the provider has cached, and those that the next request adds to them.
    context_tokens : int, default 0
        Context of the last request.
    """

    transcript: Transcript
    truth: SessionTruth
    style: Style
    rng: Random
    prose: Prose
    body_chars: int
    role: str
    model: str
    agent_id: str | None
    growth_tokens: float
    cached_tokens: int
    pending_tokens: int
    turn: OpenTurn | None = None
    context_tokens: int = 0
    last_message_id: str = ""
    _last_request_ms: int | None = None
    _compacted: CompactionTruth | None = None

    @property
    def open_turn(self) -> OpenTurn:
        """The turn in progress; there must be one."""
        if self.turn is None:
            raise RuntimeError("the script of this session makes a request outside a turn")
        return self.turn

    def of_agent(self, transcript: Transcript, agent_id: str, role: str) -> "Conversation":
        """Return the fresh conversation of a sub-agent of this one."""
        return Conversation(
            transcript=transcript,
            truth=self.truth,
            style=self.style,
            rng=self.rng,
            prose=self.prose,
            body_chars=self.body_chars,
            role=role,
            model=self.style.agent_model,
            agent_id=agent_id,
            growth_tokens=self.growth_tokens,
            cached_tokens=0,
            pending_tokens=9_000,
        )

    def await_context_after(self, compaction: CompactionTruth) -> None:
        """Note a compaction as soon as the first request after it shows the new context."""
        self._compacted = compaction

    def note_compaction(self, context_after: int) -> None:
        """Note the compaction that waits for its context after, if one does."""
        if self._compacted is not None:
            self.truth.compactions.append(replace(self._compacted, context_after=context_after))
            self._compacted = None

    def cache_is_cold(self) -> bool:
        """Return whether the cache expired since the last request."""
        now = self.transcript.clock.now_ms
        then = now if self._last_request_ms is None else self._last_request_ms
        self._last_request_ms = now
        return now - then > 1000 * _CACHE_SECONDS


def request_tokens(talk: Conversation, output: int) -> Tokens:
    """Send everything: what is cached is read, what is new is written, and advance the cache."""
    read, write = talk.cached_tokens, talk.pending_tokens
    if talk.cache_is_cold():
        read, write = 0, read + write
    tokens = Tokens(talk.rng.randint(1, 4), read, write, output)
    talk.cached_tokens, talk.pending_tokens = read + write, output
    talk.context_tokens = tokens.context
    return tokens


def begin_turn(talk: Conversation, text: str, trigger: Trigger) -> None:
    """Write the prompt and open the turn."""
    blocks = trigger == "prompt" and talk.rng.random() < 0.2
    talk.turn = OpenTurn(trigger, talk.transcript.clock.iso())
    talk.transcript.add(prompt(text, blocks=blocks))
    talk.pending_tokens += 30 + len(text) // 4


def close_turn(talk: Conversation, status: Status) -> None:
    """Note the turn in the manifest; what the log shows of its end is the caller's to write."""
    turn = talk.open_turn
    talk.truth.turns.append(
        TurnTruth(
            session_id=talk.truth.session_id,
            agent_id=talk.agent_id,
            role=talk.role,
            model=talk.model,
            trigger=turn.trigger,
            status=status,
            started_at=turn.started_at,
            tool_calls=turn.tool_calls,
            requests=len(turn.requests),
            tokens=sum(turn.requests, Tokens()),
            compactions=turn.compactions,
        )
    )
    talk.turn = None


def answer(
    talk: Conversation, calls: list[Line], *, late: bool = False
) -> Iterator[tuple[Line, str]]:
    """Make a request and write its answer, one line a content block.

    Parameters
    ----------
    talk : Conversation
        With a turn in progress.
    calls : list of Line
        The tool calls asked for, as content blocks; none gives a final text.
    late : bool, default False
        Write the line of the last tool call after the line that follows it.

    Yields
    ------
    tuple of (Line, str)
        Each tool call and the id of its line, right after that line was written.
    """
    rng, style = talk.rng, talk.style
    talk.transcript.clock.tick(rng.uniform(2, 9))
    tokens = request_tokens(talk, output=4 + int(rng.lognormvariate(5.2, 0.8)))
    talk.open_turn.requests.append(tokens)
    talk.note_compaction(tokens.context)
    talk.last_message_id = provider_id("msg", rng)
    ids = (talk.last_message_id, provider_id("req", rng))
    started = tokens if style.new else replace(tokens, output=rng.randint(1, min(4, tokens.output)))
    blocks = [*_words(talk, silent=bool(calls)), *calls]
    for block in blocks:
        last = block is blocks[-1]
        counts = usage(tokens if last else started, style)
        line = assistant(block, counts, ids, style, talk.model, asks_tools=bool(calls))
        own = talk.transcript.add(line, late=late and last)
        if block["type"] == "tool_use":
            talk.open_turn.tool_calls += 1
            yield block, own
        talk.transcript.clock.tick(0 if late else rng.uniform(0.1, 1.5))


def work(talk: Conversation, calls: int, *, late: bool = False) -> None:
    """Make a request that asks for tools and write their results.

    Parameters
    ----------
    talk : Conversation
        With a turn in progress.
    calls : int
        Parallel tool calls, at least 1.
    late : bool, default False
        Write the last tool call after its result.
    """
    rng = talk.rng
    at_once = rng.random() < _ANSWERED_AT_ONCE
    waiting = []
    for call, source in answer(talk, [_call(talk) for _ in range(calls)], late=late):
        if late or at_once:
            _result(talk, call, source, hooks=not late)
        else:
            waiting.append((call, source))
    for call, source in waiting:
        _result(talk, call, source, hooks=True)


def _words(talk: Conversation, *, silent: bool) -> Iterator[Line]:
    rng = talk.rng
    if rng.random() < _THINKS:
        thought = talk.prose.text(rng, 300)
        yield {
            "type": "thinking",
            "thinking": thought,
            "signature": f"{rng.getrandbits(800):0200x}",
        }
    if not silent or rng.random() < _COMMENTS:
        yield {"type": "text", "text": talk.prose.text(rng, 200 if silent else 900)}


def _call(talk: Conversation) -> Line:
    rng = talk.rng
    name = rng.choice(_TOOLS)
    long = name in {"Edit", "Write"}
    text = talk.prose.text(rng, max(1, talk.body_chars // 2) if long else 80)
    return tool_use(provider_id("toolu", rng), name, {"text": text})


def _result(talk: Conversation, call: Line, source: str, *, hooks: bool) -> None:
    rng, call_id = talk.rng, str(call["id"])
    if hooks and not talk.style.new and rng.random() < _SHOWS_HOOK:
        talk.transcript.add(hook_progress("PostToolUse", str(call["name"]), call_id), parent=source)
    if hooks:
        talk.transcript.clock.tick(rng.lognormvariate(0, 1))
    body = talk.prose.text(rng, talk.body_chars)
    error = rng.random() < 0.04
    talk.transcript.add(tool_result(call_id, source, body, error=error), parent=source)
    # The harness truncates long results.
    talk.pending_tokens += 20 + int(talk.growth_tokens * min(2.0, rng.expovariate(1.0)))
