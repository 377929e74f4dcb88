"""Spans, where OpenTelemetry is installed; nothing of it is imported where nobody wants it."""

import subprocess
import sys

import pytest

from api import traces
from api.settings import Settings
from api.traces import Traces, open_traces
from compactuary.errors import MissingExtraError


def _spans():
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: PLC0415
        InMemorySpanExporter,
    )

    exporter = InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Traces(provider), exporter


def test_a_request_is_a_span_below_its_callers():
    made, exporter = _spans()
    parent = (b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    scope = {"method": "PUT", "headers": [parent, (b"authorization", b"Bearer secret")]}
    with made.request(scope) as span:
        made.answered(span, "PUT", "/turns/{turn_id:path}", 200)
    (told,) = exporter.get_finished_spans()
    assert told.name == "PUT /turns/{turn_id:path}"
    assert f"{told.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert f"{told.parent.span_id:016x}" == "b7ad6b7169203331"
    assert dict(told.attributes) == {
        "http.request.method": "PUT",
        "http.route": "/turns/{turn_id:path}",
        "http.response.status_code": 200,
    }
    assert "secret" not in told.to_json()


def test_a_fault_is_an_error_and_a_refresh_a_span():
    made, exporter = _spans()
    with made.request({"method": "GET", "headers": []}) as span:
        made.answered(span, "GET", "/roles", 500)
    made.refreshed("built", 1_000, 7)
    fault, refresh = exporter.get_finished_spans()
    assert not fault.status.is_ok
    assert fault.parent is None
    assert (refresh.name, refresh.start_time) == ("refresh", 1_000)
    assert refresh.attributes["compactuary.snapshot.version"] == 7


def test_without_opentelemetry_a_wish_is_refused_and_a_hint_is_not(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(traces, "import_module", missing)
    assert open_traces(wanted=False) is None
    assert open_traces(wanted=None) is None
    with pytest.raises(MissingExtraError, match=r"compactuary\[otel\]"):
        open_traces(wanted=True)


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, None),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318"}, None),
        ({"COMPACTUARY_TRACES": "on"}, True),
        ({"COMPACTUARY_TRACES": "off", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, False),
    ],
)
def test_who_wants_traces(environment, wanted):
    assert Settings.from_environment(environment).traces is wanted


def test_nothing_of_the_sdk_is_imported_unless_it_is_wanted():
    code = "import sys, api.app; sys.exit(any('opentelemetry.sdk' in name for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
