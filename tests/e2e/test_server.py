"""A live service on a loopback port, next to the commands that read the same ledger."""

import json
import shutil
import signal
import socket
import time

import pytest

from tests.e2e.conftest import PATIENCE_SECONDS

pytestmark = pytest.mark.enable_socket  # loopback only

ASKED = {"role": "dev-front", "calls": 30, "context_tokens": 150_000, "model": "claude-opus-4-8"}


@pytest.fixture
def ledger_file(example_ledger, tmp_path):
    return shutil.copy(example_ledger, tmp_path / "served.db")


def test_commands_and_service_answer_alike(compactuary, serve, ledger_file):
    client, process = serve(ledger_file)
    # The first question of a kind is answered by 'reorder', while its thresholds are compiled.
    answer = _until(
        lambda: client.post("/should-compact", json=ASKED).json(),
        lambda said: said["versions"]["thresholds"] is not None,
    )
    flags = [word for name, value in ASKED.items() for word in (_flag(name), value)]
    told = json.loads(compactuary("decide", *flags, "--json", "--db", ledger_file).out)
    assert told.pop("decision_id") != answer.pop("decision_id")
    assert told == answer
    assert answer["decision"] == "compact"
    tables = json.loads(compactuary("table", "--at", "0,5,30", "--json", "--db", ledger_file).out)
    served = client.get("/tables", params={"at": [0, 5, 30]}).json()
    by_role = {row["role"]: row for row in served}
    assert {row["role"]: row for row in tables} == by_role
    assert len(tables) == len(served) == 16
    prices = json.loads(compactuary("prices", "claude-opus-4-8", "--json").out)
    assert client.get("/prices/claude-opus-4-8").json() == prices
    assert client.get("/docs").status_code == 200
    _stops_at_once(process)


def _until(ask, is_so):
    began = time.monotonic()
    while not is_so(said := ask()):
        assert time.monotonic() - began < PATIENCE_SECONDS, said
        time.sleep(0.02)
    return said


def _flag(name):
    return "--" + name.replace("_", "-")


def _stops_at_once(process):
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_SECONDS)
    assert process.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in process.stderr.read()


def test_a_turn_recorded_through_one_worker_is_in_the_answers_of_both(serve, ledger_file):
    client, process = serve(ledger_file, "--workers", "2")
    asked = {"role": "fresh", "calls": 0, "cost": 1, "saving": 1}
    before = client.get("/should-compact", params=asked).json()
    assert before["basis"]["source"] == "all_roles"
    assert before["expected_remaining_calls"] > 7
    assert client.put("/turns/t", json={"role": "fresh", "session_id": "s"}).status_code == 200
    request = {"request_id": "r", "usage": {"output": 1}, "tool_calls": 7}
    assert client.post("/turns/t/requests", json=request).status_code == 200
    assert client.post("/turns/t/end", json={"status": "ended"}).status_code == 200
    told = time.monotonic()
    # 30 answers and tables in a row with the new turn: no worker still answers without it.
    in_a_row = 0
    while in_a_row < 30:
        answer = client.get("/should-compact", params=asked).json()
        table = client.get("/tables/fresh")
        knows = answer["basis"]["source"] == "role" and table.status_code == 200
        in_a_row = in_a_row + 1 if knows else 0
        assert time.monotonic() - told < PATIENCE_SECONDS, answer
    assert table.json()["rows"][0]["m"] == pytest.approx(7)
    # One end against the vote of 3 average turns.
    own, *others = answer["basis"]["rests_on"]
    assert (own["name"], own["turns"], own["weight"]) == ("fresh", 1, pytest.approx(1 / 4))
    assert sum(share["weight"] for share in others) == pytest.approx(3 / 4)
    assert 7 < answer["expected_remaining_calls"] < before["expected_remaining_calls"]
    _stops_at_once(process)


def test_a_taken_port_is_refused(compactuary, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = compactuary("serve", "--port", port, "--db", tmp_path / "l.db")
    assert done.code == 2
    assert done.err.startswith("error: --port: ")
    assert str(port) in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_price_file_that_is_wrong_is_refused_before_workers_start(compactuary, tmp_path, workers):
    prices = tmp_path / "prices.json"
    prices.write_text("{x")
    words = ("serve", "--db", tmp_path / "l.db", "--workers", workers)
    done = compactuary(*words, COMPACTUARY_PRICES=str(prices))
    assert done.code == 2
    assert done.err.startswith(f"error: {prices}: is no readable price file")
    assert done.err.count("\n") == 1
    assert done.out == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.org", "10.0.0.1"])
def test_only_this_machine_is_served(compactuary, tmp_path, host):
    done = compactuary("serve", "--host", host, "--db", tmp_path / "l.db")
    assert done.code == 2
    assert done.err.startswith("error: --host: ")
    assert host in done.err
    assert done.err.count("\n") == 1
