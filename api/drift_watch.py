"""Drift: a role's closed turns are shown to its detector in the order of time, looking forward."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from api.estimates import within_horizon
from estimator.drift import (
    MIN_REFERENCE_TURNS,
    RATIOS,
    DriftState,
    alarm,
    direction,
    log_statistic,
    start,
    turn_evidence,
    update,
)
from estimator.histogram import Histogram
from estimator.life_table import LifeTable, life_table
from ledger.clock import iso
from ledger.database import reading, writing
from ledger.drift_states import read_drift_states, write_drift_states
from ledger.histogram import TOOL_CALLS, Place
from ledger.recent import RecentTurn, Since, closed_since

__all__ = ["drift_report", "watch_drift"]

_LOGGER = logging.getLogger(__name__)
#: Ages at which a report shows m(i) before and after a change.
REPORT_AGES = (0, 5, 10, 20, 40)
#: Closed turns shown in one transaction, some 0.1 s of work.
_PART_TURNS = 5000
_MS_PER_DAY = 86_400_000
_MS_PER_YEAR = 365.25 * 86_400_000


@dataclass(slots=True)
class _Suspect:
    """The turns since one kind of change is likeliest to have begun, if it has.

    ``evidence`` is the sum of their log e; where it falls to 0, nothing has begun yet.
    """

    evidence: float = 0.0
    cells: dict[Place, int] = field(default_factory=dict)

    def take(self, place: Place, log_e: float) -> None:
        self.evidence += log_e
        if self.evidence <= 0:
            self.evidence, self.cells = 0.0, {}
        else:
            self.cells[place] = self.cells.get(place, 0) + 1


def _suspects() -> list[_Suspect]:
    return [_Suspect() for _ in RATIOS]


@dataclass(slots=True)
class _Watch:
    """One role's detector as it is stored: where it stands, its reference, its alarms."""

    last_ms: int | None = None
    turn_id: str = ""
    first_ms: int | None = None
    reference: dict[Place, int] = field(default_factory=dict)
    since: dict[Place, int] = field(default_factory=dict)
    suspects: list[_Suspect] = field(default_factory=_suspects)
    detector: DriftState | None = None
    alarms: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "_Watch":
        detector = state["detector"]
        return cls(
            state["last_ms"],
            state["turn_id"],
            state["first_ms"],
            _places(state["reference"]),
            _places(state["since"]),
            [_Suspect(one["evidence"], _places(one["cells"])) for one in state["suspects"]],
            None if detector is None else DriftState.from_payload(detector),
            list(state["alarms"]),
        )

    def to_payload(self) -> dict[str, Any]:
        return {
            "last_ms": self.last_ms,
            "turn_id": self.turn_id,
            "first_ms": self.first_ms,
            "reference": _rows(self.reference),
            "since": _rows(self.since),
            "suspects": [
                {"evidence": one.evidence, "cells": _rows(one.cells)} for one in self.suspects
            ],
            "detector": None if self.detector is None else self.detector.to_payload(),
            "alarms": self.alarms,
        }

    def take(self, turn: RecentTurn) -> None:
        """Show the detector one turn, or add it to the reference that is still being gathered."""
        assert turn.last_ms is not None  # noqa: S101 - closed_since yields none without a time
        self.last_ms, self.turn_id = turn.last_ms, turn.turn_id
        self.first_ms = turn.last_ms if self.first_ms is None else self.first_ms
        place = turn.place(TOOL_CALLS)
        if place is None:
            return
        place = within_horizon(place)
        if self.detector is None:
            self._gather(place)
        else:
            self._watch(self.detector, place)

    def _gather(self, place: Place) -> None:
        self.reference[place] = self.reference.get(place, 0) + 1
        if sum(self.reference.values()) < MIN_REFERENCE_TURNS:
            return
        histogram = _histogram(self.reference)
        if histogram.turns_with_a_call >= MIN_REFERENCE_TURNS and histogram.ends:
            self.detector = start(life_table(histogram), self._turns_per_year(histogram.turns))

    def _turns_per_year(self, turns: float) -> float:
        # Turns that share a moment tell no rate; a day is the least that does.
        span = max(_MS_PER_DAY, (self.last_ms or 0) - (self.first_ms or 0))
        return max(1.0, turns / span * _MS_PER_YEAR)

    def _watch(self, detector: DriftState, place: Place) -> None:
        self.since[place] = self.since.get(place, 0) + 1
        entry, exit_, ended = place
        log_e = turn_evidence(detector, exit_, ended, entry)
        if log_e is None:
            return  # never seen at risk: no evidence either way
        for suspect, one in zip(self.suspects, log_e.tolist(), strict=True):
            suspect.take(place, one)
        self.detector = detector = update(detector, exit_, ended, entry)
        if alarm(detector):
            self._raise(detector)

    def _raise(self, detector: DriftState) -> None:
        """Note the alarm; the reference restarts: what comes now is gathered as the new normal."""
        leading = self.suspects[int(np.argmax(detector.log_evidence))]
        self.alarms.append(
            {
                "at": iso(self.last_ms),
                "turn_id": self.turn_id,
                "direction": direction(detector),
                "turns_since_reference": detector.turns,
                "before": _means(self.reference),
                "after": _means(leading.cells),
            }
        )
        self.reference, self.since, self.detector = {}, {}, None
        self.suspects = _suspects()
        self.first_ms = self.last_ms


