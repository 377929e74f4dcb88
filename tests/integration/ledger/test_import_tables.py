"""Tables: imported, imported again, grown; and what export writes, taken back."""

import csv
import json
from collections import Counter

import pytest
from sqlalchemy import select

from examples.claude_code_tree import write_tree
from ledger.database import open_engine, reading
from ledger.exports import export_columns, export_rows
from ledger.importing import import_logs
from ledger.schema import compactions, histogram, requests, turns
from migrations.upgrade import upgrade
from tests.integration.ledger.rows import (
    everything,
    imported,
    kept,
    recounted,
    rows_of,
    token_sums,
)
from tests.unit.ledger.transcript import Transcript, said, use

KINDS = ("turns", "requests", "compactions")
#: What a table keeps of the ledger; of tool calls it keeps their number only.
KEPT = {
    turns: "turn_id session_id thread_id role model status reason tool_calls requests entry_calls "
    "entry_requests started_ms last_ms parent_turn_id trigger provider source",
    requests: "request_id session_id turn_id position kind model at_ms output reasoning",
    compactions: "compaction_id session_id turn_id trigger strategy context_before context_after "
    "calls_before requests_before at_ms",
}


def cells(engine, unit="tool_calls"):
    return {
        (row["role"], row["entry"], row["exit"], row["ended"]): row["count"]
        for row in rows_of(engine, (histogram,))["histogram"]
        if row["unit"] == unit
    }


def test_a_table_of_turns_by_hand(ledger, tmp_path):
    path = tmp_path / "turns.csv"
    path.write_text(
        "role,tool_calls,status,requests,entry_calls\n"
        "main,12,ended,10,0\n"
        "main,12,,,0\n"
        "main,7,cut,6,0\n"
        "main,9,open,8,0\n"
        "Explore,5,ended,4,2\n"
        "Explore,5,ended,4,\n"
    )
    assert imported(ledger, path) == []
    assert cells(ledger) == {
        ("main", 0, 12, True): 2,
        ("main", 0, 6, False): 1,
        ("Explore", 2, 5, True): 1,
    }
    assert cells(ledger, "requests") == {("main", 0, 10, True): 1, ("main", 0, 5, False): 1}
    before = everything(ledger)
    assert imported(ledger, path) == []
    assert everything(ledger) == before


@pytest.mark.parametrize("name", ["turns.csv", "turns.jsonl"])
def test_a_table_that_grew_adds_its_new_rows(ledger, tmp_path, name):
    path = tmp_path / name
    heading = "role,tool_calls\n" if name.endswith("csv") else ""
    line = "main,{}\n" if name.endswith("csv") else '{{"role":"main","tool_calls":{}}}\n'
    path.write_text(heading + line.format(3) + line.format(4))
    assert imported(ledger, path) == []
    path.write_text(heading + line.format(3) + line.format(4) + line.format(3))
    assert imported(ledger, path) == []
    assert cells(ledger) == {("main", 0, 3, True): 2, ("main", 0, 4, True): 1}


def test_an_open_turn_is_closed_by_a_later_table(ledger, tmp_path):
    for number, (status, calls) in enumerate([("open", 3), ("ended", 8)]):
        path = tmp_path / f"{number}.csv"
        path.write_text(f"turn_id,role,tool_calls,status\nt1,main,{calls},{status}\n")
        assert imported(ledger, path) == []
    assert cells(ledger) == {("main", 0, 8, True): 1}


def a_bit_of_everything(folder):
    """A generated tree, a fork that goes on in mid-turn, and a log without its beginning."""
    write_tree(folder, sessions=5, body_chars=20)
    log = Transcript("s1")
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    fork = log.copied("s2")
    for transcript, own in ((log, "m2"), (fork, "n2")):
        transcript.answer(own, use(f"t-{own}"))
        transcript.result(f"t-{own}")
        transcript.answer(f"last-{own}", said())
        transcript.write(folder)
    late = Transcript("s3")
    late.answer("m7", said(), uuid="a7")
    late.lines[0]["parentUuid"] = "elsewhere"
    late.write(folder)


def write_table(path, columns, rows):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_what_export_writes_gives_the_same_ledger(ledger, tmp_path, suffix):
    a_bit_of_everything(tmp_path / "logs")
    source = open_engine(str(tmp_path / "source.db"))
    upgrade(source)
    assert imported(source, tmp_path / "logs") == []
    tables = tmp_path / "tables"
    tables.mkdir()
    with reading(source) as connection:
        for kind in KINDS:
            rows = list(export_rows(connection, kind))
            write_table(tables / f"{kind}.{suffix}", export_columns(kind), rows)
    assert imported(ledger, tables) == []
    assert kept(ledger) == kept(source) == recounted(ledger)
    assert token_sums(ledger) == token_sums(source)
    for table, names in KEPT.items():
        chosen = select(*(table.c[name] for name in names.split()))
        with source.connect() as one, ledger.connect() as two:
            assert Counter(one.execute(chosen).all()) == Counter(two.execute(chosen).all())
    before = rows_of(ledger)
    assert imported(ledger, tables, reread=True) == []
    assert rows_of(ledger) == before
    source.dispose()


def test_a_header_in_quotes_is_read(sqlite_ledger, tmp_path):
    table = tmp_path / "turns.csv"
    table.write_text('"role","tool_calls","status"\n"main, of two","7","ended"\n')
    [report] = import_logs(sqlite_ledger, [table])
    assert report.error is None
    with reading(sqlite_ledger) as connection:
        assert [(row.role, row.tool_calls) for row in connection.execute(select(turns))] == [
            ("main, of two", 7)
        ]
