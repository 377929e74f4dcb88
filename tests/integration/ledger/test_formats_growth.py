"""Logs of every format: told again they change nothing, and grown they end where whole ones do."""

import gzip
import os

import pytest

from ledger.database import open_engine
from migrations.upgrade import upgrade
from tests.integration.ledger.formats_by_hand import FORMATS
from tests.integration.ledger.rows import everything, imported, kept, recounted, rows_of
from tests.integration.ledger.test_formats_fuzz import written
from tests.unit.ledger.pi_session import PiSession


@pytest.fixture
def fresh(tmp_path):
    """Return a function that opens one more empty SQLite ledger."""
    engines = []

    def make():
        engine = open_engine(str(tmp_path / f"ledger-{len(engines)}.db"))
        upgrade(engine)
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.dispose()


def put(path, data, step):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(step * 10**9, step * 10**9))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_log_told_again_changes_nothing(ledger, tmp_path, kind):
    data = written(kind, FORMATS[kind].value())
    path = tmp_path / "logs" / FORMATS[kind].name
    put(path, data, 1)
    assert imported(ledger, path) == []
    before, rows = everything(ledger), rows_of(ledger)
    assert rows["turns"]
    assert kept(ledger) == recounted(ledger)
    assert imported(ledger, path) == []
    assert everything(ledger) == before
    put(path, data, 2)
    assert imported(ledger, path) == []
    put(tmp_path / "copy" / "logs" / FORMATS[kind].name, data, 3)
    assert imported(ledger, tmp_path / "copy") == []
    assert imported(ledger, path, reread=True) == []
    assert rows_of(ledger) == rows


@pytest.mark.parametrize("kind", FORMATS)
def test_a_packed_log_is_the_same(fresh, tmp_path, kind):
    data = written(kind, FORMATS[kind].value())
    plain, packed = fresh(), fresh()
    put(tmp_path / "plain" / "logs" / FORMATS[kind].name, data, 1)
    put(tmp_path / "packed" / "logs" / f"{FORMATS[kind].name}.gz", gzip.compress(data), 1)
    assert imported(plain, tmp_path / "plain") == []
    assert imported(packed, tmp_path / "packed") == []
    assert rows_of(packed) == rows_of(plain)


@pytest.mark.parametrize("kind", [name for name, made in FORMATS.items() if made.by_lines])
@pytest.mark.parametrize("step", [1, 7, 160, 611])
def test_a_log_that_grows_ends_where_a_whole_one_does(fresh, tmp_path, kind, step):
    data = written(kind, FORMATS[kind].value())
    whole, grown = fresh(), fresh()
    path = tmp_path / "logs" / FORMATS[kind].name
    put(path, data, 1)
    assert imported(whole, path) == []
    path.unlink()
    lines = data.splitlines(keepends=True)
    ends = range(step, len(data), step) if step > 100 else []
    for end in ends or [sum(map(len, lines[:n])) for n in range(step, len(lines), step)]:
        put(path, data[:end], end)
        assert imported(grown, path.parent) == []
        assert kept(grown) == recounted(grown)
    put(path, data, len(data))
    assert imported(grown, path) == []
    assert rows_of(grown) == rows_of(whole)


def shorter(value, keys, end):
    """Return a document as it was when the list that grows had ``end`` items."""
    if not keys:
        return value[:end]
    return value | {keys[0]: shorter(value[keys[0]], keys[1:], end)}


@pytest.mark.parametrize("kind", [name for name, made in FORMATS.items() if not made.by_lines])
def test_a_document_that_is_written_anew_ends_where_a_whole_one_does(fresh, tmp_path, kind):
    value, keys = FORMATS[kind].value(), FORMATS[kind].grows
    whole, grown = fresh(), fresh()
    path = tmp_path / "logs" / FORMATS[kind].name
    put(path, written(kind, value), 1)
    assert imported(whole, path) == []
    end = 0
    while (part := shorter(value, keys, end)) != value:
        put(path, written(kind, part), end + 1)
        imported(grown, path.parent)
        assert kept(grown) == recounted(grown)
        end += 1
    put(path, written(kind, value), end + 1)
    assert imported(grown, path) == []
    assert rows_of(grown) == rows_of(whole)


def test_a_title_written_anew_in_place_is_the_same_file(fresh, tmp_path):
    data = written("pi", FORMATS["pi"].value())
    whole, grown = fresh(), fresh()
    path = tmp_path / "logs" / FORMATS["pi"].name
    put(path, data[:2_000], 1)
    assert imported(grown, path) == []
    assert b'"title": "", ' in data
    put(path, data.replace(b'"title": "", ', b'"title": "x",'), 2)
    assert imported(grown, path) == []
    assert imported(whole, path) == []
    assert rows_of(grown) == rows_of(whole)


def test_a_fork_of_a_session_is_counted_once(ledger, tmp_path):
    log = PiSession().header().user("u1").answer("c1", entry="a1").result("c1")
    fork = log.copied("s2").answer("c2", entry="a2").answer(entry="a3")
    log.answer("c3", entry="a4").answer(entry="a5")
    put(tmp_path / "logs" / "1_s1.jsonl", log.text, 1)
    put(tmp_path / "logs" / "2_s2.jsonl", fork.text, 1)
    assert imported(ledger, tmp_path / "logs") == []
    rows = rows_of(ledger)
    assert len(rows["requests"]) == 5
    found = {row["session_id"]: row for row in rows["turns"]}
    names = ("trigger", "status", "entry_calls", "tool_calls", "requests")
    # The fork goes on with the turn behind its first call.
    assert [found["s1"][name] for name in names] == ["prompt", "ended", 0, 2, 3]
    assert [found["s2"][name] for name in names] == ["fork", "ended", 1, 2, 3]
    assert kept(ledger) == recounted(ledger)


@pytest.mark.parametrize("kind", FORMATS)
def test_no_text_is_kept(sqlite_ledger, tmp_path, kind):
    data = written(kind, FORMATS[kind].value())
    assert b"SECRET" in data
    put(tmp_path / "logs" / FORMATS[kind].name, data, 1)
    assert imported(sqlite_ledger, tmp_path / "logs") == []
    assert "SECRET" not in repr(everything(sqlite_ledger))
