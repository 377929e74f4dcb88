"""`POST /ingest`: line by line what the single endpoints would have done, in a few transactions."""

import json
from itertools import count

import pytest
from sqlalchemy import func, select

from ledger.database import reading
from ledger.schema import compactions, histogram, request_pace, requests, tool_calls, turns

NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture
def ingest(client):
    def send(*lines, results="all", **headers):
        body = b"\n".join(
            line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
        )
        answer = client.post(
            "/ingest", content=body, headers=NDJSON | headers, params={"results": results}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    return send


def _statuses(answer):
    return [one["status"] for one in answer["results"]]


def _turn(turn_id, **more):
    return {"event": "turn", "turn_id": turn_id, "role": "main", "session_id": "s"} | more


def _request(turn_id, request_id, **more):
    body = {"request_id": request_id, "usage": {"output": 7}, "tool_calls": 1}
    return {"event": "request", "turn_id": turn_id} | body | more


def _end(turn_id, status="ended", **more):
    return {"event": "end", "turn_id": turn_id, "status": status} | more


def _compaction(compaction_id, **more):
    body = {"session_id": "s", "context_before": 100_000}
    return {"event": "compaction", "compaction_id": compaction_id} | body | more


def _finished(turn_id, calls, **more):
    body = {"role": "main", "tool_calls": calls}
    return {"event": "finished_turn", "turn_id": turn_id} | body | more


def test_a_story_is_recorded_as_it_is_told(ingest, client):
    story = [
        _turn("a", started_at="2026-03-01T10:00:00Z", model="claude-opus-5"),
        _request("a", "a1", tool_calls=[{"id": "x", "name": "read"}, {"id": "y", "name": "grep"}]),
        _compaction("c", turn_id="a", context_after=20_000),
        _request("a", "a2"),
        _compaction("d", turn_id="a"),
        _end("a"),
        _finished("b", 5, requests=6, session_id="t"),
        _turn("left open"),
    ]
    answer = ingest(*story)
    assert answer == {
        "recorded": 8,
        "known": 0,
        "refused": 0,
        "results": [{"line": line, "status": "recorded"} for line in range(1, 9)],
    }
    with reading(client.app.state.service.engine) as connection:
        rows = connection.execute(select(turns).order_by(turns.c.turn_id)).all()
        made = connection.execute(select(compactions).order_by(compactions.c.compaction_id)).all()
    told = [(row.turn_id, row.status, row.tool_calls, row.requests) for row in rows]
    assert told == [("a", "ended", 3, 2), ("b", "ended", 5, 6), ("left open", "open", 0, None)]
    assert [(row.calls_before, row.requests_before) for row in made] == [(2, 1), (3, 2)]
    assert _statuses(ingest(*story)) == ["known"] * 8
    assert ingest(*story, results="refused")["results"] == []


def test_a_wrong_line_refuses_itself_alone(ingest):
    answer = ingest(
        _turn("a"),
        b"{not json}",
        b"",
        b"[1, 2]",
        b'"turn"',
        {"event": "turned", "turn_id": "b"},
        {"turn_id": "b"},
        _turn("b", role=7),
        _turn("a", role="other"),
        _turn("a", session_id="other"),
        _request("nobody's", "r"),
        _request("a", "r", usage={"input_tokens": -1}),
        _request("a", "r", at="yesterday"),
        _request("a", "r"),
        _turn("b"),
        _request("b", "r"),
        _request("a", "r", kind="compaction"),
        _end("nobody's"),
        _end("a", status="over"),
        _compaction("c", turn_id="nobody's"),
        _compaction("c"),
        _compaction("c", session_id="other"),
        _compaction("d", turn_id="a", session_id="other"),
        _finished("f", 3, entry_calls=4),
        _finished("a", 3, role="other"),
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"event": "turn", "turn_id": "a\\u0000", "role": "main", "session_id": "s"}',
        b'{"event": "turn", "turn_id": "\\ud800", "role": "main", "session_id": "s"}',
        _end("a"),
    )
    taken = {one["line"] for one in answer["results"] if one["status"] == "recorded"}
    assert taken == {1, 14, 15, 21, 30}
    assert (answer["recorded"], answer["known"], answer["refused"]) == (5, 0, 24)
    wrong = {one["line"]: one["field"] for one in answer["results"] if "field" in one}
    assert wrong == {
        2: "line",
        4: "line",
        5: "line",
        6: "event",
        7: "event",
        8: "role",
        9: "role",
        10: "session_id",
        11: "turn_id",
        12: "usage.input_tokens",
        13: "at",
        16: "request_id",
        17: "request_id",
        18: "turn_id",
        19: "status",
        20: "turn_id",
        22: "session_id",
        23: "session_id",
        24: "tool_calls",
        25: "role",
        26: "line",
        27: "line",
        28: "turn_id",
        29: "line",
    }
    told = next(one for one in answer["results"] if one["line"] == 9)
    assert told["problem"] == "the turn is recorded with 'main'"
    assert (told["value"], bool(told["remedy"])) == ("other", True)


