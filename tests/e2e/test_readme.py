"""The README's commands, letter for letter, against the example and a live server."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

REPO = Path(__file__).parents[2]
README = (REPO / "README.md").read_text("utf-8")
PORT = "127.0.0.1:8338"

pytestmark = pytest.mark.enable_socket


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def commands(word):
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [line.split("  #")[0] for line in lines if line.startswith(word + " ")]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with the generated Claude Code tree where Claude Code keeps its own."""
    folder = tmp_path_factory.mktemp("home")
    words = [sys.executable, "-m", "examples", str(folder / "example")]
    subprocess.run(words, cwd=REPO, check=True)
    (folder / ".claude").mkdir()
    (folder / "example" / "projects").rename(folder / ".claude" / "projects")
    return folder


@pytest.fixture(scope="module")
def environment(home):
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "COMPACTUARY_DB": str(home / "ledger.db"),
        "PYTHONPATH": str(REPO),
        "NO_COLOR": "1",
    }


def run(line, environment, home):
    words = shlex.split(line)
    if words[0] == "compactuary":
        words[:1] = [sys.executable, "-W", "error", "-m", "compactuary"]
    done = subprocess.run(
        words, env=environment, cwd=home, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def filled(environment, home):
    run(f"compactuary import {home / 'example' / 'note_turns.csv'}", environment, home)
    return [run(line, environment, home) for line in commands("compactuary")]


@pytest.fixture(scope="module")
def server(filled, environment, home):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen(
        [sys.executable, "-m", "compactuary", "serve", "--port", address.split(":")[1]],
        env=environment,
        cwd=home,
        stderr=subprocess.PIPE,
    )
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://{address}/readyz", timeout=1).close()
            break
        except OSError:
            time.sleep(0.05)
    yield address
    process.terminate()
    process.wait(10)
    process.stderr.close()


def test_commands_import_and_answer(filled):
    imported, table, decided, audited, reported = filled
    assert "found " in imported.stderr
    assert "69 new turns" in imported.stdout
    assert re.search(r"dev-front +│ +412 │ 40\.9 │ +31 │ 40\.9 │ 39\.1 │ +38\.0", table.stdout)
    assert re.search(r"triage +│ +212 │ +8\.4 │ +6 │ +8\.4 │ +8\.3 │ +8\.1", table.stdout)
    assert "break-even of 6.8 requests" in table.stdout
    assert decided.stdout.startswith(("compact: main turns", "wait: main turns"))
    assert "compactions in" in audited.stdout
    assert "report.html" in reported.stdout + reported.stderr


def test_curl_gets_the_answer_that_the_readme_shows(server, environment, home):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    first, *writes = commands("curl")
    shown = json.loads(blocks("json")[0].replace(", …}", "}"))
    answer = json.loads(run(f"{first.replace(PORT, server)} -s -f", environment, home).stdout)
    assert answer["reason"]["text"] == shown.pop("reason")["text"]
    interval = shown.pop("interval")
    for name in ("decision", "pays"):
        assert answer[name] == shown.pop(name)
    for name, value in shown.items():
        assert round(answer[name], len(str(value).split(".")[1])) == value, name
    for end in ("lower", "upper"):
        assert round(answer["interval"][end], 1) == interval[end], end
    for line in writes:
        known = json.loads(run(f"{line.replace(PORT, server)} -s -f", environment, home).stdout)
    assert known == {"turn_id": "turn-1", "status": "ended", "tool_calls": 1, "requests": 1}


class Agent:
    """An agent of 40 requests whose context grows, until it is told to compact it."""

    def __init__(self):
        self.context_tokens, self.left, self.compacted = 40_000, 40, []

    @property
    def done(self):
        return self.left == 0

    def compact(self):
        self.compacted.append(self.context_tokens)
        self.context_tokens = 30_000
        return self.context_tokens

    def request(self):
        self.left -= 1
        self.context_tokens += 5_000
        usage = {"uncached": 3, "cache_read": self.context_tokens, "output": 400}
        calls = [SimpleNamespace(id=f"loop-call-{self.left}", name="Bash")]
        return SimpleNamespace(id=f"loop-{self.left}", usage=usage, tool_calls=calls)


def test_the_loop_asks_and_goes_on_without_an_answer(server, home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    for address, compacts in [(server, True), ("127.0.0.1:1", False)]:
        monkeypatch.setenv("COMPACTUARY_URL", f"http://{address}")
        loop, agent = {}, Agent()
        exec(blocks("python")[0], loop)
        loop["work"](agent, "a session of the loop's")
        assert agent.done
        assert bool(agent.compacted) is compacts
        if compacts:
            assert loop["client"].flush(30)
            assert loop["client"].counters["records_delivered"] == 42 + len(agent.compacted)
        loop["client"].close(0)


def test_every_make_target_it_names_exists():
    targets = set(re.findall(r"^([a-z]+):.*## ", (REPO / "Makefile").read_text(), re.MULTILINE))
    named = {line.split()[1] for line in commands("make")}
    assert named == {"run", "test"}
    assert named <= targets


def test_every_file_it_links_to_exists():
    links = re.findall(r"\]\(([^)#]+)", README)
    assert all((REPO / link).exists() for link in links), links
