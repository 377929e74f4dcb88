"""Counts: what one worker has answered, decided and refused since it started."""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass, field

from policy.answer import Answer

__all__ = ["BOUNDS_SECONDS", "Counts", "Latency"]

#: Upper ends of the histogram's cells; the last cell has none.
BOUNDS_SECONDS = (
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    10.0,
)


@dataclass(slots=True)
class Latency:
    """How long answers took: how many by cell, and their sum in seconds."""

    cells: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_SECONDS) + 1))
    seconds: float = 0.0


@dataclass(slots=True)
class Counts:
    """Counters that cost the request path an addition each; read by other threads, never changed.

    Parameters
    ----------
    decisions : dict
        By decision, rule, source and mode: one for each row offered to the decision log.
    repeats : int
        Answers given again to a question asked twice.
    requests : dict
        By method, route template and status.
    latency : dict
        By route template.
    denied : dict
        By reason.
    rate_limited, too_large : int
    """

    decisions: dict[tuple[str, str, str, str], int] = field(
        default_factory=lambda: defaultdict(int)
    )
    repeats: int = 0
    requests: dict[tuple[str, str, int], int] = field(default_factory=lambda: defaultdict(int))
    latency: dict[str, Latency] = field(default_factory=lambda: defaultdict(Latency))
    denied: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    rate_limited: int = 0
    too_large: int = 0

    def decided(self, answer: Answer) -> None:
        """Count a decision that was made."""
        told = (answer.decision, answer.rule, answer.basis.source, answer.mode)
        self.decisions[told] += 1

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer, whatever it was."""
        self.requests[method, route, status] += 1
        latency = self.latency[route]
        latency.cells[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        latency.seconds += seconds
