"""The accounts behind HTTP, so that the providers' own SDKs can talk to them."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.provider.anthropic_messages import Messages, RefusedError
from tests.provider.openai_responses import Responses


class Server(ThreadingHTTPServer):
    """Holds the account, and the faults that are still to come."""

    daemon_threads = True

    def __init__(self, account, faults):
        super().__init__(("127.0.0.1", 0), Handler)
        self.account, self.faults = account, list(faults)
        self.stopping = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        fault = self.server.faults.pop(0) if self.server.faults else None
        if isinstance(fault, float):
            self.server.stopping.wait(fault)
            self.close_connection = True
        elif isinstance(fault, str):
            self._send(200, fault.encode())
        elif fault:
            self._send(fault, _error("overloaded_error", "Overloaded"))
        else:
            self._answer(json.loads(body))

    def _answer(self, body):
        try:
            made = self._asked(body)
        except RefusedError as error:
            self._send(error.status, _error(error.kind, str(error)))
        else:
            self._send(200, json.dumps(made).encode())

    def _asked(self, body):
        account, path = self.server.account, self.path.partition("?")[0]
        if isinstance(account, Messages) and path == "/v1/messages":
            if not self.headers.get("anthropic-version"):
                raise RefusedError("anthropic-version: header is required")
            return account.respond(body, self.headers.get("anthropic-beta", "").split(","))
        if isinstance(account, Responses) and path == "/v1/responses":
            return account.respond(body)
        if isinstance(account, Responses) and path == "/v1/responses/compact":
            return account.compact(body)
        raise RefusedError(f"{path} is not served", 404, "not_found_error")

    def _send(self, status, content):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *words):
        """Say nothing: requests are in the account's log."""


@contextmanager
def served(account, faults=()):
    """Serve an account in a thread and yield its address.

    `faults` are used up one a request, None for a request without one: a status to fail with, a
    text to send instead of JSON, or seconds (a float) to be silent before hanging up.
    """
    server = Server(account, faults)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _error(kind, message):
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
