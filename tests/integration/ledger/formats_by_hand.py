"""One small log of every format: ids and numbers only."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.unit.ledger.test_codex import whole_rollout
from tests.unit.ledger.test_gemini_cli import whole_gemini
from tests.unit.ledger.test_opencode import whole_export
from tests.unit.ledger.test_otel import whole_trace, whole_traces
from tests.unit.ledger.test_pi import whole_session
from tests.unit.ledger.test_swe_agent import whole_trajectories, whole_trajectory
from tests.unit.ledger.test_tau_bench import whole_results


class Format(NamedTuple):
    """How a log of a format is named, what it holds, and where in it a document grows."""

    name: str
    value: Callable[[], Any]
    #: Keys that lead to the list that grows; None where the file grows by lines.
    grows: tuple[str, ...] | None = None

    @property
    def by_lines(self):
        return self.grows is None


FORMATS = {
    "codex": Format("rollout-1.jsonl", whole_rollout),
    "opencode": Format("ses_1.json", whole_export, ("messages",)),
    "gemini-cli": Format("session-1.json", whole_gemini, ("messages",)),
    "otel": Format("trace.json", whole_trace, ("resourceSpans",)),
    "otel, lines": Format("traces.jsonl", whole_traces),
    "pi": Format("2026-07-01_s1.jsonl", whole_session),
    "swe-agent": Format("t__r-1.traj", whole_trajectory, ("trajectory",)),
    "swe-agent, many": Format("run.trajs.jsonl", whole_trajectories),
    "tau-bench": Format("gpt-4o-airline.json", whole_results, ()),
}
