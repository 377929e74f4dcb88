"""Traces: spans of requests and refreshes for OpenTelemetry, imported only where wanted."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from compactuary.errors import MissingExtraError

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["Traces", "on_refresh", "open_traces"]

_LOGGER = logging.getLogger(__name__)
_SERVICE = "compactuary"


class Traces:
    """Spans of one worker, handed to a collector in the background.

    Parameters
    ----------
    provider : opentelemetry.sdk.trace.TracerProvider
        Its own, not the process's: an app that this one runs in keeps its tracing.
    """

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(_SERVICE)
        self._api = import_module("opentelemetry.trace")
        self._extract = (
            import_module("opentelemetry.trace.propagation.tracecontext")
            .TraceContextTextMapPropagator()
            .extract
        )

    @contextmanager
    def request(self, scope: "Scope") -> Iterator[Any]:
        """Hold a span around one request, below the caller's if it sent a traceparent."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in {b"traceparent", b"tracestate"}
        }
        with self._tracer.start_as_current_span(
            scope["method"],
            context=self._extract(headers),
            kind=self._api.SpanKind.SERVER,
            record_exception=False,
        ) as span:
            yield span

    def answered(self, span: Any, method: str, route: str, status: int) -> None:
        """Say what became of a request: its route, with no name from its path, and its status."""
        span.update_name(f"{method} {route}")
        span.set_attribute("http.request.method", method)
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", status)
        if status >= 500:
            span.set_status(self._api.StatusCode.ERROR)

    def refreshed(self, how: str, began_ns: int, version: int) -> None:
        """Tell of a snapshot that was built or loaded."""
        attributes = {"compactuary.refresh": how, "compactuary.snapshot.version": version}
        span = self._tracer.start_span("refresh", start_time=began_ns, attributes=attributes)
        span.end(end_time=time.time_ns())

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def on_refresh(traces: Traces | None) -> Callable[[str, int, int], None] | None:
    """Return what a refresher calls after each snapshot, or None where nothing is traced."""
    return None if traces is None else traces.refreshed


def open_traces(wanted: bool | None) -> Traces | None:
    """Begin to trace to the collector that OpenTelemetry's own variables name.

    Parameters
    ----------
    wanted : bool or None
        None is where OpenTelemetry is installed.

    Raises
    ------
    MissingExtraError
        If it is wanted and not installed.
    """
    if wanted is False:
        return None
    try:
        sdk = import_module("opentelemetry.sdk.trace")
        batches = import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor
        resources = import_module("opentelemetry.sdk.resources").Resource
        exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ModuleNotFoundError as error:
        missing = MissingExtraError(
            "traces need OpenTelemetry, which is not installed",
            remedy='Install it with: pip install "compactuary[otel]"',
        )
        if wanted:
            raise missing from error
        _LOGGER.warning("nothing is traced: %s", missing)
        return None
    named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": _SERVICE}
    provider = sdk.TracerProvider(resource=resources.create(named))
    provider.add_span_processor(batches(exporter.OTLPSpanExporter()))
    return Traces(provider)
