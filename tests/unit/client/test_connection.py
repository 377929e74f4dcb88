import socket
import ssl

import pytest

from compactuary.connection import Connections, is_stale, unanswered
from compactuary.endpoint import Endpoint
from compactuary.errors import InputError


@pytest.fixture
def ends():
    pair = socket.socketpair()
    yield pair
    for end in pair:
        end.close()


@pytest.fixture
def connections():
    return Connections(Endpoint("http", "127.0.0.1", 1))


def test_an_idle_connection_is_stale_once_there_is_something_to_read(ends):
    here, there = ends
    assert not is_stale(here.fileno())
    there.sendall(b"HTTP/1.1 408 Request Timeout\r\n")
    assert is_stale(here.fileno())


def test_or_once_it_was_closed(ends, connections):
    here, there = ends
    connections._give_back(here, reusable=True)
    there.close()
    assert connections._take() is None
    assert here.fileno() == -1


def test_a_good_one_is_used_again(ends, connections):
    connections._give_back(ends[0], reusable=True)
    assert connections._take() is ends[0]
    connections._give_back(ends[0], reusable=False)
    assert ends[0].fileno() == -1


def test_what_is_given_back_after_the_end_is_closed(ends, connections):
    connections._give_back(ends[0], reusable=True)
    connections.close()
    connections._give_back(ends[1], reusable=True)
    assert [end.fileno() for end in ends] == [-1, -1]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "timeout"),
        (ConnectionRefusedError(), "unreachable"),
        (socket.gaierror(-2, "Name or service not known"), "unreachable"),
        (ssl.SSLCertVerificationError(), "unreachable"),
        (InputError("is no HTTP", where="answer"), "garbage"),
    ],
)
def test_every_failure_has_a_code(error, code):
    assert unanswered(error).code == code
