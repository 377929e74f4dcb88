"""Sequences of requests that share one growing context: main sessions, and sub-agents' turns.

A unit is a main session, whose context outlives its turns, or one turn of a sub-agent. Everything
a replay needs of it lies in flat arrays over requests, unit after unit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from compactuary.errors import InputError

__all__ = ["Sequences", "Turn", "sequences_of"]

_Numbers = NDArray[np.float64]
_Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as a log tells it.

    Parameters
    ----------
    project, session : str
        Whose; a session of one project never is one of another.
    unit : str
        What shares its context, within the session: one name for all turns of the main agent,
        one for each turn of a sub-agent.
    main : bool
        Whether it is the main agent's.
    contexts_tokens : tuple of float
        Input of each request, cached or not.
    times_seconds : tuple of (float or None)
        When each was made, since 1970; None where the log does not tell.
    ended : bool
        False for a cut turn.
    asked_for_tools : bool
        Whether its last answer asked for tools, so that of a cut turn another request was due.
    in_flight : bool
        Whether the log stops inside it: the agent then did not wait for anybody.
    role : str
        The agent's.
    """

    project: str
    session: str
    unit: str
    main: bool
    contexts_tokens: tuple[float, ...]
    times_seconds: tuple[float | None, ...]
    ended: bool
    asked_for_tools: bool = False
    in_flight: bool = False
    role: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Units, and their requests in the order they were made.

    Parameters
    ----------
    project, session, role : tuple of str, one a unit
        A session holds a main agent's unit and those of its sub-agents.
    main : ndarray of bool, shape (units,)
        Whether the unit is a main session.
    begins : ndarray of int, shape (units + 1,)
        Place of each unit's first request; the last element is the number of requests.
    context_tokens : ndarray of float, shape (requests,)
        Input of each request as it was, cached or not.
    growth_tokens : ndarray of float, shape (requests,)
        What each request adds to the context of the one before; 0 for a unit's first. Where the
        context shrank, because the agent compacted, it is the unit's median growth.
    gap_seconds : ndarray of float, shape (requests,)
        Time since the unit's request before; 0 for the first, or where no time is known.
    at_seconds : ndarray of float, shape (requests,)
        When it was made, since 1970; the last known time of the unit where the log does not tell.
    age : ndarray of int, shape (requests,)
        Requests made before it in its turn.
    last : ndarray of bool, shape (requests,)
        Whether it is the last one of its turn.
    ended : ndarray of bool, shape (requests,)
        Whether it is the last one of a turn that ended, not of a cut one.
    asked_for_tools : ndarray of bool, shape (requests,)
        Whether it is the last one of a turn, and its answer asked for tools.
    waits : ndarray of bool, shape (requests,)
        Whether the agent waited for its user behind it: not where the log stops in mid-turn.
    """

    project: tuple[str, ...]
    session: tuple[str, ...]
    role: tuple[str, ...]
    main: _Truths
    begins: NDArray[np.int64]
    context_tokens: _Numbers
    growth_tokens: _Numbers
    gap_seconds: _Numbers
    at_seconds: _Numbers
    age: NDArray[np.int64]
    last: _Truths
    ended: _Truths
    asked_for_tools: _Truths
    waits: _Truths

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.session)

    @property
    def requests(self) -> int:
        """How many requests there are."""
        return int(self.begins[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Requests of each unit."""
        return np.diff(self.begins)

    @property
    def first_context_tokens(self) -> _Numbers:
        """Context of each unit's first request."""
        return self.context_tokens[self.begins[:-1]]

    @property
    def unit(self) -> NDArray[np.int64]:
        """The unit of each request, from 0."""
        return np.repeat(np.arange(self.units), self.lengths)

    @property
    def first(self) -> _Truths:
        """Whether a request is its unit's first one."""
        found = np.zeros(self.requests, dtype=np.bool_)
        found[self.begins[:-1]] = True
        return found

    @property
    def place(self) -> NDArray[np.int64]:
        """Requests made before each one in its unit."""
        return np.arange(self.requests) - np.repeat(self.begins[:-1], self.lengths)

    @property
    def opens_turn(self) -> _Truths:
        """Whether a request is the first one of a later turn of its unit."""
        opens: _Truths = (self.age == 0) & ~self.first
        return opens

    def chosen(self, units: _Truths) -> "Sequences":
        """Return some of the units, in the same order.

        Parameters
        ----------
        units : ndarray of bool, shape (units,)
            Which.
        """
        kept = np.flatnonzero(units)
        rows = units[self.unit]
        return Sequences(
            project=tuple(self.project[place] for place in kept),
            session=tuple(self.session[place] for place in kept),
            role=tuple(self.role[place] for place in kept),
            main=self.main[kept],
            begins=np.append(0, np.cumsum(self.lengths[kept])),
            context_tokens=self.context_tokens[rows],
            growth_tokens=self.growth_tokens[rows],
            gap_seconds=self.gap_seconds[rows],
            at_seconds=self.at_seconds[rows],
            age=self.age[rows],
            last=self.last[rows],
            ended=self.ended[rows],
            asked_for_tools=self.asked_for_tools[rows],
            waits=self.waits[rows],
        )


