import pytest

from compactuary.endpoint import DEFAULT_URL, Endpoint, endpoint_of
from compactuary.errors import InputError


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    monkeypatch.delenv("COMPACTUARY_URL", raising=False)
    monkeypatch.delenv("COMPACTUARY_KEY", raising=False)


def test_the_default_is_the_service_of_this_machine():
    assert DEFAULT_URL == "http://127.0.0.1:8338"
    assert endpoint_of() == Endpoint("http", "127.0.0.1", 8338)


def test_variables_stand_in_for_what_is_not_given(monkeypatch):
    monkeypatch.setenv("COMPACTUARY_URL", "https://example.org/base/")
    monkeypatch.setenv("COMPACTUARY_KEY", "k")
    assert endpoint_of() == Endpoint("https", "example.org", 443, "/base", "k")
    assert endpoint_of("http://[::1]:9", "l") == Endpoint("http", "::1", 9, "", "l")


def test_its_text_hides_the_key():
    endpoint = Endpoint("http", "::1", 9, "/b", "secret")
    assert repr(endpoint) == str(endpoint) == "Endpoint('http://[::1]:9/b', key=***)"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8338",
        "ftp://host",
        "http://",
        "http://host:99999",
        "http://ho st",
        "http://host/a b",
        "http://host/?q=1",
        "http://host\r\nX: y/",
        12,
        b"http://host",
    ],
)
def test_what_is_no_base_url_is_named(url):
    with pytest.raises(InputError, match="url: is no base URL"):
        endpoint_of(url)


def test_a_password_in_the_url_is_refused_and_not_shown():
    with pytest.raises(InputError) as caught:
        endpoint_of("http://user:hush@host")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("key", ["a\r\nX: y", "ключ", 5])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key):
    with pytest.raises(InputError) as caught:
        endpoint_of(None, key)
    assert str(key) not in str(caught.value)
