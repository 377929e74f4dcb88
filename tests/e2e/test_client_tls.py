"""The client over TLS: certificates are verified, connections kept, and nothing is left open."""

import asyncio
import gc
import shutil
import socket
import ssl
import subprocess
import sys
import threading

import pytest

import compactuary

PATIENCE_SECONDS = 30.0
ROLE = "dev-front"

pytestmark = pytest.mark.enable_socket  # loopback only


TLS_SERVER = """
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        body = b'{"decision": "wait", "port": %d}' % self.client_address[1]
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


@pytest.fixture
def tls(tmp_path):
    """Return the URL of a server with a certificate of its own making, and that certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    process = subprocess.Popen(
        [sys.executable, "-c", TLS_SERVER, str(certificate), str(key)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    yield f"https://127.0.0.1:{int(process.stdout.readline())}", certificate
    process.kill()
    process.wait()
    process.stdout.close()


def test_tls_is_verified_and_its_connections_are_kept(tls, monkeypatch):
    url, certificate = tls

    async def ask_twice():
        async with compactuary.AsyncClient(url, cache=False, budget_seconds=5) as client:
            return [await client.should_compact(ROLE, 1, 1000) for _ in range(2)]

    with compactuary.Client(url, cache=False, budget_seconds=5) as client:
        advice = client.should_compact(ROLE, 1, 1000)
    assert advice.fallback == "unreachable"
    assert "certificate" in advice.reason
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with compactuary.Client(url, cache=False, budget_seconds=5) as client:
        said = [client.should_compact(ROLE, 1, 1000) for _ in range(5)]
    assert {advice.source for advice in said} == {"server"}
    assert len({advice.answer["port"] for advice in said}) == 1
    said = asyncio.run(ask_twice())
    assert {advice.source for advice in said} == {"server"}
    assert len({advice.answer["port"] for advice in said}) == 1


@pytest.fixture
def speechless(tls):
    """Return the URL of a TLS server that answers once, and never says farewell."""
    _, certificate = tls
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def run():
        with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            connection.recv(1 << 16)
            body = b'{"decision": "wait", "reason": {"text": "Served."}}'
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            over.wait(PATIENCE_SECONDS)

    thread = threading.Thread(target=run)
    thread.start()
    yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    over.set()
    thread.join(PATIENCE_SECONDS)
    listener.close()


def test_closing_waits_for_no_farewell_and_leaves_nothing_open(speechless, tls, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))

    async def ask():
        async with compactuary.AsyncClient(speechless, cache=False, budget_seconds=5) as client:
            return await client.should_compact(ROLE, 1, 1000)

    assert asyncio.run(ask()).source == "server"
    gc.collect()  # a transport left open would be told of here, as an error
