"""What the service said, against what happened, in the shell."""

import json
import signal

import pytest

pytestmark = pytest.mark.enable_socket  # loopback only

PAYS_FROM_SIX = {"role": "main", "session_id": "s", "cost": 12, "saving": 2}


def test_answers_are_logged_and_judged_once_the_service_has_stopped(compactuary, serve, tmp_path):
    db = tmp_path / "ledger.db"
    client, process = serve(db)
    for number in range(30):
        for calls in (0, 2):
            body = PAYS_FROM_SIX | {"turn_id": f"t{number}", "calls": calls}
            answer = client.post("/should-compact", json=body).json()
            assert answer["decision"] == "compact"
    finished = [
        {"turn_id": f"t{number}", "session_id": "s", "role": "main"}
        | {"tool_calls": 4 + number % 6, "requests": 5 + number % 6}
        for number in range(30)
    ]
    assert client.post("/turns", json=finished).status_code == 200
    client.close()
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    summary = json.loads(compactuary("decisions", "--db", db, "--json").out)
    assert (summary["decisions"], summary["judged"], summary["ended"]) == (60, 60, 60)
    assert summary["by_answer"] == {"compact": 60}
    # 4 … 9 calls remained at the first call, 2 … 7 after the second.
    (role,) = summary["by_role"]
    assert role["remaining"]["observed"] == 5.5
    assert summary["compact"]["turns"] == 30
    told = compactuary("decisions", "--db", db, "--role", "main", "--since", "2020-01-01")
    lines = told.out.splitlines()
    assert lines[0].startswith("60 decisions, 20")
    assert lines[1] == "60 are judged, 60 by a turn that has ended"
    assert lines[2].startswith("compact: 30 turns; paid in ")
    assert lines[3] == "wait: 0 decisions"
    assert any(line.startswith("main ") and " 5.5 " in line for line in lines)
    assert max(map(len, lines)) <= 110


def test_an_empty_log_says_so(compactuary, tmp_path):
    done = compactuary("decisions")
    assert done.out.startswith("No decision was logged.")
    assert not list(tmp_path.rglob("*.db"))


def test_a_wrong_time_is_refused(compactuary):
    done = compactuary("decisions", "--since", "yesterday")
    assert done.code == 2
    assert "--since" in done.err