def test_thousands_of_lines_land_in_several_transactions(ingest, client, ledger):
    lines = []
    for number in range(60):
        turn_id = f"t{number}"
        lines += [_turn(turn_id), *(_request(turn_id, f"{turn_id}:{i}") for i in range(100))]
        lines += [_end(turn_id, status="ended" if number % 3 else "cut")]
    answer = ingest(*lines, results="refused")
    assert answer == {"recorded": 6120, "known": 0, "refused": 0, "results": []}
    assert ingest(*lines, results="refused")["known"] == 6120
    with reading(ledger) as connection:
        counted = connection.execute(
            select(histogram.c.unit, histogram.c.exit, histogram.c.ended, histogram.c.count)
        ).all()
        made = connection.scalar(select(func.count()).select_from(requests))
        pace = connection.execute(select(request_pace)).one()
    # A turn that was cut made 100 calls, and whether a 101st followed nobody knows.
    assert set(counted) == {
        ("tool_calls", 100, True, 40),
        ("tool_calls", 99, False, 20),
        ("requests", 100, True, 40),
        ("requests", 100, False, 20),
    }
    assert made == 6000
    assert (pace.turns, pace.tool_calls, pace.requests) == (40, 4000, 4000)


def test_a_stream_says_what_single_posts_would_have_said(client, ingest, ledger):
    clock = count(1)

    def at():
        return f"2026-03-01T10:{next(clock):02}:00Z"

    def story(turn_id):
        return [
            _turn(turn_id, started_at=at(), session_id=turn_id),
            _request(turn_id, f"{turn_id}1", at=at(), model="claude-opus-5", tool_calls=2),
            _end(turn_id, "cut", at=at(), reason="interrupted"),
            _request(turn_id, f"{turn_id}2", at=at(), usage={"uncached": 3, "cache_read": 900}),
            _compaction(f"{turn_id}c", turn_id=turn_id, session_id=turn_id, at=at()),
            _request(turn_id, f"{turn_id}3", at=at(), kind="compaction", tool_calls=0),
            _end(turn_id, "ended", at=at(), tool_calls=9),
            _end(turn_id, "ended"),
            _request(turn_id, f"{turn_id}1", at=at(), tool_calls=4),
            _finished(f"{turn_id}f", 4, requests=2, started_at=at(), model="m"),
            _end(f"{turn_id}f", "cut", at=at()),
        ]

    ones = story("a")
    clock = count(1)
    ingest(*story("b"))
    for line in ones:
        body = {key: value for key, value in line.items() if key not in {"event", "turn_id"}}
        kind, path = line["event"], f"/turns/{line.get('turn_id')}"
        if kind == "turn":
            answer = client.put(path, json=body)
        elif kind == "request":
            answer = client.post(f"{path}/requests", json=body)
        elif kind == "end":
            answer = client.post(f"{path}/end", json=body)
        elif kind == "compaction":
            answer = client.post("/compactions", json=body | {"turn_id": line["turn_id"]})
        else:
            answer = client.post("/turns", json=[body | {"turn_id": line["turn_id"]}])
        assert answer.status_code == 200, answer.text

    def rows(table, mine):
        key = table.c.session_id if "session_id" in table.c else table.c.turn_id
        with reading(ledger) as connection:
            found = connection.execute(select(table).where(key.like(f"{mine}%"))).all()
        return sorted(
            repr([value.replace("b", "a") if isinstance(value, str) else value for value in row])
            for row in found
        )

    for table in (turns, requests, tool_calls, compactions):
        assert rows(table, "b") == rows(table, "a"), table
    with reading(ledger) as connection:
        counted = set(connection.scalars(select(histogram.c.count)))
    # Told one by one, the turn stood at 0 turns' places before it moved on.
    assert counted - {0} == {2}


