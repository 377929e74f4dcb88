"""Plain tables: what columns mean, what may be left out, what is refused and where."""

import gzip

import pytest

from compactuary.errors import SourceError
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.readers.tables import kind_of, table_events
from ledger.usage import Usage


def written(folder, text, name="table.csv"):
    path = folder / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def events_of(path, kind="turns"):
    return [event for event, _ in table_events(path, kind)]


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ("role tool_calls", "turns"),
        ("source session_id turn_id role model status tool_calls requests", "turns"),
        ("turn_id uncached output", "requests"),
        ("session_id turn_id index at uncached cache_read cache_write output", "requests"),
        ("session_id context_before", "compactions"),
        ("role calls", None),
        ("", None),
    ],
)
def test_the_columns_tell_the_kind(columns, kind):
    assert kind_of(columns.split()) == kind


def test_a_turn_with_the_two_columns_it_needs(tmp_path):
    path = written(tmp_path, "role,tool_calls\nmain,12\nmain,0\n")
    own = f"{path}:2"
    assert events_of(path)[:2] == [
        TurnStarted(turn_id=own, session_id=own, thread_id=own, source="table", role="main"),
        TurnReached(own, own, "ended", None, None, tool_calls=12),
    ]
    assert [line for _, line in table_events(path, "turns")] == [2, 2, 3, 3]


def test_tables_of_one_name_in_two_folders_hold_different_turns(tmp_path):
    ids = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = written(tmp_path / name, "role,tool_calls\nmain,12\n")
        ids |= {event.turn_id for event in events_of(path)}
    assert len(ids) == 2


def test_a_turn_with_every_column(tmp_path):
    path = written(
        tmp_path,
        "source,session_id,turn_id,role,model,provider,started_at,ended_at,status,reason,trigger,"
        "thread_id,parent_turn_id,entry_calls,entry_requests,tool_calls,requests\n"
        "note,s,t,Explore,opus,anthropic,2026-07-01T12:00:00Z,2026-07-01T12:00:01.5Z,cut,"
        "interrupted,prompt,s/agent-1,p,3,2,10,8\n",
    )
    assert events_of(path) == [
        TurnStarted(
            turn_id="t",
            session_id="s",
            thread_id="s/agent-1",
            source="note",
            role="Explore",
            at_ms=1_782_907_200_000,
            model="opus",
            provider="anthropic",
            parent_turn_id="p",
            trigger="prompt",
            entry_calls=3,
            entry_requests=2,
        ),
        TurnReached("t", "s", "cut", "interrupted", 1_782_907_201_500, tool_calls=10, requests=8),
    ]


@pytest.mark.parametrize(
    ("columns", "cells", "expected"),
    [
        ("", "", (0, 0)),
        (",entry_calls", ",0", (0, 0)),
        (",entry_calls", ",3", (3, None)),
        (",entry_calls", ",", (None, None)),
        (",entry_calls,entry_requests", ",,", (None, None)),
        (",entry_calls,entry_requests", ",0,", (0, None)),
        (",entry_calls,entry_requests", ",3,2", (3, 2)),
    ],
)
def test_an_empty_entry_is_unknown_and_an_absent_one_is_none(tmp_path, columns, cells, expected):
    path = written(tmp_path, f"role,tool_calls{columns}\nmain,5{cells}\n")
    started = events_of(path)[0]
    assert (started.entry_calls, started.entry_requests) == expected


def test_json_lines_gzip_and_byte_order_mark_read_alike(tmp_path):
    csv_text = "role,tool_calls,turn_id\nmain,12,t\n"
    json_text = '{"role":"main","tool_calls":12,"turn_id":"t"}\n\n'
    expected = events_of(written(tmp_path, csv_text, "a.csv"))
    assert expected
    for text, name in [
        (csv_text, "b.csv.gz"),
        ("\ufeff" + csv_text, "c.csv"),
        (csv_text.replace("\n", "\r\n"), "d.csv"),
        (json_text, "e.jsonl"),
        (json_text, "f.jsonl.gz"),
        ("\ufeff" + json_text, "g.jsonl"),
        (json_text.replace("\n", "\r\n"), "h.jsonl"),
    ]:
        assert events_of(written(tmp_path, text, name)) == expected, name


@pytest.mark.parametrize("cell", ["45", "45.0", " 45 "])
def test_a_count_may_be_written_as_other_tools_do(tmp_path, cell):
    path = written(tmp_path, f"role,tool_calls\nmain,{cell}\n")
    assert events_of(path)[1].tool_calls == 45


def test_a_request(tmp_path):
    path = written(
        tmp_path,
        "session_id,turn_id,index,at,uncached,cache_read,cache_write,output,model,tool_calls\n"
        "s,t,4,2026-07-01T12:00:00Z,3,17842,8037,441,opus,2\n",
    )
    assert events_of(path, "requests") == [
        RequestMade(
            request_id="t#4",
            session_id="s",
            turn_id="t",
            position=4,
            at_ms=1_782_907_200_000,
            model="opus",
            usage=Usage(uncached=3, cache_read=17_842, cache_write_other=8_037, output=441),
            unnamed_tool_calls=2,
        )
    ]


def test_requests_without_an_index_are_told_apart_by_their_lines(tmp_path):
    path = written(tmp_path, "turn_id,uncached,output\nt,1,2\nt,1,2\n")
    ids = [event.request_id for event in events_of(path, "requests")]
    assert ids == [f"{path}:2", f"{path}:3"]


