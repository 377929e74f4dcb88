"""Bad input leaves the ledger as it was, file by file, and says what to do."""

import gzip
import os

import pytest
from sqlalchemy import event

from compactuary.errors import LedgerError, SourceError
from examples.claude_code_tree import write_tree
from ledger.database import open_engine
from ledger.importing import ImportOptions, import_logs
from tests.integration.ledger.rows import everything, imported, kept, recounted, rows_of
from tests.unit.ledger.transcript import Transcript, said, use


def session(name="s1"):
    log = Transcript(name)
    log.user("Fix it.", uuid=f"{name}-p1")
    log.answer(f"{name}-m1", use(f"{name}-t1"))
    log.result(f"{name}-t1")
    log.answer(f"{name}-m2", said())
    return log


def reports_of(engine, *paths, **options):
    return import_logs(engine, paths, ImportOptions(**options))


def turn_ids(engine):
    return {row["turn_id"] for row in rows_of(engine)["turns"]}


def broken(log, line, text):
    lines = log.text.splitlines(keepends=True)
    lines[line - 1] = text
    return b"".join(lines)


def test_a_corrupt_line_refuses_its_file_and_no_other(ledger, tmp_path):
    session("s0").write(tmp_path)
    bad = session("s1").write(tmp_path)
    bad.write_bytes(broken(session("s1"), 3, b'{"type": "user", oops\n'))
    session("s2").write(tmp_path)
    reports = {report.path.stem: report for report in reports_of(ledger, tmp_path)}
    assert [reports[name].outcome for name in ("s0", "s1", "s2")] == ["read", "refused", "read"]
    error = reports["s1"].error
    assert isinstance(error, SourceError)
    assert error.where == f"{bad}:3"
    assert "--skip-corrupt" in error.remedy
    assert turn_ids(ledger) == {"s0-p1", "s2-p1"}
    assert kept(ledger) == recounted(ledger)


def test_a_file_mended_after_it_was_refused_is_read(ledger, tmp_path):
    bad = session().write(tmp_path)
    bad.write_bytes(broken(session(), 3, b"oops\n"))
    before = everything(ledger)
    assert len(imported(ledger, tmp_path)) == 1
    assert everything(ledger) == before
    session().write(tmp_path)
    assert imported(ledger, tmp_path) == []
    assert turn_ids(ledger) == {"s1-p1"}


def test_skip_corrupt_reads_on_behind_the_line_and_names_it(ledger, tmp_path):
    bad = session().write(tmp_path)
    bad.write_bytes(broken(session(), 3, b'{"type": "user", oops\n'))
    (report,) = reports_of(ledger, tmp_path, skip_corrupt=True)
    assert (report.outcome, report.skipped) == ("read", (f"{bad}:3",))
    assert rows_of(ledger)["turns"][0]["status"] == "ended"


def test_an_exporters_placeholder_is_skipped_and_named(ledger, tmp_path):
    bad = session().write(tmp_path)
    bad.write_bytes(broken(session(), 3, b"<unparseable>\n"))
    (report,) = reports_of(ledger, tmp_path)
    assert (report.outcome, report.skipped) == ("read", (f"{bad}:3",))


def test_a_corrupt_line_behind_what_was_read_names_its_line(ledger, tmp_path):
    log = session()
    path = log.write(tmp_path)
    path.write_bytes(log.text.rstrip(b"\n"))
    assert imported(ledger, tmp_path) == []
    before = everything(ledger)
    path.write_bytes(log.text + b"\noops\n")
    (error,) = imported(ledger, tmp_path)
    assert error.where == f"{path}:6"
    assert everything(ledger) == before


