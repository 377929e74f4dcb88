"""A question in plain JSON takes the shortcut, any other the general way: the answers are the same.

A charset in the content type is enough for the general way.
"""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SHORT, GENERAL = "application/json", "application/json; charset=utf-8"
FULL = {
    "role": "main",
    "calls": 3,
    "context_tokens": 150_000,
    "model": "claude-opus-4-8",
    "window_tokens": 200_000,
    "cost": 4.0,
    "saving": 2.0,
    "explain": True,
    "quotes": True,
    "at": "call",
    "rule": "reorder",
    "ttl": "1h",
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**7),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([10**30, "1", "5m", "resume", "clear", "\0", {"input": 1}]),
)
BODIES = st.builds(
    lambda kept, odd: {name: FULL[name] for name in sorted(kept)} | odd,
    st.sets(st.sampled_from(sorted(FULL))).map({"role", "calls"}.union),
    st.dictionaries(st.sampled_from([*FULL, "strategy", "kind", "no"]), ODD, max_size=2),
)


def answer_of(client, content, content_type):
    """Status, kind of content and the answer, without what differs from one answer to the next."""
    response = client.post(
        "/should-compact", content=content, headers={"content-type": content_type}
    )
    told = response.json()
    told.pop("decision_id", None)
    return response.status_code, response.headers["content-type"], told


@pytest.fixture
def counted(sqlite_client):
    """Return what tells how many answers each status of the route has had."""

    def count():
        found = {}
        for line in sqlite_client.get("/metrics").text.splitlines():
            if (
                line.startswith("compactuary_http_requests_total")
                and 'route="/should-compact"' in line
            ):
                found[line.split('status="')[1][:3]] = float(line.rpartition(" ")[2])
        return found

    return count


@settings(
    max_examples=150, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(body=BODIES)
def test_both_ways_give_the_same_answer(sqlite_client, body):
    content = json.dumps(body)
    answer_of(sqlite_client, content, GENERAL)  # so that both find the same thresholds
    state = sqlite_client.app.state.service.compiler
    state.refresh()
    assert answer_of(sqlite_client, content, SHORT) == answer_of(sqlite_client, content, GENERAL)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"9" * 5000, b'{"role": NaN, "calls": 1}',
     b'{"role": "r", "calls": 1, "role": 2}', json.dumps(FULL).encode("utf-16")],
    ids=["empty", "torn", "list", "null", "bytes", "deep", "long", "nan", "twice", "utf-16"],
)  # fmt: skip
def test_both_ways_read_the_same_bytes_alike(sqlite_client, content):
    assert answer_of(sqlite_client, content, SHORT) == answer_of(sqlite_client, content, GENERAL)


def test_both_ways_are_counted_and_logged_alike(sqlite_client, counted, until):
    service = sqlite_client.app.state.service
    for content_type in (SHORT, GENERAL):
        assert answer_of(sqlite_client, json.dumps(FULL), content_type)[0] == 200
        assert answer_of(sqlite_client, "{}", content_type)[0] == 422
    assert counted() == {"200": 2, "422": 2}
    until(lambda: service.log.state.written == 2)


def test_a_body_in_pieces_is_a_body(sqlite_client):
    text = json.dumps(FULL).encode()
    whole = answer_of(sqlite_client, text, SHORT)
    assert answer_of(sqlite_client, iter([text[:20], b"", text[20:]]), SHORT) == whole
    assert answer_of(sqlite_client, iter([b"{", b'"role": 1}']), SHORT)[0] == 422
