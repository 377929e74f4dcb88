"""The client on a service of lists, and on its own faults."""

import asyncio
import json
import logging
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import compactuary
from compactuary.advice import FALLBACKS, Advice, Unanswered
from compactuary.counters import COUNTERS
from compactuary.errors import InputError
from compactuary.http_message import Answered
from compactuary.stored_thresholds import Asked, held_from

ANSWER = {"decision": "compact", "reason": {"code": "pays", "text": "It pays."}, "mode": "enforce"}
ASKED = Asked("main", "m")
AWAY = Unanswered("unreachable", "Gone")


class NoThread:
    """Stands where the shelf's thread would fetch."""

    def exchange(self, request, deadline):
        return AWAY


@pytest.fixture
def client_of(scripted, tmp_path):
    made = []

    def make(*answers, **more):
        client = compactuary.Client("http://service", cache=tmp_path, **more)
        server = scripted([*answers])
        server.close = lambda: None
        client._wired = client._wired._replace(connections=server)
        client._wired.shelf._connections = NoThread()
        client._wired.delivery._connections = server
        made.append(client)
        return client

    yield make
    for client in made:
        client._wired.delivery._connections.answers = [Answered(200, {}, b"")]
        assert client._wired.delivery.flush(10)
        client._wired.let_go()


@pytest.fixture
def good(answered):
    return answered(200, json.dumps(ANSWER).encode())


def hold(client, document, asked=ASKED, mode="enforce", confirmed_at=None):
    client._wired.shelf._held[asked] = held_from(document, None, mode, confirmed_at)


def ask(client, calls=4, context_tokens=100_000, **fields):
    return client.should_compact("main", calls, context_tokens, "m", **fields)


def counted(client):
    # Thresholds are tried by a thread of their own, whenever that runs.
    return {
        name: number
        for name, number in client.counters.items()
        if number and name != "thresholds_failed"
    }


def test_the_server_s_answer_is_passed_on_whole(client_of, good):
    client = client_of(good)
    advice = ask(client, ttl="1h", weights=None)
    assert advice == Advice("compact", "server", "It pays.", 0.0, ANSWER)
    assert advice.compact
    assert counted(client) == {"asked": 1, "server": 1}
    head, body = client._wired.connections.asked[0].split(b"\r\n\r\n")
    assert head.startswith(b"POST /should-compact HTTP/1.1\r\n")
    assert json.loads(body) == {
        "role": "main",
        "calls": 4,
        "context_tokens": 100_000,
        "model": "m",
        "ttl": "1h",
        "weights": None,
    }


@pytest.mark.parametrize("decision", ["compact", "wait"])
def test_advice_is_true_where_it_says_compact(decision):
    advice = Advice(decision, "default", "")
    assert bool(advice) is advice.compact is (decision == "compact")


def test_advice_can_t_be_changed(client_of, good):
    with pytest.raises(AttributeError):
        ask(client_of(good)).decision = "wait"


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (500, b"{}", "server_error"),
        (503, b"{}", "server_error"),
        (429, b"{}", "server_error"),
        (422, b'{"detail": "role: is missing"}', "refused"),
        (401, b"no JSON", "refused"),
        (307, b"", "garbage"),
        (204, b"", "garbage"),
        (200, b"", "garbage"),
        (200, b"<html>", "garbage"),
        (200, b"[1]", "garbage"),
        (200, b"null", "garbage"),
        (200, b'{"decision": "maybe"}', "garbage"),
        (200, b'{"decision": ["compact"]}', "garbage"),
        (200, b"\xff\xfe", "garbage"),
        (200, b"[" * 200_000, "garbage"),
    ],
)
def test_whatever_else_it_says_thresholds_then_the_default_decide(
    client_of, answered, document, status, body, code
):
    client = client_of(answered(status, body))
    assert ask(client)[:2] == ("wait", "default")
    hold(client, document)
    advice = ask(client)
    assert advice[:2] == ("compact", "cached")
    assert advice.fallback == code
    assert counted(client) == {"asked": 2, "default": 1, "cached": 1, code: 2}


def test_the_reason_of_a_refusal_is_told(client_of, answered, caplog):
    client = client_of(answered(422, b'{"detail": "role: is missing. Send it."}'))
    assert "role: is missing. Send it" in ask(client).reason
    ask(client)
    assert len(caplog.messages) == 1


def test_the_age_is_that_of_the_last_confirmation(client_of, document, monkeypatch):
    client = client_of(AWAY)
    hold(client, document, confirmed_at=1000.0)
    monkeypatch.setattr("compactuary.adviser.time.time", lambda: 1090.0)
    assert ask(client).age_seconds == 90.0
    monkeypatch.setattr("compactuary.adviser.time.time", lambda: 900.0)
    assert ask(client).age_seconds == 0.0


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_a_role_that_is_not_enforced_waits_without_the_server_too(client_of, good, document, mode):
    client = client_of(AWAY)
    hold(client, document, mode=mode)
    assert ask(client).decision == ask(client, context_tokens=500_000).decision == "wait"
    client._wired.shelf.hear_mode("main", "enforce")
    assert ask(client).compact


def test_the_default_compacts_past_the_hard_limit_only(client_of, document):
    client = client_of(AWAY)
    window = {"window_tokens": 200_000}
    # 1,100 of growth and 5,000 of a summary have to fit.
    assert ask(client, context_tokens=193_900, **window)[:2] == ("wait", "default")
    assert ask(client, context_tokens=193_901, **window)[:2] == ("compact", "default")
    assert not ask(client, context_tokens=193_901, at="turn_end", **window).compact
    assert ask(client, context_tokens=190_001, growth_tokens=5000, **window).compact
    assert not ask(client, context_tokens=10**9).compact
    hold(client, document, Asked("another", "m"))
    assert not ask(client, context_tokens=190_000).compact
    assert ask(client, context_tokens=190_001).compact