def test_a_late_corrupt_line_of_a_long_file_keeps_nothing_of_it(ledger, tmp_path):
    log = Transcript()
    log.user("Fix it.", uuid="p1")
    for number in range(2_500):
        log.answer(f"m{number}", use(f"t{number}"))
        log.result(f"t{number}")
    path = log.write(tmp_path)
    path.write_bytes(log.text + b"oops\n")
    session("s0").write(tmp_path)
    session("s2").write(tmp_path)
    (error,) = imported(ledger, tmp_path)
    assert error.where == f"{path}:5002"
    assert turn_ids(ledger) == {"s0-p1", "s2-p1"}
    assert kept(ledger) == recounted(ledger)


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        ({"usage": {"input_tokens": -5}}, "usage.input_tokens"),
        ({"usage": {"output_tokens": 10**30}}, "usage.output_tokens"),
        ({"id": "m\0"}, "message.id"),
        ({"model": 7}, "message.model"),
        ({"content": [use("t\0")]}, "tool_use.id"),
    ],
)
def test_a_wrong_value_names_file_line_and_field(ledger, tmp_path, damage, field):
    log = session()
    log.lines[3]["message"] |= damage
    path = log.write(tmp_path)
    before = everything(ledger)
    (error,) = imported(ledger, tmp_path)
    assert error.where == f"{path}:4: {field}"
    assert error.remedy
    assert everything(ledger) == before


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.97])
def test_a_truncated_gzip(ledger, tmp_path, keep):
    log = session()
    data = gzip.compress(log.text)
    path = tmp_path / "s1.jsonl.gz"
    path.write_bytes(data[: int(len(data) * keep)])
    session("s2").write(tmp_path)
    (error,) = imported(ledger, tmp_path)
    assert "gzip is truncated" in error.problem
    assert error.where == str(path)
    assert turn_ids(ledger) == {"s2-p1"}
    path.write_bytes(data)
    assert imported(ledger, tmp_path) == []
    assert turn_ids(ledger) == {"s1-p1", "s2-p1"}


@pytest.mark.parametrize("name", ["photo.jsonl", "photo.jsonl.gz", "photo.csv", "photo.csv.gz"])
def test_a_binary_file(ledger, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 20)
    before = everything(ledger)
    (error,) = imported(ledger, path)
    assert str(path) in error.where
    assert error.remedy
    assert everything(ledger) == before


def test_a_file_of_another_format_is_passed_over_in_a_folder_and_refused_by_name(ledger, tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"timestamp": "2026-07-01T12:00:00Z", "payload": {}}\n')
    session("s2").write(tmp_path)
    outcomes = {report.path.stem: report.outcome for report in reports_of(ledger, tmp_path)}
    assert outcomes == {"other": "unrecognised", "s2": "read"}
    (error,) = imported(ledger, path)
    assert error.where == str(path)


@pytest.mark.parametrize("made", [False, True])
def test_an_empty_folder_and_a_missing_path(ledger, tmp_path, made):
    path = tmp_path / "logs"
    if made:
        path.mkdir()
    with pytest.raises(SourceError) as caught:
        import_logs(ledger, [path])
    assert caught.value.where == str(path)
    assert caught.value.remedy


def test_an_empty_file_is_nothing_yet(ledger, tmp_path):
    (tmp_path / "s1.jsonl").touch()
    assert imported(ledger, tmp_path) == []
    session().write(tmp_path)
    assert imported(ledger, tmp_path) == []
    assert turn_ids(ledger) == {"s1-p1"}


def test_a_file_that_shrank_is_refused_until_asked_for(ledger, tmp_path):
    log = session()
    path = log.write(tmp_path)
    assert imported(ledger, tmp_path) == []
    before = everything(ledger)
    path.write_bytes(b"".join(log.text.splitlines(keepends=True)[:2]))
    (error,) = imported(ledger, tmp_path)
    assert "shrank" in error.problem
    assert error.where == str(path)
    assert "--reread" in error.remedy
    assert everything(ledger) == before
    assert imported(ledger, tmp_path, reread=True) == []
    assert len(rows_of(ledger)["requests"]) == 2


