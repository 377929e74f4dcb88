"""`compactuary lab` as people start it: the page's session, a terminal, a service, providers."""

import json
import os
import pty
import re
import select
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from cli.app import run
from tests.e2e.conftest import PATIENCE_SECONDS, environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "lab.md").read_text("utf-8")
TALK = [
    {"role": "user", "content": "q" * 4_000},
    {"role": "assistant", "content": "a" * 4_000},
    {"role": "user", "content": "password = 'hunter2hunter2'"},
    {"role": "assistant", "content": "noted"},
    {"role": "user", "content": "more"},
]


def test_the_session_of_the_page_is_what_the_command_prints(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (words, session) = re.search(
        r"```sh\n(compactuary lab talk.*?)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL
    ).groups()
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    typed = re.findall(r"^lab> (.*)$", session, re.MULTILINE)
    assert len(typed) == 9
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", *words.split()],
        cwd=tmp_path,
        env=environment(tmp_path),
        input="\n".join(typed),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.stderr, done.returncode) == (session, "", 0)


def test_a_service_decides_as_the_ledger_does(compactuary, serve, example_ledger, tmp_path):
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    client, _ = serve(example_ledger)
    words = ["lab", "talk.json", "--json", "--role", "dev-front", "--model", "claude-opus-4-8"]
    words += ["--command", "/decide sliding_window keep_last=1"]
    asked = compactuary(*words, "--url", str(client.base_url).rstrip("/"))
    local = compactuary(*words, "--db", example_ledger)
    assert (asked.code, asked.err, local.code, local.err) == (0, "", 0, "")
    service, ledger = json.loads(asked.out), json.loads(local.out)
    assert service["source"] == "server"
    assert service["asked"] == ledger["asked"]
    same = ("decision", "cost", "saving_per_call", "break_even_calls", "expected_remaining_calls")
    assert {name: service[name] for name in same} == {name: ledger[name] for name in same}
    # 2,008 tokens before, the last prompt's one after; nothing of it is in the cache.
    assert service["asked"]["context_after_tokens"] == 1


class Provider(BaseHTTPRequestHandler):
    """Answers as two providers' APIs do, and keeps what it was asked."""

    asked: list[dict]

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append({"path": self.path, **body})
        if self.path.endswith("/messages"):
            answer = {
                "id": "m", "type": "message", "role": "assistant", "model": body["model"],
                "content": [{"type": "text", "text": "All is well."}],
                "stop_reason": "end_turn", "stop_sequence": None,
                "usage": {"input_tokens": 900, "output_tokens": 12,
                          "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
            }  # fmt: skip
        else:
            text = {"type": "output_text", "text": "All is well.", "annotations": []}
            answer = {
                "id": "r", "object": "response", "created_at": 1, "model": body["model"],
                "status": "completed", "parallel_tool_calls": True, "tool_choice": "auto",
                "tools": [],
                "output": [{"id": "o", "type": "message", "role": "assistant",
                            "status": "completed", "content": [text]}],
                "usage": {"input_tokens": 900, "output_tokens": 12, "total_tokens": 912,
                          "input_tokens_details": {"cached_tokens": 0},
                          "output_tokens_details": {"reasoning_tokens": 0}},
            }  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        """Say nothing on the tests' standard error."""


@pytest.fixture
def provider():
    """Return a provider's address, and the list of what it was asked."""
    Provider.asked = []
    server = HTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Provider.asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_provider_writes_the_summary_and_sees_no_secret(
    provider, tmp_path, name, monkeypatch, capsys
):
    pytest.importorskip(name)
    address, asked = provider
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "k")
    words = ["--json", "--summarizer", name, "--summary-model", "gpt-5.1"]
    lines = ["--command", "/compact summarize keep_recent=1", "--command", "/show 0"]
    code = run(["lab", str(tmp_path / "talk.json"), *words, *lines])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    compacted, shown = map(json.loads, out.splitlines())
    assert compacted["changed"]
    assert compacted["summarised"] == [0, 1, 2, 3]
    assert shown["text"].endswith("All is well.")
    (request,) = asked
    assert request["model"] == "gpt-5.1"
    assert "Do not call any tools" in json.dumps(request)
    assert "hunter2" not in json.dumps(request)
    assert "tools" not in request


def _read_until(terminal, text, seen):
    """Read what a terminal shows until it shows a text."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while text not in seen[0]:
        assert time.monotonic() < deadline, seen[0]
        if select.select([terminal], [], [], 0.2)[0]:
            seen[0] += os.read(terminal, 65536).decode(errors="replace")
    seen[0] = seen[0].partition(text)[2]


def test_on_a_terminal_it_prompts_and_an_error_leaves_it_open(tmp_path):
    pytest.importorskip("prompt_toolkit")
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    terminal, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "compactuary", "lab", "talk.json"],
        cwd=tmp_path,
        env=environment(tmp_path, TERM="xterm", PROMPT_TOOLKIT_NO_CPR="1"),
        stdin=inner,
        stdout=inner,
        stderr=inner,
    )
    os.close(inner)
    seen = [""]
    try:
        _read_until(terminal, "5 messages (anthropic), 2,010 tokens. /help", seen)
        _read_until(terminal, "lab>", seen)
        os.write(terminal, b"/undo\r")
        _read_until(terminal, "error: /undo: nothing was compacted yet.", seen)
        os.write(terminal, b"/compact sliding keep_last=1\r")
        _read_until(terminal, "dropped what was older than message 4", seen)
        os.write(terminal, b"/quit\r")
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    history = tmp_path / ".local" / "state" / "compactuary" / "lab_history"
    kept = [line[1:] for line in history.read_text().splitlines() if line.startswith("+")]
    assert kept == ["/undo", "/compact sliding keep_last=1", "/quit"]
