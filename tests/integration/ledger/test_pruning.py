"""Old turns go; what estimates see stays to the bit, and no log brings anything back."""

import random
import shutil
from pathlib import Path

import pytest
from sqlalchemy import select

import api.estimates
import api.learning
from api.estimates import Estimates, build_snapshot
from examples.claude_code_tree import write_tree
from examples.note_table import write_note_table
from ledger import pruning
from ledger.backup import backup
from ledger.database import open_engine, reading, writing
from ledger.decisions import DecisionMade, write_decisions
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.importing import ImportOptions, import_logs
from ledger.pruning import Kept, Pruned, prune
from ledger.recording import record
from ledger.retention import pruned_before
from ledger.schema import compactions, decisions, requests, tool_calls, turns
from ledger.usage import Usage
from tests.integration.ledger.rows import rows_of, version_of

#: What a test's estimates look back to, so that small ledgers have something to prune.
RECENT, LEARNED, LATEST = 20, 10, 6
KEPT = Kept(RECENT, LATEST)
HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_700_000_000_000
FUTURE = START + 10_000 * DAY


@pytest.fixture(autouse=True)
def looking_back_a_little(monkeypatch):
    monkeypatch.setattr(api.estimates, "RECENT_TURNS", RECENT)
    monkeypatch.setattr(api.estimates, "LEARNED_TURNS", LEARNED)
    monkeypatch.setattr(api.learning, "LEARNED_TURNS", LEARNED)
    monkeypatch.setattr(api.learning, "LEARNED_COMPACTIONS", LATEST)
    monkeypatch.setattr(pruning, "PART_TURNS", 7)
    monkeypatch.setattr(pruning, "PART_ROWS", 11)


def _turn_events(turn_id, session_id, role, at_ms, calls, draw, status="ended"):
    yield TurnStarted(turn_id, session_id, session_id, "test", role, at_ms, model="claude-opus-5")
    context = 20_000
    for place in range(calls + 1):
        new = draw.randrange(200, 3000)
        yield RequestMade(
            f"{turn_id}:{place}",
            session_id,
            turn_id,
            place,
            at_ms + place * 10_000,
            "claude-opus-5",
            Usage(uncached=3, cache_read=context, cache_write_5m=new, output=draw.randrange(900)),
            ((f"{turn_id}:{place}", "read"),) if place < calls else (),
        )
        context += new
    if status != "open":
        yield TurnReached(turn_id, session_id, status, None, at_ms + calls * 10_000 + 5)


def _compaction_events(session_id, turn_id, number, at_ms, requests_before):
    compaction_id = f"c{number}"
    yield RequestMade(
        f"{compaction_id}-call", session_id, None, None, at_ms - 5, "m",
        Usage(cache_read=90_000, output=2500), kind="compaction",
    )  # fmt: skip
    yield CompactionMade(
        compaction_id, session_id, turn_id, at_ms, "auto", "summary", 150_000, 30_000,
        calls_before=requests_before, requests_before=requests_before,
    )  # fmt: skip


def fill(engine, days=120, seed=1):
    """Turns of three roles and an hour apart, in sessions of some or of all days."""
    draw = random.Random(seed)
    events = []
    for number in range(days * 3):
        at_ms = START + number * 8 * HOUR
        role = draw.choice(["main", "main", "Explore", "rare"] if number % 9 else ["main"])
        session_id = "for ever" if number % 5 == 0 else f"s{number // 12}"
        status = "open" if number in (4, 200) else draw.choice(["ended", "ended", "cut"])
        told = _turn_events(f"t{number}", session_id, role, at_ms, draw.randrange(12), draw, status)
        events += told
        if number % 25 == 7:
            inside = number % 2
            at_ms += 35_000 if inside else 2 * HOUR
            turn_id = f"t{number}" if inside else None
            events += _compaction_events(session_id, turn_id, number, at_ms, 2 if inside else 0)
    events += [
        TurnStarted("no time", "s0", "s0", "test", "main"),
        TurnReached("no time", "s0", "ended", None, None, 4, 5),
    ]
    with writing(engine) as connection:
        for start in range(0, len(events), 300):
            record(connection, events[start : start + 300])
        write_decisions(connection, [_decision(number, days) for number in range(days * 3)])


