"""OpenTelemetry spans of generative AI, as OTLP JSON: traces → ledger events.

A turn is the run of an agent (``invoke_agent``); where no agent has a span, it is the outermost
span that is known. Requests are the spans of model calls inside it, and tool calls those of
``execute_tool``.

References
----------
OpenTelemetry semantic conventions for generative AI, spans of agents, models and tools.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from compactuary.errors import InputError
from ledger.events import Event, thread_of
from ledger.readers.fields import text
from ledger.readers.otlp import Span, spans_of
from ledger.readers.turn import Turn, project_role
from ledger.usage import Usage
from ledger.usage_conventions import CONVENTIONS

__all__ = ["HARNESS", "otel_events"]

HARNESS = "otel"
_OPERATION = "gen_ai.operation.name"
_REQUESTS = frozenset(["chat", "generate_content", "text_completion"])
_AGENT, _TOOL = "invoke_agent", "execute_tool"
_INPUTS = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_ASKING = frozenset(["tool_call", "tool_calls", "tool_use", "function_call"])
_MODEL = ("gen_ai.response.model", "gen_ai.request.model")
_ROLE = ("gen_ai.agent.name", "gen_ai.agent.id")
Key = tuple[str, str]


def otel_events(
    documents: Iterable[Mapping[str, Any]], _log: Path, *, role_by_project: bool = False
) -> Iterator[Event]:
    """Yield the events of traces.

    Parameters
    ----------
    documents : iterable of mapping
        Exports; the spans of a trace may be spread over several.
    role_by_project : bool, default False
        Prefix every role with the name of the service.

    Raises
    ------
    InputError
        Naming the field, if a value is not what it must be.
    """
    traces = _Traces(role_by_project)
    for document in documents:
        for span in spans_of(document):
            traces.take(span)
    yield from traces.events()


@dataclass(slots=True)
class _Run:
    """The spans of a turn; the one that is the turn is None where only its id is known."""

    turn_id: str
    span: Span | None
    requests: list[Span] = field(default_factory=list)
    tools: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class _Traces:
    """All spans of a file, and what they make."""

    by_project: bool
    spans: dict[Key, Span] = field(default_factory=dict)
    usages: dict[Key, Usage] = field(default_factory=dict)
    #: Whether a request has read more from the cache than its input: the input excludes it.
    uncached: bool = False

    def take(self, span: Span) -> None:
        """Keep a span, and read the usage of a request."""
        self.spans[span.trace_id, span.span_id] = span
        if _operation(span) not in _REQUESTS or not _tells_usage(span):
            return
        convention = "otel_uncached" if self.uncached else "otel"
        try:
            usage = CONVENTIONS[convention](span.attributes)
        except InputError:
            if self.uncached:
                raise
            usage = CONVENTIONS["otel_uncached"](span.attributes)
            self._include_no_cache()
        self.usages[span.trace_id, span.span_id] = usage

    def _include_no_cache(self) -> None:
        """Read what has been read already as an instrumentation counts that excludes the cache."""
        self.uncached = True
        for key in self.usages:
            self.usages[key] = CONVENTIONS["otel_uncached"](self.spans[key].attributes)

    def events(self) -> Iterator[Event]:
        """Yield what each turn tells, parents before their sub-agents."""
        runs = self._runs()
        sessions: dict[str, str] = {}
        for run in sorted(runs.values(), key=lambda run: (_start(run), run.turn_id)):
            yield from self._run_events(run, sessions)

    def _runs(self) -> dict[str, _Run]:
        runs: dict[str, _Run] = {}
        doubled = self._doubled()
        for key, span in self.spans.items():
            operation = _operation(span)
            if operation not in _REQUESTS and operation not in (_TOOL, _AGENT):
                continue
            found = self._owner(span)
            if found is None or key in doubled:
                continue
            turn_id, owner = found
            run = runs.setdefault(turn_id, _Run(turn_id, owner))
            if operation in _REQUESTS:
                run.requests.append(span)
            elif operation == _TOOL:
                run.tools.append(span)
        return runs

    def _parent(self, span: Span) -> Span | None:
        return self.spans.get((span.trace_id, span.parent_id)) if span.parent_id else None

    def _above(self, span: Span) -> Iterator[Span]:
        """Yield the spans around a span, inner ones first; a circle is left where it closes."""
        seen = {span.span_id}
        parent = self._parent(span)
        while parent is not None and parent.span_id not in seen:
            seen.add(parent.span_id)
            yield parent
            parent = self._parent(parent)

    def _owner(self, span: Span) -> tuple[str, Span | None] | None:
        """Return the turn a span belongs to, or None while that can't be known."""
        around = [span, *self._above(span)]
        outermost = around[-1]
        if outermost.parent_is_local and self._parent(outermost) is None and outermost.parent_id:
            return None  # something around it runs still, and is told when it has ended
        agent = next((outer for outer in around if _operation(outer) == _AGENT), None)
        if agent is None and outermost is span and span.parent_id:
            return _id(span.trace_id, span.parent_id), None
        owner = agent or outermost
        return _id(owner.trace_id, owner.span_id), owner

    def _doubled(self) -> set[Key]:
        """Return spans of requests that another instrumentation tells, too."""
        doubled = set()
        for key, span in self.spans.items():
            if _operation(span) not in _REQUESTS:
                continue
            outer = next((o for o in self._above(span) if _operation(o) in _REQUESTS), None)
            if outer is not None:
                doubled.add((outer.trace_id, outer.span_id) if key in self.usages else key)
        return doubled

    def _run_events(self, run: _Run, sessions: dict[str, str]) -> Iterator[Event]:
        # A request that failed and used nothing was none.
        asked = [span for span in run.requests if _key(span) in self.usages or not span.failed]
        asked.sort(key=_end)
        if not asked and not run.tools:
            return
        turn = self._turn(run, [*asked, *run.tools], sessions)
        yield turn.started()
        asks = False
        for span, (named, unnamed) in zip(asked, _tools_of(asked, run.tools), strict=True):
            turn.model = span.named(*_MODEL) or turn.model
            turn.calls += len(named) + unnamed
            asks = bool(named or unnamed)
            usage = self.usages.get(_key(span))
            if usage is None:
                turn.requests += 1  # nobody knows what it used
            else:
                request_id = _id(span.trace_id, span.span_id)
                yield turn.request(request_id, span.start_ms, usage, named, unnamed)
            turn.reach("open", "in_flight", span.end_ms)
        turn.reach(*_standing(run, asks=asks), run.span.end_ms if run.span else None)
        calls = turn.calls if asked else len(run.tools)
        yield turn.reached(tool_calls=calls, requests=len(asked) or None)

    def _turn(self, run: _Run, inside: Sequence[Span], sessions: dict[str, str]) -> Turn:
        first = inside[0]
        span = run.span or first
        outer = next((o for o in self._above(span) if _operation(o) == _AGENT), None)
        parent_turn_id = _id(outer.trace_id, outer.span_id) if outer else None
        told = (one.named("gen_ai.conversation.id", "session.id") for one in (span, *inside))
        inherited = sessions.get(parent_turn_id or "") or span.trace_id
        session_id = next((one for one in told if one), None) or inherited
        sessions[run.turn_id] = session_id
        role = span.named(*_ROLE) or first.named(*_ROLE) or span.service or "agent"
        return Turn(
            turn_id=run.turn_id,
            session_id=session_id,
            thread_id=thread_of(session_id, span.span_id if parent_turn_id else None),
            source=HARNESS,
            role=project_role(role, span.service, by_project=self.by_project),
            at_ms=span.start_ms,
            model=first.named(*_MODEL),
            provider=first.named("gen_ai.provider.name", "gen_ai.system"),
            parent_turn_id=parent_turn_id,
        )