def test_a_request_of_a_compaction_needs_no_turn(tmp_path):
    path = written(
        tmp_path, "session_id,turn_id,request_id,kind,uncached,output\ns,,m9,compaction,5,6\n"
    )
    (event,) = events_of(path, "requests")
    assert (event.request_id, event.turn_id, event.kind) == ("m9", None, "compaction")


def test_a_compaction(tmp_path):
    path = written(
        tmp_path,
        "compaction_id,session_id,turn_id,at,trigger,context_before,context_after,calls_before\n"
        "c,s,t,2026-07-01T12:00:00Z,auto,167000,34000,79\n",
    )
    assert events_of(path, "compactions") == [
        CompactionMade(
            compaction_id="c",
            session_id="s",
            turn_id="t",
            at_ms=1_782_907_200_000,
            trigger="auto",
            context_before=167_000,
            context_after=34_000,
            calls_before=79,
        )
    ]


TURNS = "role,tool_calls,status,started_at,entry_calls\n"
REQUESTS = "turn_id,index,kind,uncached,output,reasoning\n"


@pytest.mark.parametrize(
    ("kind", "text", "field"),
    [
        ("turns", TURNS + "main,-1,,,\n", "tool_calls"),
        ("turns", TURNS + "main,1.5,,,\n", "tool_calls"),
        ("turns", TURNS + "main,many,,,\n", "tool_calls"),
        ("turns", TURNS + "main,,,,\n", "tool_calls"),
        ("turns", TURNS + "main,nan,,,\n", "tool_calls"),
        ("turns", TURNS + "main,inf,,,\n", "tool_calls"),
        ("turns", TURNS + "main,9999999999,,,\n", "tool_calls"),
        ("turns", TURNS + ",1,,,\n", "role"),
        ("turns", TURNS + " ,1,,,\n", "role"),
        ("turns", TURNS + "main,1,finished,,\n", "status"),
        ("turns", TURNS + "main,1,,yesterday,\n", "started_at"),
        ("turns", TURNS + "main,1,,,2\n", "tool_calls"),
        ("requests", REQUESTS + "t,0,agent,-5,1,0\n", "uncached"),
        ("requests", REQUESTS + "t,0,agent,5,1,2\n", "usage.reasoning"),
        ("requests", REQUESTS + "t,0,other,5,1,0\n", "kind"),
        ("requests", REQUESTS + ",0,agent,5,1,0\n", "turn_id"),
        ("compactions", "session_id,context_before\n,5\n", "session_id"),
        ("compactions", "session_id,context_before\ns,-5\n", "context_before"),
    ],
)
def test_a_wrong_value_names_file_line_and_field(tmp_path, kind, text, field):
    path = written(tmp_path, text)
    with pytest.raises(SourceError) as caught:
        events_of(path, kind)
    assert caught.value.where == f"{path}:2: {field}"
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("t.csv", "role,tool_calls\nmain,1\nmain\n", 3),
        ("t.csv", "role,tool_calls\nmain,1\nmain,2,3\n", 3),
        ("t.csv", "role,tool_calls\n" + "x" * 140_000 + ",1\n", 2),
        ("t.jsonl", '{"role":"main","tool_calls":1}\n{"role":\n', 2),
        ("t.jsonl", '{"role":"main","tool_calls":1}\n\n[1]\n', 3),
        ("t.jsonl", '{"role":"main","tool_calls":1}\n\n7\n', 3),
    ],
)
def test_a_broken_line_is_named(tmp_path, name, text, line):
    path = written(tmp_path, text, name)
    with pytest.raises(SourceError) as caught:
        events_of(path)
    assert caught.value.where == f"{path}:{line}"


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"role,tool_calls\nmain,1\n\xff\xfe,2\n")
    with pytest.raises(SourceError, match="not a line of UTF-8") as caught:
        events_of(path)
    assert caught.value.where == f"{path}:3"


def test_a_quoted_cell_may_span_lines(tmp_path):
    path = written(tmp_path, 'role,tool_calls,reason\nmain,1,"a\nb"\nmain,x,\n')
    with pytest.raises(SourceError) as caught:
        events_of(path)
    assert caught.value.where == f"{path}:4: tool_calls"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv.gz", "role,tool_calls\n" + "main,1\n" * 500),
        ("t.jsonl.gz", '{"role":"main","tool_calls":1}\n' * 500),
    ],
)
def test_a_truncated_gzip_is_named(tmp_path, name, text):
    path = written(tmp_path, text, name)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match="truncated") as caught:
        events_of(path)
    assert caught.value.where == str(path)


@pytest.mark.parametrize("value", ['["a"]', '{"a": 1}', '"a\\u0000b"', "true", "1.5"])
def test_a_json_value_that_is_no_name_is_refused(tmp_path, value):
    path = written(tmp_path, f'{{"role":"main","tool_calls":1,"turn_id":{value}}}\n', "t.jsonl")
    with pytest.raises(SourceError) as caught:
        events_of(path)
    assert caught.value.where == f"{path}:1: turn_id"


def test_an_id_may_be_a_number_in_json(tmp_path):
    path = written(tmp_path, '{"role":"main","tool_calls":1,"turn_id":7}\n', "t.jsonl")
    assert events_of(path)[0].turn_id == "7"
