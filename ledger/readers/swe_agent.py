"""SWE-agent trajectories: a task each → ledger events.

A trajectory is one turn of as many steps as the agent made, each a call. It tells totals of
tokens only, so that the turn has totals and no requests.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ledger.events import Event
from ledger.readers.fields import count, text, text_or_none
from ledger.readers.turn import Turn, project_role

__all__ = ["HARNESS", "is_trajectory", "swe_agent_events"]

HARNESS = "swe-agent"
#: The exit status of an agent that submitted because it was done, and of no other.
_SUBMITTED = "submitted"
#: Runs are named after their model in two ways.
_NAMED = re.compile(r"(?:.*_SWE-agent_(?P<last>[^/]+)|(?P<first>[^/_]+(?:_[^/_]+)*)__.+)")


def is_trajectory(value: object) -> bool:
    """Say whether a JSON object is a trajectory, or holds one beside its file's name."""
    if not isinstance(value, dict):
        return False
    inner = value.get("traj", value)
    return (
        isinstance(inner, dict)
        and isinstance(inner.get("trajectory"), list)
        and isinstance(inner.get("info"), dict)
    )


def swe_agent_events(
    documents: Iterable[Mapping[str, Any]], log: Path, *, role_by_project: bool = False
) -> Iterator[Event]:
    """Yield the events of trajectories.

    Parameters
    ----------
    documents : iterable of mapping
        Trajectories, or objects ``{file, traj}``.
    log : Path
        The file; it, or the folder it is in, is named after the run.
    role_by_project : bool, default False
        Prefix every role with ``unknown-project``.

    Raises
    ------
    InputError
        Naming the field, if a value is not what it must be.
    """
    role = project_role(HARNESS, None, by_project=role_by_project)
    run, own = log.parent.name, log.name.split(".traj")[0]
    for document in documents:
        named = text_or_none(document.get("file"), "file")
        # In a file of many, each says what its own was called.
        folder, name = (own, named.removesuffix(".traj")) if named else (run, own)
        turn_id = text(f"{folder}/{name}", "file")
        yield from _trajectory(document.get("traj", document), turn_id, role)


def _trajectory(trajectory: Mapping[str, Any], turn_id: str, role: str) -> Iterator[Event]:
    steps = len(trajectory["trajectory"])
    if not steps:
        return
    info = trajectory["info"]
    stats = info.get("model_stats") or {}
    asked = count(stats.get("api_calls"), "info.model_stats.api_calls") or 0
    exit_status = text_or_none(info.get("exit_status"), "info.exit_status")
    named = _NAMED.match(turn_id.rpartition("/")[0])
    turn = Turn(
        turn_id=turn_id,
        session_id=turn_id,
        thread_id=turn_id,
        source=HARNESS,
        role=role,
        model=(named["last"] or named["first"]) if named else None,
    )
    if exit_status == _SUBMITTED:
        turn.reach("ended", _SUBMITTED, None)
    else:
        # What was submitted when money, context or patience ran out is no end of the work.
        turn.reach("cut", exit_status or "no_exit_status", None)
    yield turn.started()
    # Answers that could not be parsed are asked for again, and are no steps.
    yield turn.reached(tool_calls=steps, requests=max(steps, asked))
