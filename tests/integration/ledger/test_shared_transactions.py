"""Files that share a transaction land as if each had one of its own."""

import pytest

from examples.claude_code_tree import write_tree
from ledger import importing
from ledger.database import open_engine
from ledger.importing import import_logs
from migrations.upgrade import upgrade
from tests.integration.ledger.rows import imported, rows_of, version_of
from tests.unit.ledger.transcript import Transcript, said, use


def session(name, turns=4):
    log = Transcript(session=name)
    for number in range(turns):
        log.user("Go.", uuid=f"{name}-p{number}")
        log.answer(f"{name}-m{number}a", use(f"{name}-t{number}"))
        log.result(f"{name}-t{number}")
        log.answer(f"{name}-m{number}b", said())
    return log


@pytest.fixture(params=[4000, 3], ids=["in memory", "behind a savepoint"])
def batch_events(request, monkeypatch):
    monkeypatch.setattr(importing, "BATCH_EVENTS", request.param)
    return request.param


def test_a_refused_file_leaves_nothing_and_its_neighbours_stay(ledger, tmp_path, batch_events):
    for name in ("s1", "s2", "s3"):
        path = session(name).write(tmp_path / "logs")
        if name == "s2":
            path.write_bytes(path.read_bytes() + b"{torn}\n")
    reports = import_logs(ledger, [tmp_path / "logs"])
    assert [report.outcome for report in reports] == ["read", "refused", "read"]
    assert [report.recorded.turns for report in reports] == [4, 0, 4]
    assert [report.recorded.requests for report in reports] == [8, 0, 8]
    assert "s2.jsonl:17" in str(reports[1].error)
    rows = rows_of(ledger)
    for table in ("turns", "requests"):
        assert {row["session_id"] for row in rows[table]} == {"s1", "s3"}
    # The refused one is read as soon as it is mended.
    session("s2").write(tmp_path / "logs")
    assert imported(ledger, tmp_path / "logs") == []
    assert len(rows_of(ledger)["turns"]) == 12


def test_a_long_file_is_recorded_while_it_is_read(sqlite_ledger, tmp_path, monkeypatch):
    path = session("s1", turns=20).write(tmp_path)
    path.write_bytes(path.read_bytes() + b"{torn}\n")
    recorded = []
    record = importing.record

    def watched(connection, events):
        recorded.append(len(events))
        return record(connection, events)

    monkeypatch.setattr(importing, "BATCH_EVENTS", 10)
    monkeypatch.setattr(importing, "record", watched)
    version = version_of(sqlite_ledger)
    assert len(imported(sqlite_ledger, path)) == 1
    # The torn line is met last; what came before it had not been kept in memory.
    assert len(recorded) > 3
    assert max(recorded) < 20
    assert rows_of(sqlite_ledger)["turns"] == []
    assert version_of(sqlite_ledger) == version


def test_how_files_share_transactions_changes_nothing(tmp_path, monkeypatch):
    write_tree(tmp_path / "tree", sessions=6, body_chars=20)
    found = []
    for events, size in ((4000, 16_000_000), (4000, 1), (7, 16_000_000), (50, 100_000)):
        monkeypatch.setattr(importing, "BATCH_EVENTS", events)
        monkeypatch.setattr(importing, "GROUP_BYTES", size)
        engine = open_engine(str(tmp_path / f"{events}-{size}.db"))
        upgrade(engine)
        assert imported(engine, tmp_path / "tree") == []
        found.append(rows_of(engine))
        engine.dispose()
    assert found[0]["turns"]
    assert found[1:] == found[:1] * 3


def test_a_name_that_is_not_utf8_refuses_its_file_only(ledger, tmp_path):
    session("s1").write(tmp_path / "logs")
    other = session("s2").write(tmp_path / "logs")
    other.rename(other.with_name("caf\udce9.jsonl"))
    reports = import_logs(ledger, [tmp_path / "logs"])
    assert sorted(report.outcome for report in reports) == ["read", "refused"]
    (error,) = [report.error for report in reports if report.error]
    assert "not UTF-8" in str(error)
    assert {row["session_id"] for row in rows_of(ledger)["turns"]} == {"s1"}
