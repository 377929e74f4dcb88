"""A role whose turns become three times as long: one alarm, in the shell and over HTTP."""

import json
import shutil
import time
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

#: As many turns of the changed role are like its reference of 300, and as many are not.
CHANGED_AT, TURNS = 400, 600
REFRESHED_SECONDS = 20.0


def geometric(mean, seed, many):
    """Lives that go on with probability 1 − 1/mean after each call."""
    chance = Random(seed)
    for _ in range(many):
        calls = 1
        while chance.random() > 1 / mean:
            calls += 1
        yield calls


@pytest.fixture(scope="module")
def lives():
    before = list(geometric(8, 1, CHANGED_AT))
    return {
        "changed": before + list(geometric(24, 2, TURNS - CHANGED_AT)),
        "steady": list(geometric(8, 3, 450)),
        "young": list(geometric(8, 4, 120)),
    }


@pytest.fixture(scope="module")
def table(lives, tmp_path_factory):
    """A table of turns, one of each role every two hours."""
    rows = ["turn_id,session_id,role,ended_at,status,tool_calls"]
    for role, calls in lives.items():
        for number, made in enumerate(calls):
            ended = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(hours=2 * number)
            rows.append(f"{role}-{number:03},s,{role},{ended.isoformat()},ended,{made}")
    path = tmp_path_factory.mktemp("drift") / "turns.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def ledger_file(compactuary, table, tmp_path):
    path = tmp_path / "ledger.db"
    done = compactuary("import", table, "--db", path)
    assert "1,170 new turns" in done.out, done.err
    return path


def test_one_alarm_tells_before_and_after(compactuary, ledger_file, lives):
    report = json.loads(compactuary("drift", "--json", "--db", ledger_file).out)
    rows = {row["role"]: row for row in report}
    assert list(rows) == ["changed", "steady", "young"]
    assert [len(row["alarms"]) for row in report] == [1, 0, 0]
    (alarm,) = rows["changed"]["alarms"]
    assert alarm["direction"] == "longer"
    raised = int(alarm["turn_id"].removeprefix("changed-"))
    assert CHANGED_AT < raised < CHANGED_AT + 50
    assert alarm["turns_since_reference"] == raised + 1 - 300
    calls = lives["changed"]
    began = raised + 1 - alarm["after"]["turns"]
    assert abs(began - CHANGED_AT) <= 20
    for told, part in (("before", calls[:300]), ("after", calls[began : raised + 1])):
        assert alarm[told]["turns"] == len(part)
        assert alarm[told]["m"]["0"] == pytest.approx(sum(part) / len(part))
    # What comes after the alarm is gathered as the new normal.
    again = calls[raised + 1 :]
    assert rows["changed"]["status"] == "gathering a reference"
    assert rows["changed"]["reference_turns"] == len(again)
    assert rows["changed"]["reference"]["m"]["0"] == pytest.approx(sum(again) / len(again))
    assert (rows["steady"]["status"], rows["steady"]["turns_watched"]) == ("watching", 150)
    assert rows["steady"]["statistic"] < rows["steady"]["threshold"]
    # 300 turns, two hours apart.
    assert rows["steady"]["threshold"] == pytest.approx(300 / (299 * 2) * 24 * 365.25)
    assert rows["young"]["reference_turns"] == 120
    # Asked again, nothing is counted again.
    assert json.loads(compactuary("drift", "--json", "--db", ledger_file).out) == report


def test_the_text_says_the_same(compactuary, ledger_file, tmp_path):
    report = json.loads(compactuary("drift", "--json", "--db", ledger_file).out)
    (alarm,) = report[0]["alarms"]
    left = report[0]["reference_turns"]
    lines = compactuary("drift", "--db", ledger_file).out.splitlines()
    assert lines[0] == f"changed: gathering a new reference, {left} of 300 turns"
    assert lines[1].strip().startswith(f"{alarm['at']}: turns became longer, seen after ")
    for line, name in zip(lines[2:5], ("before", "after", "since then"), strict=True):
        assert line.strip().startswith(name)
        assert "turns: m(0) = " in line
    assert lines[5].startswith("steady: watching, 150 turns since the reference; evidence ")
    assert lines[5].endswith(f", an alarm at {report[1]['threshold']:,.0f}")
    assert lines[6:] == ["young: gathering a reference, 120 of 300 turns"]
    nothing = compactuary("drift")
    assert (nothing.out, nothing.err) == ("No role has turns with a time yet.\n", "")
    assert compactuary("drift", "--json").out == "[]\n"


@pytest.mark.enable_socket  # loopback only
def test_the_service_finds_what_the_command_finds(compactuary, serve, ledger_file, tmp_path):
    served = shutil.copy(ledger_file, tmp_path / "served.db")
    expected = json.loads(compactuary("drift", "--json", "--db", ledger_file).out)
    client, _ = serve(served, "--workers", "2")
    # The refreshers of the workers look at the turns; nobody ran the command on this ledger.
    deadline = time.monotonic() + REFRESHED_SECONDS
    while (told := client.get("/drift").json()) != expected:
        assert time.monotonic() < deadline, told
        time.sleep(0.05)
    new = {"turn_id": "new", "role": "young", "tool_calls": 3, "ended_at": "2026-08-01T00:00:00Z"}
    assert client.post("/turns", json=[new]).status_code == 200
    while client.get("/drift").json()[2]["reference_turns"] != 121:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    command = json.loads(compactuary("drift", "--json", "--db", served).out)
    assert command == client.get("/drift").json()


def test_turns_imported_behind_a_detector_are_seen_once_it_starts_again(
    compactuary, tmp_path, lives
):
    """The 300 reference turns of the role that changed come in after its later ones."""
    ledger = tmp_path / "late.db"
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def written(numbers):
        lines = ["role,turn_id,tool_calls,started_at,ended_at"]
        for number in numbers:
            at = (begin + timedelta(hours=number)).isoformat()
            lines.append(f"changed,t{number},{lives['changed'][number]},{at},{at}")
        path = tmp_path / f"from-{numbers[0]}.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    count = len(lives["changed"])
    compactuary("import", "--db", ledger, written(range(300, count)))
    assert json.loads(compactuary("drift", "--json", "--db", ledger).out)[0]["alarms"] == []
    compactuary("import", "--db", ledger, written(range(300)))
    [row] = json.loads(compactuary("drift", "--json", "--db", ledger).out)
    assert row["alarms"] == []
    [row] = json.loads(compactuary("drift", "--again", "--json", "--db", ledger).out)
    assert [alarm["direction"] for alarm in row["alarms"]] == ["longer"]