def watch_drift(engine: Engine, roles: Iterable[str]) -> int:
    """Show the detectors of these roles what has closed since they last looked, and store them.

    A long backlog is taken in parts, each a transaction of its own, so that other writers wait for
    one part at the most.

    Returns
    -------
    int
        How many alarms that raised.
    """
    raised = 0
    for role in sorted(set(roles)):
        more = True
        while more:
            more, alarms = _watch_some(engine, role)
            raised += len(alarms)
            for one in alarms:
                told = {"role": role, "direction": one["direction"], "turn_id": one["turn_id"]}
                # A command sets no formatter, so the words alone must tell it.
                _LOGGER.warning("turns of %s became %s", role, one["direction"], extra=told)
    return raised


def _watch_some(engine: Engine, role: str) -> tuple[bool, list[dict[str, Any]]]:
    """Take the next part of a role's closed turns; say if there may be more, and the new alarms."""
    with reading(engine) as connection:
        if not _unseen(connection, _watch_of(connection, role), role, 1):
            return False, []
    with writing(engine) as connection:
        watch = _watch_of(connection, role)
        before = len(watch.alarms)
        unseen = _unseen(connection, watch, role, _PART_TURNS)
        for turn in unseen:
            watch.take(turn)
        write_drift_states(connection, {role: watch.to_payload()})
    return len(unseen) == _PART_TURNS, watch.alarms[before:]


def _watch_of(connection: Connection, role: str) -> _Watch:
    stored = read_drift_states(connection, role)
    return _Watch.restored(stored[role]) if role in stored else _Watch()


def _unseen(connection: Connection, watch: _Watch, role: str, limit: int) -> list[RecentTurn]:
    since = None if watch.last_ms is None else Since(watch.last_ms, watch.turn_id)
    return closed_since(connection, role, since, limit)


def drift_report(connection: Connection) -> list[dict[str, Any]]:
    """Return one row a role: how its detector stands, and its alarms with m(i) before and after."""
    report = []
    for role, state in sorted(read_drift_states(connection).items()):
        watch = _Watch.restored(state)
        detector = watch.detector
        report.append(
            {
                "role": role,
                "status": "gathering a reference" if detector is None else "watching",
                "reference_turns": int(_histogram(watch.reference).turns_with_a_call),
                "reference_needed": MIN_REFERENCE_TURNS,
                "turns_watched": 0 if detector is None else detector.turns,
                "statistic": None if detector is None else _statistic(detector),
                "threshold": None if detector is None else detector.threshold,
                "reference": _means(watch.reference),
                "since": _means(watch.since),
                "alarms": watch.alarms,
            }
        )
    return report


def _statistic(detector: DriftState) -> float:
    """Return the mean of R over ρ, which raises an alarm at the threshold."""
    return float(np.exp(np.minimum(log_statistic(detector.log_evidence), 700.0)))


def _means(cells: Mapping[Place, int]) -> dict[str, Any]:
    """Return turns and m(i) of cells, null where no turn has ended."""
    histogram = _histogram(cells)
    life: LifeTable | None = life_table(histogram) if histogram.ends else None
    return {
        "turns": int(histogram.turns_with_a_call),
        "m": {str(age): None if life is None else life.at(age).mean for age in REPORT_AGES},
    }


def _histogram(cells: Mapping[Place, int]) -> Histogram:
    return Histogram.from_rows((*place, count) for place, count in cells.items())


def _rows(cells: Mapping[Place, int]) -> list[tuple[int, int, bool, int]]:
    return [(*place, count) for place, count in cells.items()]


def _places(rows: Iterable[Iterable[Any]]) -> dict[Place, int]:
    return {(entry, exit_, ended): count for entry, exit_, ended, count in rows}
