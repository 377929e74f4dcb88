"""A generated Claude Code tree, with the dirt of real ones and the truth about what is in it.

``<root>/projects/<encoded folder>/<session>.jsonl`` and, beside it,
``<session>/subagents/agent-<id>.jsonl`` hold several lines for one request, parallel tool calls
and results out of order, sub-agents that older versions also embed into their parent's file,
compactions, interrupted and failed turns, retries, synthetic lines, lines of unknown types, and
turns still in flight. Two versions of the harness are imitated.
"""

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from examples.manifest import Manifest, SessionTruth
from examples.session import write_session
from examples.session_plan import Incident, SessionPlan
from examples.transcript import Prose
from examples.transcript_lines import NEW, OLD

__all__ = ["write_tree", "write_tree_of_size"]

_FOLDERS = ("-home-dev-shop", "-home-dev-shop-api", "-home-dev-stock")
_FIRST_SESSION_MS = 1_782_900_000_000  # 2026-07-01
_DAY_MS = 86_400_000
_INCIDENTS = tuple(incident for incident in Incident if incident is not Incident.NONE)
_REAL_BODY_CHARS = 1_800  # gives lines of about 2.2 kB, as in real trees


def write_tree(
    root: Path, *, sessions: int = 12, seed: int = 17, body_chars: int = 200
) -> Manifest:
    """Write a small tree that shows every kind of dirt.

    Parameters
    ----------
    root : Path
        The folder that gets ``projects/``; made if missing.
    sessions : int, default 12
        Sessions to write, of five or six turns each. From 5 on every kind of incident occurs.
    seed : int, default 17
        The same seed gives the same bytes.
    body_chars : int, default 200
        Mean characters of a tool result. Smaller makes a smaller tree with the same figures only
        in kind: chance takes another course.

    Returns
    -------
    Manifest
        What is truly in the tree.
    """
    prose = Prose(seed)
    truths = []
    for number in range(sessions):
        rng = Random(f"{seed}/{number}")
        # Three steps of 5 through 13 kinds: five consecutive sessions meet all of them.
        kinds = {_INCIDENTS[(number + 5 * step) % len(_INCIDENTS)] for step in range(3)}
        middle = [*sorted(kinds - {Incident.IN_FLIGHT}), Incident.NONE]
        rng.shuffle(middle)
        end = kinds & {Incident.IN_FLIGHT}
        plan = _plan(number, (Incident.NONE, *middle, *end), body_chars=body_chars)
        truths.append(write_session(root, plan, rng, prose))
    return Manifest.of(truths)


def write_tree_of_size(root: Path, megabytes: float, seed: int = 17) -> Manifest:
    """Write sessions of 1 to 4 MB with text of realistic length until the tree is large enough.

    Parameters
    ----------
    root : Path
        The folder that gets ``projects/``; made if missing.
    megabytes : float
        Size to reach, in 10⁶ bytes; the last session may pass it by a few.
    seed : int, default 17
        The same seed gives the same bytes.

    Returns
    -------
    Manifest
        What is truly in the tree. Memory holds one line of the tree at a time besides it.
    """
    prose = Prose(seed)
    truths: list[SessionTruth] = []
    size = 0
    while size < megabytes * 1e6:
        rng = Random(f"{seed}/large/{len(truths)}")
        incidents = tuple(islice(_mostly_plain(rng), 400))
        plan = _plan(
            len(truths), incidents, body_chars=_REAL_BODY_CHARS, max_bytes=rng.uniform(0.9e6, 3.6e6)
        )
        truths.append(write_session(root, plan, rng, prose))
        size += truths[-1].size_bytes
    return Manifest.of(truths)


def _mostly_plain(rng: Random) -> Iterator[Incident]:
    """Yield plain turns with an incident in every fifth or so."""
    kinds = [kind for kind in _INCIDENTS if kind is not Incident.IN_FLIGHT]
    yield Incident.NONE
    while True:
        yield rng.choice(kinds) if rng.random() < 0.2 else Incident.NONE


def _plan(
    number: int, incidents: tuple[Incident, ...], *, body_chars: int, max_bytes: float = math.inf
) -> SessionPlan:
    return SessionPlan(
        style=NEW if number % 2 else OLD,
        folder=_FOLDERS[number % len(_FOLDERS)],
        start_ms=_FIRST_SESSION_MS + number * _DAY_MS // 4,
        incidents=incidents,
        max_bytes=max_bytes,
        body_chars=body_chars,
    )
