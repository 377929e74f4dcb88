"""``/metrics``: what a worker has counted and how it stands, as Prometheus reads it."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from api.counts import BOUNDS_SECONDS, Counts
from api.decision_log import LogState
from api.refresh import RefreshState
from api.service import Service, service_of
from compactuary.version import VERSION
from policy.decision import POLICY_VERSION

__all__ = ["families_of", "router"]

router = APIRouter(tags=["health"])

Labels = Mapping[str, str]
Sample = tuple[Labels, float]


class _Families(Collector):
    """Families that are there already, in the form that the encoder asks for."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"description": "Prometheus' text format.", "content": {"text/plain": {}}}},
    summary="Counters and gauges for Prometheus",
)
def get_metrics(request: Request) -> Response:
    """Return this worker's metrics, and what the other workers of this host last showed of theirs.

    Every sample has the label `worker`, the process's id: sum over it.
    """
    service = service_of(request)
    families = list(families_of(service))
    if service.shared_metrics is not None:
        families = service.shared_metrics.with_others(families)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(registry), headers={"content-type": content_type})


def families_of(service: Service) -> Iterator[Metric]:
    """Yield one worker's metrics; memory only, so that a slow database delays no look at it."""
    yield _gauge("compactuary_info", "Versions.", {"version": VERSION, "policy": POLICY_VERSION}, 1)
    yield from _of_counts(service.counts)
    if service.log is not None:
        yield from _of_log(service.log.state)
    yield from _of_snapshot(service.refresher.state)
    compiled = service.compiler.state
    yield _gauge("compactuary_thresholds", "Sets of thresholds kept compiled.", {}, compiled.keys)
    yield _gauge(
        "compactuary_thresholds_age_seconds",
        "Since thresholds were last compiled.",
        {},
        _age_seconds(compiled.compiled_ms),
    )
    in_force = service.keyring.state.as_payload(_now_ms())["keys_in_force"]
    yield _gauge("compactuary_keys_in_force", "Keys that open something now.", {}, in_force)


def _of_counts(counts: Counts) -> Iterator[Metric]:
    # Copied at once: the event loop goes on counting meanwhile.
    yield _counter(
        "compactuary_decisions",
        "Decisions made, as the decision log has them.",
        (
            ({"decision": decision, "rule": rule, "source": source, "mode": mode}, count)
            for (decision, rule, source, mode), count in list(counts.decisions.items())
        ),
    )
    yield _one("compactuary_repeated_answers", "Answers given again.", counts.repeats)
    yield _counter(
        "compactuary_http_requests",
        "Requests by route template and status.",
        (
            ({"method": method, "route": route, "status": str(status)}, count)
            for (method, route, status), count in list(counts.requests.items())
        ),
    )
    yield _latency(counts)
    yield _counter(
        "compactuary_denied_requests",
        "Requests refused for their key.",
        (({"reason": reason}, count) for reason, count in list(counts.denied.items())),
    )
    yield _one("compactuary_rate_limited_requests", "Answered 429.", counts.rate_limited)
    yield _one("compactuary_oversized_requests", "Answered 413.", counts.too_large)


def _latency(counts: Counts) -> Metric:
    name = "compactuary_http_request_seconds"
    family = Metric(name, "Time to answer, by route template.", "histogram")
    for route, latency in list(counts.latency.items()):
        at_most = 0
        for bound, count in zip((*BOUNDS_SECONDS, "+Inf"), latency.cells, strict=True):
            at_most += count
            _add(family, f"{name}_bucket", {"route": route, "le": str(bound)}, at_most)
        _add(family, f"{name}_count", {"route": route}, at_most)
        _add(family, f"{name}_sum", {"route": route}, latency.seconds)
    return family


def _of_log(log: LogState) -> Iterator[Metric]:
    yield _gauge("compactuary_log_queue", "Decisions that wait to be written.", {}, log.queued)
    yield _gauge("compactuary_log_capacity", "Decisions that may wait.", {}, log.capacity)
    yield _one("compactuary_log_written", "Decisions written.", log.written)
    yield _one("compactuary_log_dropped", "Decisions lost to a full queue.", log.dropped)
    yield _one("compactuary_log_refused", "Decisions the database refused.", log.refused)


def _of_snapshot(state: RefreshState) -> Iterator[Metric]:
    version = state.snapshot.version
    yield _gauge("compactuary_snapshot_version", "Of the life tables answered from.", {}, version)
    yield _gauge(
        "compactuary_snapshot_age_seconds",
        "Since the life tables were built.",
        {},
        _age_seconds(state.built_ms),
    )
    yield _gauge(
        "compactuary_ledger_checked_seconds",
        "Since the ledger was last seen.",
        {},
        _age_seconds(state.checked_ms),
    )
    yield _gauge(
        "compactuary_refresh_failing",
        "1 while the ledger can't be read.",
        {},
        int(state.error is not None),
    )
    yield _one("compactuary_refreshes", "Snapshots taken.", state.refreshes)
    yield _one("compactuary_drift_alarms", "Alarms this worker has raised.", state.drift_alarms)


def _one(name: str, text: str, count: float) -> Metric:
    return _counter(name, text, [({}, count)])


def _counter(name: str, text: str, samples: Iterable[Sample]) -> Metric:
    family = Metric(name, text, "counter")
    for labels, count in samples:
        _add(family, f"{name}_total", labels, count)
    return family


def _gauge(name: str, text: str, labels: Labels, value: float) -> Metric:
    family = Metric(name, text, "gauge")
    _add(family, name, labels, value)
    return family


def _add(family: Metric, name: str, labels: Labels, value: float) -> None:
    family.add_sample(name, {**labels, "worker": str(os.getpid())}, value)


def _age_seconds(at_ms: int | None) -> float:
    """Return how long ago it was; no number where it never was."""
    return float("nan") if at_ms is None else round((_now_ms() - at_ms) / 1000, 3)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