def _operation(span: Span) -> str | None:
    told = span.attributes.get(_OPERATION)
    if told is None and _tells_usage(span) and span.attributes.get("gen_ai.request.model"):
        return "chat"  # as instrumentations tell it that know no operations
    return told if isinstance(told, str) else None


def _tells_usage(span: Span) -> bool:
    return any(span.attributes.get(name) is not None for name in _INPUTS)


def _key(span: Span) -> Key:
    return span.trace_id, span.span_id


def _id(trace_id: str, span_id: str) -> str:
    return f"{trace_id}/{span_id}"


def _start(run: _Run) -> int:
    spans = (run.span, *run.requests) if run.span else run.requests
    return min((span.start_ms or 0 for span in spans if span), default=0)


def _end(span: Span) -> tuple[int, str]:
    return span.end_ms or span.start_ms or 0, span.span_id


def _standing(run: _Run, *, asks: bool) -> tuple[str, str]:
    """Return status and reason of a turn whose spans have all been taken."""
    span = run.span
    if span is None:
        return "open", "in_flight"
    if span.failed:
        return "cut", span.named("error.type") or "error"
    if _operation(span) in _REQUESTS:
        # A request by itself is the turn: there is nobody to say that it ended.
        return ("open", "in_flight") if asks else ("ended", "final_text")
    return "ended", "span_ended"


def _tools_of(
    requests: Sequence[Span], tools: Sequence[Span]
) -> list[tuple[tuple[tuple[str, str], ...], int]]:
    """Return the tool calls each request asked for, and how many it asked for without a name.

    Spans of tools tell it; else the answers, where they were recorded; else the reasons for which
    answers finished tell that there was one at least.
    """
    if not tools:
        return [_asked_in(span) for span in requests]
    named: dict[int, dict[str, str]] = defaultdict(dict)
    for tool in sorted(tools, key=_end):
        started = tool.start_ms or 0
        before = [n for n, span in enumerate(requests) if (span.end_ms or 0) <= started]
        call_id = tool.named("gen_ai.tool.call.id") or tool.span_id
        name = tool.named("gen_ai.tool.name") or "unknown"
        named[before[-1] if before else 0][call_id] = name
    return [(tuple(named[number].items()), 0) for number in range(len(requests))]


def _asked_in(span: Span) -> tuple[tuple[tuple[str, str], ...], int]:
    calls = tuple(_calls_in(span.attributes.get("gen_ai.output.messages")))
    if calls:
        return calls, 0
    reasons = span.attributes.get("gen_ai.response.finish_reasons") or ()
    return (), int(not _ASKING.isdisjoint(reasons))


def _calls_in(messages: object) -> Iterator[tuple[str, str]]:
    """Yield ids and names of the tool calls in recorded answers, and nothing else of them."""
    if isinstance(messages, str):
        try:
            messages = orjson.loads(messages)
        except orjson.JSONDecodeError:
            return  # cut off by the exporter's limit for texts
    for message in messages if isinstance(messages, list) else ():
        for part in message.get("parts") or ():
            if part.get("type") == "tool_call":
                name = part.get("name")
                yield text(part.get("id"), "tool_call.id"), str(name or "unknown")