def test_lines_may_come_in_any_pieces(client):
    lines = (
        b"\r\n\r\n".join(json.dumps(_turn(f"tür {number}")).encode() for number in range(50))
        + json.dumps(_turn("glued")).encode()
    )

    def pieces():
        for start in range(0, len(lines), 7):
            yield lines[start : start + 7]

    answer = client.post("/ingest", content=pieces(), headers=NDJSON)
    assert answer.json()["recorded"] == 49
    assert [one["line"] for one in answer.json()["results"]] == [99]


def test_a_line_without_end_is_refused_and_the_next_one_taken(client):
    def pieces():
        for _ in range(70):
            yield b"x" * 100_000
        yield b"\n" + json.dumps(_turn("a")).encode()

    answer = client.post("/ingest", content=pieces(), headers=NDJSON).json()
    assert (answer["recorded"], answer["refused"]) == (1, 1)
    assert answer["results"][0]["problem"] == "the line is longer than 4,194,304 bytes"


def test_only_so_many_refusals_are_explained(ingest):
    answer = ingest(*[b"?"] * 1500, results="refused")
    assert (answer["refused"], len(answer["results"])) == (1500, 1000)
    answer = ingest(*[b"?"] * 1500)
    assert [one["line"] for one in answer["results"]] == list(range(1, 1501))
    assert answer["results"][-1] == {"line": 1500, "status": "refused"}


@pytest.mark.parametrize("media", ["text/plain", "application/json", "", "multipart/form-data"])
def test_another_media_type_is_refused(client, media):
    answer = client.post("/ingest", content=b"{}", headers={"content-type": media})
    assert answer.status_code == 415
    assert answer.json()["type"] == "urn:compactuary:problem:media-type"


def test_an_empty_stream_is_no_error(ingest):
    assert ingest() == {"recorded": 0, "known": 0, "refused": 0, "results": []}


def test_what_is_known_before_the_ledger_fails_stays(client, ingest, ledger, monkeypatch):
    lines = [_turn(f"t{number}") for number in range(5000)]
    calls = count()

    def third_time(connection, events):
        if next(calls) == 2:
            raise OSError("gone")
        return told(connection, events)

    from api import recorded_lines  # noqa: PLC0415 - to be patched

    told = recorded_lines.record
    monkeypatch.setattr(recorded_lines, "record", third_time)
    body = "\n".join(json.dumps(line) for line in lines)
    assert client.post("/ingest", content=body, headers=NDJSON).status_code == 500
    with reading(ledger) as connection:
        assert connection.scalar(select(func.count()).select_from(turns)) == 4000
    monkeypatch.undo()
    answer = ingest(*lines, results="refused")
    assert (answer["recorded"], answer["known"]) == (1000, 4000)


@pytest.mark.parametrize("wrong", [2**63, 2**64, -(2**63) - 1, 10**30, -(10**200)])
def test_a_number_beyond_64_bits_costs_its_own_line_alone(ingest, wrong):
    answer = ingest(
        _finished("a", 3),
        _finished("b", wrong),
        _turn("c"),
        _request("c", "c1", usage={"uncached": wrong}),
        _end("c"),
    )
    assert _statuses(answer) == ["recorded", "refused", "recorded", "refused", "recorded"]
    told = [one["value"] for one in answer["results"] if one["status"] == "refused"]
    text = str(wrong)
    assert told == [text if len(text) <= 80 else text[:77] + "..."] * 2
