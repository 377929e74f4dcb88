"""Gemini CLI sessions: turns and how they end, requests, cached tokens inside the input."""

from pathlib import Path

import pytest

from ledger.readers.gemini_cli import gemini_cli_events
from ledger.usage import Usage
from tests.unit.ledger.rollout import START_MS
from tests.unit.ledger.told import Told


def tokens(total=1_000, cached=700, output=60, thoughts=30, tool=0):
    return {
        "input": total,
        "cached": cached,
        "output": output,
        "thoughts": thoughts,
        "tool": tool,
        "total": total + output + thoughts + tool,
    }


def message(kind, number, **fields):
    stamp = f"2026-07-01T12:00:{number:02}.000Z"
    return {
        "id": f"{kind[0]}{number}",
        "timestamp": stamp,
        "type": kind,
        "content": "SECRET",
    } | fields


def calls(*ids, status="success"):
    return [{"id": call, "name": "read_file", "status": status} for call in ids]


def asks(number, *ids, status="success", **fields):
    own = {"model": "gemini-2.5-flash", "tokens": tokens(), "toolCalls": calls(*ids, status=status)}
    return message("gemini", number, **own | fields)


def says(number, **fields):
    return message("gemini", number, **{"model": "gemini-2.5-flash", "tokens": tokens()} | fields)


def session(*messages, **fields):
    own = {"sessionId": "s1", "projectHash": "h", "startTime": "2026-07-01T12:00:00.000Z"}
    return own | {"messages": list(messages)} | fields


def read(*messages, role_by_project=False, **fields):
    documents = [session(*messages, **fields)]
    return Told(list(gemini_cli_events(documents, Path("s.json"), role_by_project=role_by_project)))


def test_a_turn_of_two_requests():
    told = read(
        message("user", 0), asks(1, "c1", "c2"), says(2, tokens=tokens(1_200, 1_000, 10, 0, 50))
    )
    assert told.turns == {"u0": ("main", "ended", "final_text", 2, 2)}
    first, second = told.requests.values()
    # The input includes what was cached, but neither the thoughts nor the results of tools.
    assert first.usage == Usage(300, 700, output=90, reasoning=30)
    assert second.usage == Usage(250, 1_000, output=10)
    assert first.tool_calls == (("c1", "read_file"), ("c2", "read_file"))
    assert (first.at_ms, first.model) == (START_MS + 1_000, "gemini-2.5-flash")
    assert told.started["u0"].provider == "google"


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ([], ("open", "in_flight")),
        ([says(2)], ("ended", "final_text")),
        ([asks(2, "c2", status="cancelled")], ("cut", "interrupted")),
        ([message("error", 2)], ("cut", "api_error")),
        ([message("info", 2), message("warning", 3)], ("open", "in_flight")),
        ([message("user", 2)], ("cut", "superseded")),
    ],
)
def test_how_a_turn_ends(behind, expected):
    told = read(message("user", 0), asks(1, "c1"), *behind)
    assert told.turns["u0"][1:3] == expected


def test_what_causes_no_request_is_no_turn():
    assert read(message("warning", 0), message("user", 1), message("info", 2)).events == []


def test_a_request_whose_usage_is_not_known_yet_counts_its_calls_only():
    told = read(message("user", 0), asks(1, "c1"), asks(2, "c2", tokens=None), says(3))
    assert told.only_turn == ("main", "ended", "final_text", 2, 2)
    assert [made.position for made in told.requests.values()] == [0, 2]


def test_a_session_that_begins_inside_a_turn():
    (started,) = read(asks(1, "c1")).started.values()
    assert (started.turn_id, started.entry_calls) == ("s1/from-g1", None)


def test_a_message_written_twice_counts_once():
    messages = [message("user", 0), asks(1, "c1"), says(2)]
    assert read(*(one for one in messages for _ in range(2))) == read(*messages)


def test_roles():
    assert read(message("user", 0), says(1), kind="subagent").only_turn[0] == "unknown-subagent"
    told = read(message("user", 0), says(1), role_by_project=True)
    assert told.only_turn[0] == "unknown-project/main"


def whole_gemini():
    return session(
        message("warning", 0),
        message("user", 1),
        asks(2, "c1", "c2"),
        asks(3, "c3"),
        message("user", 4),
        asks(5, "c4", status="cancelled"),
        message("user", 6),
        says(7),
        message("error", 8),
    )
