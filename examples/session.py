"""The script of one session: its turns, what goes wrong in them, sub-agents and compactions."""

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Literal

from examples import transcript_lines as lines
from examples.conversation import (
    Conversation,
    answer,
    begin_turn,
    close_turn,
    request_tokens,
    work,
)
from examples.manifest import CompactionTruth, SessionTruth, Status, Tokens
from examples.session_plan import Incident, SessionPlan
from examples.transcript import Clock, Line, Prose, Transcript, provider_id, uuid

__all__ = ["write_session"]

_WINDOW_TOKENS = 167_000
_PREFIX_TOKENS = 18_000  # system prompt and tool list


@dataclass(slots=True)
class _Session:
    """A session in progress: its own conversation and where its files are."""

    talk: Conversation
    folder: Path
    plan: SessionPlan
    agent_done_ms: int = 0

    @property
    def rng(self) -> Random:
        return self.talk.rng


def write_session(root: Path, plan: SessionPlan, rng: Random, prose: Prose) -> SessionTruth:
    """Write a session's files.

    Parameters
    ----------
    root : Path
        The folder that gets ``projects/``.
    plan : SessionPlan
        What the session will be like.
    rng : Random
        Decides everything that the plan leaves open.
    prose : Prose
        Source of text.

    Returns
    -------
    SessionTruth
        What was written.
    """
    truth = SessionTruth(uuid(rng))
    folder = root / "projects" / plan.folder
    envelope = _envelope(plan, truth.session_id)
    path = folder / f"{truth.session_id}.jsonl"
    with Transcript(path, rng, Clock(plan.start_ms), envelope) as transcript:
        talk = Conversation(
            transcript=transcript,
            truth=truth,
            style=plan.style,
            rng=rng,
            prose=prose,
            body_chars=plan.body_chars,
            role="main",
            model=plan.style.model,
            agent_id=None,
            growth_tokens=plan.growth_tokens,
            cached_tokens=_PREFIX_TOKENS,
            pending_tokens=8_000,
        )
        _play(_Session(talk, folder / truth.session_id, plan))
    talk.note_compaction(0)
    _count(truth, transcript)
    return truth


def _envelope(plan: SessionPlan, session_id: str) -> Line:
    envelope: Line = {
        "isSidechain": False,
        "userType": "external",
        "cwd": plan.folder.replace("-", "/"),
        "sessionId": session_id,
        "version": plan.style.version,
        "gitBranch": "main",
    }
    return (
        {**envelope, "entrypoint": "cli", "session_id": session_id} if plan.style.new else envelope
    )


def _play(session: _Session) -> None:
    transcript, rng = session.talk.transcript, session.rng
    for line in lines.unknown_lines(session.talk.truth.session_id):
        transcript.add_loose(line)
    if not session.talk.style.new:
        transcript.add(lines.hook_progress("SessionStart", "startup", uuid(rng)))
    for incident in session.plan.incidents:
        if transcript.size_bytes >= session.plan.max_bytes:
            return
        _before_turn(session, incident)
        transcript.add_loose(lines.file_snapshot(uuid(rng), transcript.clock.iso()))
        begin_turn(session.talk, session.talk.prose.text(rng, 200), "prompt")
        notification = _turn(session, incident)
        if notification:
            done_ms = max(transcript.clock.now_ms, session.agent_done_ms)
            transcript.clock.now_ms = done_ms + 1
            begin_turn(session.talk, notification, "task_notification")
            _end(session)
        # A quarter of the pauses outlives the five-minute cache.
        transcript.clock.tick(rng.lognormvariate(4.9, 1.2))


def _before_turn(session: _Session, incident: Incident) -> None:
    transcript, rng = session.talk.transcript, session.rng
    if incident is Incident.LOCAL_COMMAND:
        for line in lines.command("model", "Set model"):
            transcript.add(line)
    elif incident is Incident.SYNTHETIC:
        transcript.add(lines.prompt("Continue from where you left off.", meta=True))
        transcript.add(lines.synthetic(uuid(rng), "No response requested."))
    elif incident is Incident.MANUAL_COMPACTION:
        _compact(session, "manual")
        for line in lines.command("compact", "Compacted"):
            transcript.add(line)