def test_a_file_that_was_replaced_is_refused_until_asked_for(ledger, tmp_path):
    path = session().write(tmp_path)
    assert imported(ledger, tmp_path) == []
    before = everything(ledger)
    path.write_bytes(session("s2").text + session("s3").text)
    (error,) = imported(ledger, tmp_path)
    assert "replaced" in error.problem
    assert error.where == str(path)
    assert everything(ledger) == before
    assert imported(ledger, tmp_path, reread=True) == []
    assert turn_ids(ledger) == {"s1-p1", "s2-p1", "s3-p1"}


@pytest.mark.skipif(os.name == "nt", reason="there, rights are not modes")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(ledger, tmp_path):
    path = session().write(tmp_path)
    path.chmod(0)
    (error,) = imported(ledger, tmp_path)
    assert error.where == str(path)


def test_unknown_types_are_told_and_stop_nothing(ledger, tmp_path):
    log = session()
    log.loose("not-yet-invented", usage={"input_tokens": 999_999})
    log.write(tmp_path)
    (report,) = reports_of(ledger, tmp_path)
    assert report.unknown_types == {"not-yet-invented": 1}
    assert turn_ids(ledger) == {"s1-p1"}


def test_line_ends_of_other_systems_and_a_byte_order_mark(ledger, tmp_path):
    path = session().write(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + session().text.replace(b"\n", b"\r\n\r\n"))
    assert imported(ledger, tmp_path) == []
    (turn,) = rows_of(ledger)["turns"]
    assert (turn["status"], turn["tool_calls"], turn["requests"]) == ("ended", 1, 2)


def test_a_line_of_many_megabytes(ledger, tmp_path):
    log = session()
    log.lines[2]["toolUseResult"] = {"stdout": "x" * 6_000_000}
    log.write(tmp_path)
    assert imported(ledger, tmp_path) == []
    assert turn_ids(ledger) == {"s1-p1"}


def test_requests_before_their_turns(ledger, tmp_path):
    path = tmp_path / "requests.csv"
    path.write_text("turn_id,index,uncached,output\nt1,0,5,6\n")
    before = everything(ledger)
    (error,) = imported(ledger, path)
    assert error.where == str(path)
    assert "turns first" in error.remedy
    assert everything(ledger) == before
    (tmp_path / "turns.csv").write_text("turn_id,role,tool_calls\nt1,main,3\n")
    assert imported(ledger, tmp_path) == []
    assert len(rows_of(ledger)["requests"]) == 1


def test_a_table_with_a_wrong_row_keeps_none(ledger, tmp_path):
    path = tmp_path / "turns.csv"
    rows = "".join(f"t{n},main,{n}\n" for n in range(5_000))
    path.write_text("turn_id,role,tool_calls\n" + rows + "t,main,-1\n")
    before = everything(ledger)
    (error,) = imported(ledger, path)
    assert error.where == f"{path}:5002: tool_calls"
    assert everything(ledger) == before


READ_ONLY = {
    "sqlite": "PRAGMA query_only=ON",
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
}


def test_a_read_only_database(ledger, tmp_path):
    engine = open_engine(ledger.url.render_as_string(hide_password=False))

    def set_read_only(raw, _):
        cursor = raw.cursor()
        cursor.execute(READ_ONLY[engine.dialect.name])
        cursor.close()
        raw.commit()

    event.listen(engine, "connect", set_read_only)
    session().write(tmp_path)
    with pytest.raises(LedgerError, match="read-only") as caught:
        import_logs(engine, [tmp_path])
    assert caught.value.remedy
    engine.dispose()
    assert turn_ids(ledger) == set()


def test_a_full_disk(sqlite_ledger, tmp_path):
    write_tree(tmp_path / "tree", sessions=2, body_chars=20)
    with sqlite_ledger.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    engine = open_engine(sqlite_ledger.url.database)

    event.listen(
        engine,
        "connect",
        lambda raw, _: raw.execute(f"PRAGMA max_page_count={pages + 2}"),
    )
    before = rows_of(sqlite_ledger)
    with pytest.raises(LedgerError, match="full"):
        import_logs(engine, [tmp_path / "tree"])
    engine.dispose()
    assert rows_of(sqlite_ledger) == before
    assert imported(sqlite_ledger, tmp_path / "tree") == []
