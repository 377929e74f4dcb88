import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactuary.endpoint import Endpoint
from compactuary.errors import InputError
from compactuary.http_message import AnswerParser, request_bytes

HERE = Endpoint("http", "host", 80)


def read(data, step=None):
    parser = AnswerParser()
    step = step or max(1, len(data))
    for start in range(0, len(data), step):
        parser.feed(data[start : start + step])
    return parser


PLAIN = b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nETag: "a"\r\n\r\nabc'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n"
EARLY = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + PLAIN


@pytest.mark.parametrize("data", [PLAIN, CHUNKED, EARLY])
@pytest.mark.parametrize("step", [None, 1, 2, 7])
def test_an_answer_is_read_whatever_pieces_it_comes_in(data, step):
    parser = read(data, step)
    assert parser.done
    assert parser.reusable
    assert parser.answer().status == 200
    assert parser.answer().body == b"abc"


def test_headers_are_known_by_lower_case_names():
    assert read(PLAIN).answer().headers == {"content-length": "3", "etag": '"a"'}


def test_an_answer_without_a_length_ends_with_the_connection():
    parser = read(b"HTTP/1.1 200 OK\r\n\r\nab")
    assert not parser.done
    parser.feed(b"")
    assert (parser.done, parser.reusable, parser.answer().body) == (True, False, b"ab")


@pytest.mark.parametrize("status", [204, 304])
def test_some_answers_have_no_body(status):
    parser = read(b"HTTP/1.1 %d X\r\nContent-Length: 9\r\n\r\n" % status)
    assert parser.done
    assert parser.reusable
    assert parser.answer().body == b""


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\n", True),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True),
    ],
)
def test_whether_the_connection_may_go_on(head, reusable):
    assert read(head + b"Content-Length: 0\r\n\r\n").reusable is reusable


def test_what_follows_an_answer_spoils_the_connection_only():
    parser = read(PLAIN + b"HTTP/1.1")
    assert parser.done
    assert not parser.reusable
    assert parser.answer().body == b"abc"


@pytest.mark.parametrize(
    "data",
    [
        b"garbage from another port\r\n\r\n",
        b"\x00\x01\x02",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
    ],
)
def test_what_is_no_answer_is_refused(data):
    with pytest.raises(InputError, match="See whether the URL is that of the service"):
        read(data)


@pytest.mark.parametrize("cut", range(1, len(PLAIN)))
def test_a_connection_that_closes_half_way_is_no_answer(cut):
    parser = read(PLAIN[:cut])
    with pytest.raises(InputError, match="ends half-way"):
        parser.feed(b"")


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_no_bytes_do_more_than_be_refused(pieces):
    parser = AnswerParser()
    try:
        for piece in pieces:
            parser.feed(piece)
    except InputError:
        assert not parser.done


def test_a_request_is_one_message():
    keyed = Endpoint("http", "::1", 81, "/base", "secret")
    request = request_bytes(keyed, "POST", "/p", b"{}", '"e"')
    head, body = request.split(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    assert first == "POST /base/p HTTP/1.1"
    assert {"Host: [::1]:81", "Authorization: Bearer secret", 'If-None-Match: "e"'} <= {*lines}
    assert "Content-Length: 2" in lines
    assert body == b"{}"
    assert b"Authorization" not in request_bytes(HERE, "GET", "/")
