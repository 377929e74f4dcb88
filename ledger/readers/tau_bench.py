"""tau-bench results: a list of episodes → ledger events.

An episode is a conversation. A turn goes from a user's message to an answer that asks for no
tool. The log tells neither times nor tokens, so that turns have totals and no requests.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ledger.events import Event
from ledger.readers.fields import text
from ledger.readers.turn import Turn, project_role

__all__ = ["HARNESS", "is_results", "tau_bench_events"]

HARNESS = "tau-bench"
#: What the simulated user says when it has nothing left to ask; the agent gets no word any more.
_STOP = "###STOP###"
#: The tool that hands over to a human: the episode is over before the agent answers.
_TRANSFER = "transfer_to_human_agents"
#: Results are named after the agent's model and the domain.
_NAMED = re.compile(r"(?P<model>.+)-(?P<domain>airline|retail|telecom)\b")


def is_results(value: object) -> bool:
    """Say whether a JSON value holds episodes: a list of them, or one."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and "task_id" in first and isinstance(first.get("traj"), list)


def tau_bench_events(
    documents: Iterable[Any], log: Path, *, role_by_project: bool = False
) -> Iterator[Event]:
    """Yield the events of episodes.

    Parameters
    ----------
    documents : iterable
        Lists of episodes, or one episode each.
    log : Path
        The file, whose name tells model and domain, such as ``gpt-4o-airline.json``.
    role_by_project : bool, default False
        Prefix every role with ``unknown-project``.

    Raises
    ------
    InputError
        Naming the field, if a value is not what it must be.
    """
    stem = log.name.split(".json")[0]
    named = _NAMED.match(stem)
    role = f"{named['domain']}-agent" if named else "agent"
    role = project_role(role, None, by_project=role_by_project)
    model = named["model"] if named else None
    for document in documents:
        for episode in document if isinstance(document, list) else (document,):
            task, trial = _named(episode, "task_id"), _named(episode, "trial")
            yield from _episode(episode["traj"], f"{stem}/{task}-{trial}", role, model)


def _named(episode: Mapping[str, Any], name: str) -> str:
    value = episode.get(name)
    return str(value or 0) if value is None or type(value) is int else text(value, name)


def _episode(
    messages: Sequence[Mapping[str, Any]], session_id: str, role: str, model: str | None
) -> Iterator[Event]:
    turn: Turn | None = None
    number = 0
    transferred = False
    for message in messages:
        speaker = message["role"]
        if speaker == "user":
            if turn is not None:
                yield from _told(turn)
            turn = (
                None
                if _STOP in str(message.get("content"))
                else Turn(
                    turn_id=f"{session_id}/{number}",
                    session_id=session_id,
                    thread_id=session_id,
                    source=HARNESS,
                    role=role,
                    model=model,
                )
            )
            number += turn is not None
        elif speaker == "assistant" and turn is not None:
            calls = message.get("tool_calls") or ()
            turn.requests += 1
            turn.calls += len(calls)
            transferred = any(call["function"]["name"] == _TRANSFER for call in calls)
            turn.reach(*(("open", "in_flight") if calls else ("ended", "final_text")), None)
    if turn is not None:
        if turn.status == "open":
            turn.reach("cut", "transferred" if transferred else "episode_end", None)
        yield from _told(turn)


def _told(turn: Turn) -> Iterator[Event]:
    if turn.requests:
        if turn.status == "open":
            turn.reach("cut", "superseded", None)
        yield turn.started()
        yield turn.reached(tool_calls=turn.calls, requests=turn.requests)