def sequences_of(turns: Iterable[Turn]) -> Sequences:
    """Lay turns out as sequences.

    Parameters
    ----------
    turns : iterable of Turn
        In any order; turns of one unit are put in the order in which they began, those without a
        time where they stand. Requests without a context are left out, and so are turns that then
        have none.

    Raises
    ------
    InputError
        No request is left.
    """
    told = [turn for turn in turns if any(context > 0 for context in turn.contexts_tokens)]
    if not told:
        raise InputError(
            "there is nothing to replay: no turn has a request with its context",
            remedy="Import or name logs that tell the tokens of each request",
        )
    key = attrgetter("project", "session", "unit")
    units = [_in_order(list(own)) for _, own in groupby(sorted(told, key=key), key=key)]
    columns = [_columns(unit) for unit in units]
    return Sequences(
        project=tuple(unit[0].project for unit in units),
        session=tuple(f"{unit[0].project}/{unit[0].session}" for unit in units),
        role=tuple(unit[0].role for unit in units),
        main=np.array([unit[0].main for unit in units], dtype=np.bool_),
        begins=np.append(0, np.cumsum([len(own[0]) for own in columns])).astype(np.int64),
        context_tokens=np.concatenate([own[0] for own in columns]),
        growth_tokens=np.concatenate([_growth(own[0]) for own in columns]),
        gap_seconds=np.concatenate([np.diff(own[1], prepend=own[1][0]) for own in columns]),
        at_seconds=np.concatenate([own[1] for own in columns]),
        age=np.concatenate([own[2] for own in columns]),
        last=np.concatenate([own[3] for own in columns]),
        ended=np.concatenate([own[4] for own in columns]),
        asked_for_tools=np.concatenate([own[5] for own in columns]),
        waits=np.concatenate([own[6] for own in columns]),
    )


def _in_order(turns: Sequence[Turn]) -> list[Turn]:
    """Sort a unit's turns by their first known time."""
    begun, reached = [], 0.0
    for turn in turns:
        reached = next((at for at in turn.times_seconds if at is not None), reached)
        begun.append(reached)
    return [turns[place] for place in sorted(range(len(turns)), key=begun.__getitem__)]


def _columns(
    turns: Sequence[Turn],
) -> tuple[_Numbers, _Numbers, NDArray[np.int64], _Truths, _Truths, _Truths, _Truths]:
    """Return context, time, age, last, ended, asked for tools and waits of a unit's requests."""
    rows = [
        (context, at, turn, place)
        for turn in turns
        for place, (context, at) in enumerate(_told(turn))
    ]
    last = [
        place + 1 == len(rows) or rows[place + 1][2] is not row[2] for place, row in enumerate(rows)
    ]
    closing = [(ends, row[2]) for ends, row in zip(last, rows, strict=True)]
    final = len(rows) - 1
    return (
        np.array([row[0] for row in rows], dtype=np.float64),
        _times([row[1] for row in rows]),
        np.array([row[3] for row in rows], dtype=np.int64),
        np.array(last, dtype=np.bool_),
        np.array([ends and turn.ended for ends, turn in closing], dtype=np.bool_),
        np.array([ends and turn.asked_for_tools for ends, turn in closing], dtype=np.bool_),
        # Whatever a turn looked like, the agent had stopped when the next one began.
        np.array(
            [
                ends and not (turn.in_flight and place == final)
                for place, (ends, turn) in enumerate(closing)
            ],
            dtype=np.bool_,
        ),
    )


def _told(turn: Turn) -> Iterator[tuple[float, float | None]]:
    pairs = zip(turn.contexts_tokens, turn.times_seconds, strict=True)
    return ((context, at) for context, at in pairs if context > 0)


def _times(told: Sequence[float | None]) -> _Numbers:
    """Return times that never go back; the last known one where there is none."""
    known = next((at for at in told if at is not None), 0.0)
    times = []
    for at in told:
        known = known if at is None else max(known, at)
        times.append(known)
    return np.array(times, dtype=np.float64)


def _growth(contexts: _Numbers) -> _Numbers:
    """Return growth from request to request, the unit's median where the context shrank."""
    growth = np.diff(contexts, prepend=contexts[0])
    later = growth[1:]
    grown = later[later >= 0]
    later[later < 0] = np.median(grown) if grown.size else 0.0
    return growth
