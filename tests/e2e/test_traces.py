"""Spans of a live service, sent to a collector of the test's own."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytestmark = pytest.mark.enable_socket  # loopback only


@pytest.fixture
def collector():
    """Return a collector's address, and what was sent to it."""
    sent = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            sent.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", sent
    server.shutdown()
    server.server_close()
    thread.join()


def test_requests_and_refreshes_reach_the_collector(serve, collector, tmp_path, monkeypatch):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    address, sent = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    client, process = serve(tmp_path / "l.db")
    body = {"role": "secret-role", "calls": 1, "cost": 1, "saving": 1}
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "authorization": "Bearer hunter2"}
    assert client.post("/should-compact", json=body, headers=headers).status_code == 200
    assert client.put("/turns/secret-id", json={"role": "r", "session_id": "s"}).status_code == 200
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert {path for path, _ in sent} == {"/v1/traces"}
    told = b"".join(body for _, body in sent)
    assert b"POST /should-compact" in told
    assert bytes.fromhex(trace) in told
    assert b"PUT /turns/{turn_id:path}" in told
    assert b"compactuary.snapshot.version" in told
    assert b"service.name" in told
    for kept in (b"secret-role", b"secret-id", b"hunter2"):
        assert kept not in told