def _turn(session: _Session, incident: Incident) -> str:
    """Play the turn's requests and its end; return the notification of a background agent."""
    talk = session.talk
    rounds = _rounds(session, incident)
    growth = talk.growth_tokens
    if incident is Incident.AUTO_COMPACTION:
        left = _WINDOW_TOKENS - talk.cached_tokens - talk.pending_tokens
        talk.growth_tokens = max(growth, 1.5 * left / sum(rounds))
    notification = ""
    for number, calls in enumerate(rounds):
        _fit_window(session)
        if number == len(rounds) // 2:
            notification = _happen(session, incident)
        work(talk, calls, late=incident is Incident.OUT_OF_ORDER and number == len(rounds) // 2)
    talk.growth_tokens = growth
    _fit_window(session)
    _finish(session, incident)
    return notification


def _rounds(session: _Session, incident: Incident) -> list[int]:
    """Return the parallel tool calls of each request of a turn; a plain turn may have none."""
    rng = session.rng
    if incident is Incident.NONE and rng.random() < 0.18:
        return []
    calls = 1 + int(rng.expovariate(1 / session.plan.mean_calls))
    if incident is Incident.AUTO_COMPACTION:
        return [1] * max(20, calls)
    rounds = []
    while calls > 0:
        rounds.append(min(calls, 1 if rng.random() < 0.85 else rng.randint(2, 4)))
        calls -= rounds[-1]
    return rounds


def _happen(session: _Session, incident: Incident) -> str:
    transcript = session.talk.transcript
    if incident is Incident.SUB_AGENT:
        _delegate(session, background=False)
    elif incident is Incident.BACKGROUND_AGENT:
        return _delegate(session, background=True)
    elif incident is Incident.API_RETRY:
        for attempt in (1, 2):
            transcript.add(lines.api_retry(attempt))
            transcript.clock.tick(attempt)
    elif incident is Incident.QUEUED_COMMAND:
        operation = {"type": "queue-operation", "sessionId": session.talk.truth.session_id}
        transcript.add_loose({**operation, "operation": "enqueue", "content": "and the tests"})
        if session.talk.style.new:
            transcript.add(lines.queued_command("and the tests", "prompt"))
        transcript.add_loose({**operation, "operation": "remove"})
    return ""


def _finish(session: _Session, incident: Incident) -> None:
    """Write the end of the turn, as the incident has it."""
    talk = session.talk
    transcript, style = talk.transcript, talk.style
    status: Status = "interrupted"
    if incident is Incident.FAILED:
        transcript.add(lines.api_failure(uuid(session.rng)))
        status = "failed"
    elif incident is Incident.IN_FLIGHT:
        _call(talk, "Bash", {"command": "git commit -am wip"})
        status = "in_flight"
    elif incident is Incident.INTERRUPTED_TEXT:
        list(answer(talk, []))
        transcript.add(lines.interruption(talk.last_message_id, style, tool=False))
    elif incident is Incident.INTERRUPTED_TOOL:
        call_id, source = _call(talk, "Bash", {"command": "make deploy"})
        refusal = "The user doesn't want to proceed with this tool use."
        transcript.add(lines.tool_result(call_id, source, refusal, error=True), parent=source)
        transcript.add(lines.interruption(talk.last_message_id, style, tool=True))
    else:
        _end(session)
        return
    close_turn(talk, status)


def _end(session: _Session) -> None:
    """Write a final answer and the lines that follow it."""
    talk = session.talk
    list(answer(talk, []))
    talk.transcript.add(lines.stop_hook_summary())
    if talk.style.new or session.rng.random() < 0.7:
        talk.transcript.add(lines.turn_duration(30_881))
    close_turn(talk, "ended")


def _call(talk: Conversation, name: str, arguments: Line) -> tuple[str, str]:
    """Make a request for one given tool call; return the call's id and its line's."""
    call_id = provider_id("toolu", talk.rng)
    ((_, source),) = answer(talk, [lines.tool_use(call_id, name, arguments)])
    return call_id, source


def _delegate(session: _Session, *, background: bool) -> str:
    """Have a sub-agent work; return the text of a background agent's notification."""
    talk, rng = session.talk, session.rng
    agent_id = f"a{rng.getrandbits(64):016x}" if talk.style.new else f"a{rng.getrandbits(24):06x}"
    kind = rng.choice(("Explore", "general-purpose", None))
    arguments: Line = {"description": "Look around", "prompt": "look around"}
    if kind:
        arguments["subagent_type"] = kind
    if background:
        arguments["run_in_background"] = True
    call_id, source = _call(talk, talk.style.agent_tool, arguments)
    role = kind or "general-purpose"
    launched: Line = {"isAsync": True, "status": "async_launched", "agentId": agent_id}
    if background:
        clock = replace(talk.transcript.clock)
        detail = _run_agent(session, agent_id, role, clock, call_id=None)
        session.agent_done_ms = clock.now_ms
        text, shown = "Async agent launched successfully", launched
    else:
        detail = _run_agent(session, agent_id, role, talk.transcript.clock, call_id=call_id)
        text, shown = talk.prose.text(rng, talk.body_chars), detail
    talk.transcript.add(lines.agent_result(call_id, source, text, shown), parent=source)
    talk.pending_tokens += 400
    calls = int(str(detail["totalToolUseCount"]))
    return lines.task_notification(agent_id, call_id, calls) if background else ""


def _run_agent(
    session: _Session, agent_id: str, role: str, clock: Clock, *, call_id: str | None
) -> Line:
    """Write a sub-agent's file; ``call_id`` is the call into whose progress old ones embed it."""
    talk, rng = session.talk, session.rng

    def embed(line: Line) -> None:
        if line["type"] in {"user", "assistant"}:
            talk.transcript.add(lines.agent_progress(line, str(call_id), agent_id))

    mirror = embed if call_id and not talk.style.new else None
    envelope = {**talk.transcript.envelope, "isSidechain": True, "agentId": agent_id}
    path = session.folder / "subagents" / f"agent-{agent_id}.jsonl"
    started_ms = clock.now_ms
    with Transcript(path, rng, clock, envelope, mirror=mirror) as transcript:
        agent = talk.of_agent(transcript, agent_id, role)
        begin_turn(agent, "look around", "agent")
        for _ in range(rng.randint(2, 7)):
            work(agent, rng.randint(1, 2))
        list(answer(agent, []))
        turn = agent.open_turn
        close_turn(agent, "ended")
    _count(talk.truth, transcript)
    return {
        "status": "completed",
        "agentId": agent_id,
        "totalDurationMs": clock.now_ms - started_ms,
        "totalTokens": turn.requests[-1].context + turn.requests[-1].output,
        "totalToolUseCount": turn.tool_calls,
        "usage": lines.usage(turn.requests[-1], talk.style),
    }


def _fit_window(session: _Session) -> None:
    if session.talk.cached_tokens + session.talk.pending_tokens > _WINDOW_TOKENS:
        _compact(session, "auto")


def _compact(session: _Session, trigger: Literal["auto", "manual"]) -> None:
    """Write the summarising request's file, the boundary and the summary."""
    talk, rng = session.talk, session.rng
    turn, style, transcript = talk.turn, talk.style, talk.transcript
    context_before = talk.context_tokens
    pre_tokens = context_before + talk.pending_tokens
    talk.pending_tokens += 2_500  # the instruction
    transcript.clock.tick(rng.uniform(50, 100))
    summary = request_tokens(talk, output=rng.randint(3_500, 6_500))
    text = talk.prose.text(rng, talk.body_chars * 4)
    _write_summary_file(session, text, summary)
    # The summary, and some of the files read again.
    post_tokens = summary.output + int(pre_tokens * rng.uniform(0.05, 0.25))
    transcript.add_root(
        lines.compact_boundary(transcript.parent, trigger, pre_tokens, post_tokens, style)
    )
    transcript.add(lines.compact_summary(text))
    talk.cached_tokens, talk.pending_tokens = _PREFIX_TOKENS, post_tokens
    talk.await_context_after(
        CompactionTruth(
            session_id=talk.truth.session_id,
            turn=_own_turns(talk.truth) if turn else None,
            trigger=trigger,
            pre_tokens=pre_tokens,
            context_before=context_before,
            context_after=0,
            tool_calls_before=turn.tool_calls if turn else 0,
            summary=summary,
        )
    )
    if turn:
        turn.compactions += 1


def _write_summary_file(session: _Session, text: str, summary: Tokens) -> None:
    talk, rng = session.talk, session.rng
    agent_id = f"acompact-{rng.getrandbits(24):06x}"
    envelope = {**talk.transcript.envelope, "isSidechain": True, "agentId": agent_id}
    path = session.folder / "subagents" / f"agent-{agent_id}.jsonl"
    clock, parent = talk.transcript.clock, talk.transcript.parent
    with Transcript(path, rng, clock, envelope, parent=parent) as file:
        file.add(lines.prompt("Write a detailed summary of the conversation so far."))
        block: Line = {"type": "text", "text": text}
        ids = (provider_id("msg", rng), provider_id("req", rng))
        counts = lines.usage(summary, talk.style)
        file.add(lines.assistant(block, counts, ids, talk.style, talk.model, asks_tools=False))
    _count(talk.truth, file)


def _own_turns(truth: SessionTruth) -> int:
    return sum(turn.agent_id is None for turn in truth.turns)


def _count(truth: SessionTruth, transcript: Transcript) -> None:
    truth.files += 1
    truth.lines += transcript.lines
    truth.size_bytes += transcript.size_bytes