def test_a_breaker_spares_a_dead_server_and_the_loop(client_of, good, document):
    client = client_of(AWAY, AWAY, AWAY, good, breaker_seconds=1000)
    hold(client, document)
    assert [ask(client).fallback for _ in range(5)] == [*["unreachable"] * 3, *["breaker"] * 2]
    assert len(client._wired.connections.asked) == 3
    client._wired.breaker._retry_at = 0.0
    assert ask(client).source == "server"
    assert counted(client) == {
        "asked": 6,
        "cached": 5,
        "server": 1,
        "unreachable": 3,
        "breaker": 2,
        "breaker_opened": 1,
    }


def test_a_refused_question_is_no_failure_of_the_server(client_of, answered):
    client = client_of(answered(422))
    assert {ask(client).fallback for _ in range(10)} == {"refused"}


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.just("\ud800"),
    st.builds(object),
    st.builds(SimpleNamespace),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.just(Asked),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    ANYTHING,
    ANYTHING,
    ANYTHING,
    ANYTHING,
    st.dictionaries(
        st.sampled_from(
            [
                "at",
                "idle_seconds",
                "useless_compactions",
                "window_tokens",
                "growth_tokens",
                "kind",
                "weights",
                "turn_id",
                "nonsense",
            ]
        ),
        ANYTHING,
        max_size=4,
    ),
)
def test_no_argument_makes_it_raise(client_of, document, role, calls, context, model, fields):
    client = client_of(AWAY, breaker_seconds=1000)
    hold(client, document)
    advice = client.should_compact(role, calls, context, model, **fields)
    assert advice.source in ("cached", "default")
    assert advice.fallback in FALLBACKS
    advice = client.should_compact("main", calls, context, "m", **fields)
    assert advice.decision in ("compact", "wait")
    client.start_turn(role, calls, context)
    client.record_request(role, calls, context, model)
    client.end_turn(role, calls)
    client.record_compaction(role, calls, strategy=context)
    with client.turn(role, calls, model=model, entry_calls=context, **fields) as turn:
        turn.request(role, calls, context)
        turn.compacted(calls, context)
        assert isinstance(turn.should_compact(context), Advice)


def test_no_thread_is_no_reason_to_raise(client_of, good, document, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("threading.Thread.start", refuse)
        client = client_of(good)
        assert ask(client).source == "server"
        client.end_turn("t")
        assert client.counters["records_waiting"] == 1
        named = compactuary.Client("http://service.example", cache=False)
        assert ask(named).fallback == "unreachable"
    assert client.flush(10)
    assert client.counters["records_delivered"] == 1


def test_nor_do_none_at_all(client_of):
    assert client_of(AWAY).should_compact().source == "default"


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, RecursionError, AssertionError])
def test_nor_does_a_fault_of_its_own(client_of, error):
    def fail(request):
        raise error("a fault")

    client = client_of(fail)
    advice = ask(client)
    assert advice[:2] == ("wait", "default")
    assert advice.fallback == "internal"
    assert counted(client) == {"asked": 1, "default": 1, "internal": 1}


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_but_whoever_ends_the_process_ends_it(client_of, error):
    def fail(request):
        raise error

    with pytest.raises(error):
        ask(client_of(fail))


@pytest.mark.parametrize(
    "setting",
    [
        {"budget_seconds": 0},
        {"budget_seconds": "x"},
        {"queue_capacity": -1},
        {"refresh_seconds": float("nan")},
        {"breaker_seconds": True},
        {"exit_seconds": -1},
        {"cache": 5},
        {"cache": "\0x"},
        {"url": b"http://service"},
        {"url": 5},
    ],
)
def test_wrong_settings_are_named_where_the_client_is_made(setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        compactuary.Client(**setting)


def test_the_key_is_nowhere_to_be_read(scripted, answered, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    client = compactuary.Client("http://service", key="hush-hush", cache=tmp_path)
    server = scripted([answered(401, b'{"detail": "a wrong key"}')])
    client._wired = client._wired._replace(connections=server)
    client._wired.shelf._connections = client._wired.delivery._connections = server
    advice = ask(client)
    client.end_turn("t")
    assert client.flush(10)
    assert b"Authorization: Bearer hush-hush\r\n" in server.asked[0]
    texts = [repr(client), repr(client._wired.settings), repr(advice), caplog.text]
    texts += [str(path) for path in tmp_path.rglob("*")]
    assert "hush" not in "".join(texts)
    client.close(0)


def test_it_counts_under_names_that_are_documented(client_of, good):
    assert {*client_of(good).counters} == {*COUNTERS, "records_waiting"}


def test_the_async_client_says_the_same(scripted, good, document, tmp_path):
    class Streams:
        def __init__(self, answers):
            self.server = scripted(answers)

        async def exchange(self, request, deadline):
            return self.server.exchange(request, deadline)

        def close(self):
            pass

    async def run():
        async with compactuary.AsyncClient("http://service", cache=tmp_path) as client:
            client._wired.shelf._connections = NoThread()
            client._streams = Streams([good, AWAY])
            first = await client.should_compact("main", 4, 100_000, "m")
            hold(client, document)
            second = await client.should_compact("main", 4, 100_000, "m")
            third = await client.should_compact(object(), float("nan"))
            return first, second, third

    first, second, third = asyncio.run(run())
    assert first[:2] == ("compact", "server")
    assert second[:2] == ("compact", "cached")
    assert (third.source, third.fallback) == ("default", "arguments")