def _decision(number, days):
    turn_id = f"t{number}" if number % 2 else None
    at_ms = START + number * 8 * HOUR
    facts = dict.fromkeys(DecisionMade._fields)
    facts |= {"decision_id": f"d{number}", "at_ms": at_ms, "turn_id": turn_id, "role": "main"}
    facts |= {"unit": "tool_calls", "calls": 1, "decision": "wait", "would_decide": "wait"}
    facts |= {"rule": "break-even", "reason": "pays", "moment": "call", "mode": "enforce"}
    facts |= {"cost": 1.0, "saving_per_call": 1.0, "source": "role", "snapshot_version": 1}
    return DecisionMade(**(facts | {"policy_version": "1"}))


def snapshot(engine):
    with reading(engine) as connection:
        return build_snapshot(connection, Estimates(), 0)


def ids(engine, column):
    with reading(engine) as connection:
        return set(connection.scalars(select(column)))


def staying(rows, before_ms, compacted):
    """Which turns stay, worked out row by row from what the documentation says."""
    stay = set(compacted)
    for role in {row["role"] for row in rows}:
        closed = [row for row in rows if row["role"] == role and row["status"] != "open"]
        timed = [row for row in closed if row["last_ms"] is not None]
        timed.sort(key=lambda row: (row["last_ms"], row["turn_id"]))
        stay |= {row["turn_id"] for row in timed[-RECENT:]}
    for row in rows:
        if row["status"] == "open" or row["last_ms"] is None or row["last_ms"] >= before_ms:
            stay.add(row["turn_id"])
    for row in rows:
        line = [other for other in rows if (other["thread_id"], other["role"]) == (
            row["thread_id"], row["role"])]  # fmt: skip
        first = min((one for one in line if one["started_ms"]), key=lambda one: one["started_ms"])
        if stay & {one["turn_id"] for one in line}:
            stay.add(first["turn_id"])
    return stay


def test_what_goes_and_what_stays(ledger):
    fill(ledger)
    before = snapshot(ledger)
    before_ms = START + 90 * DAY
    rows = rows_of(ledger)
    latest = sorted(rows["compactions"], key=lambda row: row["at_ms"])[-LATEST:]
    started = {row["turn_id"]: row for row in rows["turns"]}
    compacted = {row["turn_id"] for row in latest if row["turn_id"]}
    for row in latest:
        if not row["turn_id"]:
            later = [
                turn
                for turn in rows["turns"]
                if turn["thread_id"] == row["session_id"]
                and (turn["started_ms"] or 0) >= row["at_ms"]
            ]
            compacted |= {min(later, key=lambda turn: turn["started_ms"])["turn_id"]}
    expected = staying(rows["turns"], before_ms, compacted)
    assert 60 < len(expected) < 250

    counted = prune(ledger, before_ms, KEPT, dry_run=True)
    assert rows_of(ledger) == rows
    done = prune(ledger, before_ms, KEPT)
    assert done.turns == counted.turns == len(rows["turns"]) - len(expected)
    assert (done.tool_calls, done.compactions) == (counted.tool_calls, counted.compactions)
    assert done.decisions == counted.decisions

    assert ids(ledger, turns.c.turn_id) == expected
    left = rows_of(ledger)
    assert left["histogram"] == rows["histogram"]
    assert left["request_pace"] == rows["request_pace"]
    for name in ("requests", "tool_calls"):
        of_turns = [row for row in left[name] if row["turn_id"] is not None]
        assert of_turns == [row for row in rows[name] if row["turn_id"] in expected]
    kept_compactions = {
        row["compaction_id"]
        for row in rows["compactions"]
        if row["at_ms"] >= before_ms or row["turn_id"] in expected or row in latest
    }
    assert ids(ledger, compactions.c.compaction_id) == kept_compactions
    calls = {row["request_id"] for row in left["requests"] if row["turn_id"] is None}
    assert calls == {f"{compaction_id}-call" for compaction_id in kept_compactions}
    assert ids(ledger, decisions.c.decision_id) == {
        f"d{number}"
        for number in range(360)
        if (number % 2 and f"t{number}" in expected) or START + number * 8 * HOUR >= before_ms
    }
    assert started.keys() >= expected

    after = snapshot(ledger)
    assert after.content_hash == before.content_hash
    assert after.version == before.version
    assert prune(ledger, before_ms, KEPT) == Pruned()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("days", [30, 75, 119, 10_000])
def test_estimates_and_parameters_do_not_move(sqlite_ledger, seed, days):
    fill(sqlite_ledger, seed=seed)
    before = snapshot(sqlite_ledger)
    assert prune(sqlite_ledger, START + days * DAY, KEPT).turns > 0
    assert snapshot(sqlite_ledger).content_hash == before.content_hash


