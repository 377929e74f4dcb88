"""OpenTelemetry spans: agents are turns, model calls requests, executed tools calls."""

import json
from pathlib import Path

import pytest

from compactuary.errors import InputError
from ledger.readers.otel import otel_events
from ledger.usage import Usage
from tests.unit.ledger.rollout import START_MS
from tests.unit.ledger.told import Told

LOCAL, REMOTE = 0x101, 0x301


def value(told):
    if isinstance(told, list):
        return {"arrayValue": {"values": [value(item) for item in told]}}
    return {"intValue": str(told)} if isinstance(told, int) else {"stringValue": told}


def span(span_id, parent, start, end, *, trace="t1", flags=None, failed=False, **attributes):
    """A span of seconds; ``__`` in a keyword stands for a dot, ``gen_ai.`` goes before it."""
    named = {f"gen_ai.{key.replace('__', '.')}": told for key, told in attributes.items()}
    return {
        "traceId": trace,
        "spanId": span_id,
        "parentSpanId": parent or "",
        "name": "SECRET",
        "startTimeUnixNano": str((START_MS + start * 1000) * 1_000_000),
        "endTimeUnixNano": str((START_MS + end * 1000) * 1_000_000 + 999),
        "attributes": [{"key": key, "value": value(told)} for key, told in named.items()],
        "status": {"code": 2} if failed else {},
    } | ({} if flags is None else {"flags": flags})


def agent(span_id, parent, start, end, name="shopper", **fields):
    return span(
        span_id, parent, start, end, operation__name="invoke_agent", agent__name=name, **fields
    )


def chat(span_id, parent, start, end, used=(1_000, 700, 200, 90), **fields):
    total, read, written, output = used
    told = {
        "operation__name": "chat",
        "request__model": "m-1",
        "provider__name": "p-1",
        "usage__input_tokens": total,
        "usage__cache_read__input_tokens": read,
        "usage__cache_creation__input_tokens": written,
        "usage__output_tokens": output,
    }
    return span(span_id, parent, start, end, **(told | fields))


def tool(span_id, parent, start, end, name="search", **fields):
    return span(
        span_id, parent, start, end, operation__name="execute_tool", tool__name=name, **fields
    )


def export(*spans, service="shop"):
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def read(*spans, **options):
    documents = [json.loads(json.dumps(export(*spans)))]
    return Told(list(otel_events(documents, Path("traces.json"), **options)))


def test_a_turn_is_the_run_of_an_agent():
    told = read(
        chat("c1", "a1", 1, 2),
        tool("x1", "a1", 2, 3, tool__call__id="call-1"),
        tool("x2", "a1", 2, 4),
        chat("c2", "a1", 5, 6, used=(1_200, 1_000, 0, 10)),
        agent("a1", None, 0, 7),
    )
    assert told.turns == {"t1/a1": ("shopper", "ended", "span_ended", 2, 2)}
    first, second = told.requests.values()
    # The input includes what was read from the cache and written to it.
    assert first.usage == Usage(100, 700, cache_write_other=200, output=90)
    assert second.usage == Usage(200, 1_000, output=10)
    assert first.tool_calls == (("call-1", "search"), ("x2", "search"))
    assert (first.request_id, first.at_ms, first.model) == ("t1/c1", START_MS + 1_000, "m-1")
    started = told.started["t1/a1"]
    assert (started.provider, started.session_id, started.at_ms) == ("p-1", "t1", START_MS)
    assert told.reached["t1/a1"].at_ms == START_MS + 7_000


def test_the_totals_of_an_agents_span_are_no_request():
    told = read(chat("c1", "a1", 1, 2), agent("a1", None, 0, 3, usage__input_tokens=9_999))
    assert list(told.requests) == ["t1/c1"]


def test_spans_in_between_change_nothing():
    told = read(chat("c1", "n1", 1, 2), span("n1", "a1", 1, 2), agent("a1", None, 0, 3))
    assert told.turns == {"t1/a1": ("shopper", "ended", "span_ended", 1, 0)}


def test_an_agent_that_failed_was_cut():
    told = read(chat("c1", "a1", 1, 2), agent("a1", None, 0, 3, failed=True))
    assert told.only_turn[1:3] == ("cut", "error")


def test_a_sub_agent_is_a_turn_of_its_own():
    told = read(
        chat("c1", "a1", 1, 2),
        chat("c2", "a2", 4, 5),
        agent("a2", "x1", 3, 6, "finder"),
        tool("x1", "a1", 3, 6),
        agent("a1", None, 0, 8, conversation__id="conv-1"),
    )
    assert told.turns == {
        "t1/a1": ("shopper", "ended", "span_ended", 1, 1),
        "t1/a2": ("finder", "ended", "span_ended", 1, 0),
    }
    started = told.started["t1/a2"]
    assert (started.session_id, started.thread_id) == ("conv-1", "conv-1/agent-a2")
    assert started.parent_turn_id == "t1/a1"


def test_without_an_agent_the_outermost_span_is_the_turn():
    told = read(chat("c1", "h1", 1, 2), chat("c2", "h1", 3, 4), span("h1", None, 0, 5))
    assert told.turns == {"t1/h1": ("shop", "ended", "span_ended", 2, 0)}


def test_a_request_by_itself():
    asks = chat("c1", None, 1, 2, response__finish_reasons=["tool_calls"])
    assert read(asks).only_turn == ("shop", "open", "in_flight", 1, 1)
    says = chat("c1", None, 1, 2, response__finish_reasons=["stop"])
    assert read(says).only_turn == ("shop", "ended", "final_text", 1, 0)


def test_a_parent_in_the_same_process_is_waited_for():
    inside = chat("c1", "a1", 1, 2, flags=LOCAL)
    assert read(inside).events == []
    assert read(inside, agent("a1", None, 0, 3)).only_turn[1] == "ended"


def test_a_parent_elsewhere_is_not():
    handled = span("h1", "far", 0, 3, flags=REMOTE)
    assert read(chat("c1", "h1", 1, 2, flags=LOCAL), handled).turns == {
        "t1/h1": ("shop", "ended", "span_ended", 1, 0)
    }


@pytest.mark.parametrize("flags", [None, REMOTE])
def test_requests_of_an_unknown_parent_are_of_one_turn(flags):
    told = read(chat("c1", "a1", 1, 2, flags=flags), chat("c2", "a1", 3, 4, flags=flags))
    assert told.turns == {"t1/a1": ("shop", "open", "in_flight", 2, 0)}


def test_a_request_told_by_two_instrumentations_is_one():
    inner = chat("c1", "c0", 2, 3)
    told = read(inner, chat("c0", "a1", 1, 4), agent("a1", None, 0, 5))
    assert list(told.requests) == ["t1/c1"]
    silent = span("c1", "c0", 2, 3, operation__name="chat")
    told = read(silent, chat("c0", "a1", 1, 4), agent("a1", None, 0, 5))
    assert list(told.requests) == ["t1/c0"]


def test_a_request_of_unknown_usage_is_counted_and_not_told():
    silent = span("c1", "a1", 1, 2, operation__name="chat")
    told = read(silent, chat("c2", "a1", 3, 4), agent("a1", None, 0, 5))
    assert list(told.requests) == ["t1/c2"]
    assert told.only_turn[3] == 2


def test_a_request_that_failed_and_used_nothing_is_none():
    failed = span("c1", "a1", 1, 2, operation__name="chat", failed=True)
    told = read(failed, chat("c2", "a1", 3, 4), agent("a1", None, 0, 5))
    assert told.only_turn[3] == 1


def test_calls_in_recorded_answers():
    answer = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "k1", "name": "find"}]}]
    for told in (json.dumps(answer), json.dumps(answer)[:40]):
        asked = chat(
            *("c1", "a1", 1, 2),
            output__messages=told,
            response__finish_reasons=["tool_call"],
        )
        (made,) = read(asked, agent("a1", None, 0, 5)).requests.values()
        whole = told.endswith("]")
        assert made.tool_calls == ((("k1", "find"),) if whole else ())
        assert made.unnamed_tool_calls == (0 if whole else 1)


def test_an_agent_of_which_only_the_tools_are_known():
    told = read(tool("x1", "a1", 1, 2), tool("x2", "a1", 2, 3), agent("a1", None, 0, 5))
    assert told.only_turn == ("shopper", "ended", "span_ended", 0, 2)
    assert read(agent("a1", None, 0, 5)).events == []


def test_old_names_and_an_input_that_excludes_the_cache():
    old = {"usage__cache_read_input_tokens": 700, "usage__prompt_tokens": 100}
    names = {"system": "anthropic", "request__model": "m-1"}
    told = read(
        span("c1", "a1", 1, 2, usage__prompt_tokens=500, usage__completion_tokens=5, **names),
        span("c2", "a1", 3, 4, usage__completion_tokens=7, **old, **names),
        agent("a1", None, 0, 5),
    )
    assert [made.usage for made in told.requests.values()] == [
        Usage(500, output=5),
        Usage(100, 700, output=7),
    ]
    assert told.started["t1/a1"].provider == "anthropic"


def test_a_circle_of_parents_is_left():
    told = read(chat("c1", "n1", 1, 2), span("n1", "n2", 1, 2), span("n2", "n1", 1, 2))
    assert told.only_turn[3] == 1


def test_times_and_roles():
    with pytest.raises(InputError) as caught:
        read(chat("c1", None, 1, 2) | {"startTimeUnixNano": "-5"})
    assert caught.value.where == "startTimeUnixNano"
    told = read(chat("c1", "a1", 1, 2), agent("a1", None, 0, 3), role_by_project=True)
    assert told.only_turn[0] == "shop/shopper"


def whole_traces():
    return [
        export(chat("c1", "a1", 1, 2, flags=LOCAL), tool("x1", "a1", 2, 3, flags=LOCAL)),
        export(chat("c2", "a2", 4, 5, flags=LOCAL), agent("a2", "x2", 3, 6, "finder", flags=LOCAL)),
        export(tool("x2", "a1", 3, 6, flags=LOCAL), chat("c3", "a1", 7, 8, flags=LOCAL)),
        export(agent("a1", "far", 0, 9, conversation__id="conv-1", flags=REMOTE)),
        export(chat("c4", None, 1, 2, trace="t2", response__finish_reasons=["tool_calls"])),
    ]


def whole_trace():
    spans = [
        span
        for line in whole_traces()
        for span in line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    ]
    return export(*spans)