def test_estimates_go_on_alike_with_and_without_pruning(tmp_path, sqlite_ledger):
    fill(sqlite_ledger)
    backup(Path(sqlite_ledger.url.database), tmp_path / "other.db")
    unpruned = open_engine(str(tmp_path / "other.db"))
    prune(sqlite_ledger, FUTURE, KEPT)
    draw = random.Random(7)
    for number in range(40):
        at_ms = START + (200 + number) * DAY
        told = list(_turn_events(f"n{number}", "for ever", "main", at_ms, 5, draw))
        told += _compaction_events("for ever", f"n{number}", f"n{number}", at_ms + 25_000, 2)
        for engine in (sqlite_ledger, unpruned):
            with writing(engine) as connection:
                record(connection, told)
        assert snapshot(sqlite_ledger).content_hash == snapshot(unpruned).content_hash
    unpruned.dispose()


def test_logs_read_again_bring_nothing_back(ledger, tmp_path):
    write_tree(tmp_path / "logs", sessions=12, body_chars=20)
    write_note_table(tmp_path / "logs" / "note.csv")
    assert not [one.error for one in import_logs(ledger, [tmp_path / "logs"]) if one.error]
    facts = rows_of(ledger)
    done = prune(ledger, FUTURE, Kept(3, 1))
    assert done.turns > 20
    pruned = rows_of(ledger)
    assert len(pruned["turns"]) + done.turns == len(facts["turns"])
    version = version_of(ledger)

    shutil.copytree(tmp_path / "logs", tmp_path / "copies")
    for path in (tmp_path / "logs").rglob("*.csv"):
        path.write_text(path.read_text() + "\n")  # a table is read again from its beginning
    left_out = 0
    for folder, options in (
        ("logs", ImportOptions()),
        ("logs", ImportOptions(reread=True)),
        ("copies", ImportOptions()),
        ("copies", ImportOptions(reread=True)),
    ):
        for path in (tmp_path / folder).rglob("*.jsonl"):
            if options.reread:
                path.write_bytes(path.read_bytes())  # another time, so that it is read at all
        reports = import_logs(ledger, [tmp_path / folder], options)
        assert not [report.error for report in reports if report.error]
        assert sum(report.recorded.turns for report in reports) == 0
        left_out += sum(report.recorded.left_out for report in reports)
        assert rows_of(ledger) == pruned
        assert version_of(ledger) == version
    assert left_out >= done.turns


def test_a_session_that_goes_on_after_pruning_adds_only_its_new_turn(ledger, tmp_path):
    write_tree(tmp_path, sessions=3, body_chars=20)
    whole = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    for path, text in whole.items():
        lines = text.splitlines(keepends=True)
        path.write_bytes(b"".join(lines[: len(lines) // 2]))
    import_logs(ledger, [tmp_path])
    first = {row["turn_id"] for row in rows_of(ledger)["turns"]}
    prune(ledger, FUTURE, Kept(1, 1))
    pruned = first - {row["turn_id"] for row in rows_of(ledger)["turns"]}
    assert pruned
    for path, text in whole.items():
        path.write_bytes(text)
    import_logs(ledger, [tmp_path])
    assert pruned.isdisjoint(row["turn_id"] for row in rows_of(ledger)["turns"])


def test_nothing_is_remembered_where_nothing_went(sqlite_ledger):
    fill(sqlite_ledger, days=5)
    assert prune(sqlite_ledger, FUTURE, KEPT).turns == 0
    with reading(sqlite_ledger) as connection:
        assert pruned_before(connection) is None


def test_a_pruning_that_breaks_off_goes_on(sqlite_ledger):
    fill(sqlite_ledger)
    before = snapshot(sqlite_ledger)
    parts = []

    def twice(part):
        parts.append(part)
        if len(parts) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(sqlite_ledger, FUTURE, KEPT, progress=twice)
    assert snapshot(sqlite_ledger).content_hash == before.content_hash
    left = prune(sqlite_ledger, FUTURE, KEPT)
    assert left.turns > 0
    assert snapshot(sqlite_ledger).content_hash == before.content_hash
    tables = ids(sqlite_ledger, requests.c.turn_id) | ids(sqlite_ledger, tool_calls.c.turn_id)
    assert tables - {None} <= ids(sqlite_ledger, turns.c.turn_id)
